"""What a model is asked to return, one set of models for each prompt version. Names, docstrings and descriptions here are sent: they are
part of the prompt and frozen with it. Everything a model writes is a proposal; `proposals` decides what becomes of it.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class QuoteV1(BaseModel):
    """A passage copied from one event of the run."""

    model_config = ConfigDict(extra="ignore")

    event: int = Field(description="Number of the event, as printed in front of it.")
    text: str = Field(description="10 to 200 characters, copied character by character from that one event, without the event's number.")


class FactV1(BaseModel):
    """One thing that would save time in another task on the same repository, or with the same engine."""

    model_config = ConfigDict(extra="ignore")

    content: str = Field(
        description="One self-contained sentence of at most 300 characters that names the command, file, test, setting or identifier it is about. "
        "An observation, no advice; no counts, dates, run or ticket numbers."
    )
    kind: Literal["success_pattern", "failure_pattern", "repo_quirk", "general"]
    about: Literal["repo", "engine"] = Field(description="'engine' only if it holds for the agent's own harness in any repository.")
    stands: Literal["confirmed", "given_up"] = Field(
        description="'confirmed' if the run's results bear it out to the end; 'given_up' for an approach or belief that the run tried and left."
    )
    quotes: list[QuoteV1] = Field(
        description="1 to 4 passages that prove it; at least one from a result or from a person, not only from the agent."
    )
    files: list[str] = Field(default_factory=list, description="Paths of the repository's files that it is about, as the run writes them.")
    subject: str = Field(default="", description="What it is about: a command, file, test, setting or identifier.")
    attribute: str = Field(default="", description="Which property of the subject, in one to three words.")
    value: str = Field(default="", description="The property's value, in a few words.")


class ReplyV1(BaseModel):
    """All that is worth keeping from this part of the run; most runs have none to four."""

    model_config = ConfigDict(extra="ignore")

    facts: list[FactV1]


class PairV1(BaseModel):
    """Two observations that cannot both hold."""

    model_config = ConfigDict(extra="ignore")

    newer: int = Field(description="Number of the later observation, as printed in front of it.")
    older: int = Field(description="Number of the earlier observation.")
    relation: Literal["supersedes", "contradicts"] = Field(
        description="'supersedes' if the later one tells what the earlier one's subject has become; 'contradicts' if one of them must be wrong."
    )


class NominationsV1(BaseModel):
    """All pairs that cannot both hold; most lists have none."""

    model_config = ConfigDict(extra="ignore")

    pairs: list[PairV1]


class PhraseV1(BaseModel):
    """One sentence for a statistic."""

    model_config = ConfigDict(extra="ignore")

    sentence: str = Field(description="One sentence of at most 200 characters; numbers and names only as given.")


class ProfileV1(BaseModel):
    """Strengths and weaknesses of an engine, in the order of the lines given."""

    model_config = ConfigDict(extra="ignore")

    strengths: list[str] = Field(description="One sentence for each line under 'strong', in that order.")
    weaknesses: list[str] = Field(description="One sentence for each line under 'weak', in that order.")
