"""Why a proposal is dropped: a closed set, in the order in which it is tested."""

from typing import Literal, get_args

Reason = Literal[
    "no quote",  # none, or none long enough to prove anything
    "unknown event",  # the number is no event's
    "not the run's own text",  # a memory block, the system prompt, a summary or a recorded session is quoted
    "wrong event",  # the quote stands in another event than the one cited
    "stitched",  # the quote is put together from passages that stand apart
    "misquoted",  # the quote stands nowhere
    "other speaker",  # only the agent's own words prove it, or a person is said to have said it who did not
    "secret",  # it holds a secret or the mask of one
    "instruction",  # it tells its reader what to do
    "transient",  # it is about a moment: a date, a commit, an accident of the environment, a count
    "restates the task",
    "restates the work",  # it tells what the run did or how it ended
    "says nothing",  # too short, or no statement
    "names nothing",  # no command, path, identifier, test, setting or version
    "unknown name",  # a name or number that the run does not hold
    "unproved",  # a guess, a success that no check shows, an abandonment that nothing shows
    "disproved later",  # the final state of the run says otherwise
    "known by rules",
    "said twice",
    "wrong scope",  # about the engine, but it names what is this repository's
    "no owner",  # the run does not tell its repository or its engine
    "too long",
    "beyond the limit",  # more than a part of a run may teach
    "overruled",  # a later part of the same run says otherwise (only from `settle`)
]

REASONS: tuple[Reason, ...] = get_args(Reason)
