"""SWE-agent trajectories, `*.traj`, of 0.x and 1.x: steps of action and observation, without times and exit codes.

A file without steps is a demonstration, read from its `history`. Examples shown to the agent (`is_demo`) are no part of the run.
"""

import hashlib
import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from osmia_memory.errors import TranscriptError
from osmia_memory.models import Environment, Signal, Transcript
from osmia_memory.transcripts import benchmark, patches, repo_key
from osmia_memory.transcripts.context import Context, Findings
from osmia_memory.transcripts.events import EventLog, whole, within
from osmia_memory.transcripts.outcome import limit_reason
from osmia_memory.transcripts.records import MISREAD, Content, as_json, parse

ENGINE = "swe-agent"
_PROMPT = re.compile(r"\n?\(Open file: (?P<file>[^\n]*)\)\n\(Current directory: (?P<folder>[^\n]*)\)\nbash-\$\s*\Z")
_NO_OUTPUT = re.compile(r"\s*Your command ran successfully and did not produce any output\.\s*\Z")
_DONE_MARK = re.compile(r"///PROCESS-DONE:(-?\d+):PROCESS-DONE///")
_TIMED_OUT = re.compile(r"\s*(?:EXECUTION|COMMAND) TIMED OUT|The command .{0,2000}? was cancelled because it took more than", re.S)
_BLOCKED = re.compile(r"\s*(?:Interactive o|O)peration '.{0,400}?' is not supported by this environment", re.S)
_NOT_RUN = re.compile(r"\s*Your bash command contained syntax errors and was NOT executed")
_FAILED = re.compile(
    r"\s*(?:Your proposed edit has introduced new syntax error|Your edit was not applied|No replacement (?:was )?performed|Usage: |usage: |Invalid `|"
    r"ERROR:|Error: |No file open|File .{0,300} (?:not found|does not exist)|The path .{0,300} does not exist|Multiple occurrences|Syntax error in)"
)
_DIRECTORY = re.compile(r"(?:^|[/_:])(?P<model>[^/_:]+(?:_[^/_:]+)*)__[^/]*?__t-[\d.]+__p-[\d.]+__c-")
_CHECKOUT = re.compile(r"/(?P<org>[\w.-]+?)__(?P<name>[\w.-]+)\Z")
_READS = ("open", "goto", "scroll_up", "scroll_down", "set_cursors", "filemap")
_EDITS = ("edit", "insert", "append")
_SEARCHES = ("find_file", "search_dir", "search_file", "get_symbols", "submit", "exit", "skip")


def sniff(head: list[dict[str, Any]]) -> bool:
    """A document with steps in `trajectory`, or a `history` of messages that name their agent or kind."""
    return any(_steps(d) or _messages(d) or ("environment" in d and isinstance(d.get("trajectory"), list)) for d in head)


def _steps(document: dict[str, Any]) -> bool:
    steps = document.get("trajectory")
    return isinstance(steps, list) and any(isinstance(s, dict) and "action" in s and "observation" in s for s in steps[:5])


def _messages(document: dict[str, Any]) -> bool:
    history = document.get("history")
    return isinstance(history, list) and any(
        isinstance(m, dict) and "role" in m and ("agent" in m or "message_type" in m) for m in history[:5]
    )


def read(content: Content, context: Context) -> list[Transcript]:
    """One transcript for each trajectory of the file.

    Raises:
        TranscriptError: the file holds no step.
    """
    found = []
    for _, value in content.values(context.skips):
        for document in value if isinstance(value, list) else (value,):
            if not isinstance(document, dict) or not (document.get("trajectory") or document.get("history")):
                context.skips.add(None, "a document without steps")
                continue
            reader = _Reader(document, context)
            reader.run()
            if content.cut:
                context.skips.add(len(reader.steps), "the document is cut off here")
            if reader.log.events:
                raw = [memoryview(context.source.data)] if len(content.documents) == 1 else [as_json(document).encode()]
                found.append(context.assemble(reader.findings(), reader.log, raw))
    if not found:
        raise TranscriptError(f"{context.source.name}: a SWE-agent trajectory without steps")
    return found


class _Reader:
    """Reads one trajectory in order. The record of an event is the number of its step; what stands before is at 0."""

    def __init__(self, document: dict[str, Any], context: Context) -> None:
        self.document = document
        self.context = context
        self.log: EventLog = context.log()
        self.history = _list(document.get("history"))
        self.steps = _list(document.get("trajectory"))
        self.record = 0
        self.cwd: str | None = None
        self.open_file: str | None = None
        self.info = _dict(document.get("info"))
        given = document.get("replay_config")
        self.config = _dict(parse(given) if isinstance(given, str) else given)
        if not self.steps:
            self.steps = list(_steps_of(self.history))

    def run(self) -> None:
        """Read the prompt and every step; one of an unknown shape is named and skipped."""
        self._state(next((s for s in self.steps if isinstance(s, dict)), {}), only_folder=True)
        try:
            self._opening()
        except MISREAD:
            self.context.skips.add(0, "history of an unknown shape")
        for number, step in enumerate(self.steps):
            self.record = number
            if not isinstance(step, dict):
                self.context.skips.add(number, "not a step")
                continue
            try:
                self._step(step)
            except MISREAD:
                self.context.skips.add(number, "step of an unknown shape")
        self._submission()

    def _opening(self) -> None:
        """System prompt and task, which stand in the history before the agent's first reply."""
        agent = _dict(self.config.get("agent"))
        template = str(_dict(agent.get("templates")).get("instance_template") or "")
        for message in self.history:
            role = message.get("role")
            if role not in ("system", "user"):
                return
            text = _text(message.get("content"))
            if message.get("is_demo"):
                self.context.skips.add(None, "an example shown to the agent, which is no part of the run")
            elif role == "system":
                self.log.add(0, "system", text)
            else:
                framed = benchmark.split(_PROMPT.sub("", text), template)
                for part, kind in ((framed.before, "system"), (framed.task, "user"), (framed.after, "system")):
                    if part.strip():
                        self.log.add(0, "user" if kind == "user" else "system", part)

    # --- steps --------------------------------------------------------------------------------------------------------

    def _state(self, step: dict[str, Any], only_folder: bool = False) -> None:
        """Where the shell is and which file is open: a JSON string in 0.x, an object in 1.x."""
        told = step.get("state")
        state = _dict(parse(told) if isinstance(told, str) else told)
        folder, file = state.get("working_dir"), state.get("open_file")
        if isinstance(folder, str) and folder.startswith("/"):
            self.cwd = self.cwd or folder
        if isinstance(file, str) and file and not only_folder:
            self.open_file = None if file == "n/a" else file

    def _step(self, step: dict[str, Any]) -> None:
        action, observation = str(step.get("action") or "").strip(), _text(step.get("observation"))
        observation = observation.replace("\r\n", "\n")
        self._state(step)
        thought = step.get("thought") if isinstance(step.get("thought"), str) else step.get("response")
        if isinstance(thought, str) and thought.strip() not in ("", action):
            self.log.add(self.record, "reasoning" if action else "assistant", thought.strip())
        if not action or action.startswith("exit_"):
            text = observation.strip() or action
            if text:
                self.log.add(self.record, "error", text, tool="harness", args={"ending": action})
            return
        call = self._action(action)
        if action.split()[0] == "submit" and (not observation.strip() or observation.strip() == self._patch().strip()):
            return
        self._observed(call, observation, step.get("execution_time"))

    def _action(self, action: str) -> int:
        """The agent's own tools are reads, edits and calls; all else is a shell command."""
        words = _words(action)
        name = words[0]
        if name == "str_replace_editor" and len(words) > 2:
            return self._editor(words)
        if name in _READS:
            told = words[1] if name == "open" and len(words) > 1 else self.open_file
            return self.log.add(self.record, "file_read", action if name != "open" else "", tool=name, paths=self._paths(told))
        if name in _EDITS:
            text, old = _edit_text(action, words)
            return self.log.add(
                self.record, "file_edit", text, tool=name, args={"old_string": old} if old else None, paths=self._paths(self.open_file)
            )
        if name == "create" and len(words) == 2:
            return self.log.add(self.record, "file_edit", "", tool=name, args={"created": True}, paths=self._paths(words[1]))
        if name in _SEARCHES:
            return self.log.add(self.record, "tool_call", action, tool=name)
        return self.log.add(self.record, "command", action, tool="bash")

    def _editor(self, words: list[str]) -> int:
        verb, path = words[1], words[2]
        flags = {w.removeprefix("--"): following for w, following in pairwise(words[3:]) if w.startswith("--")}
        if verb == "view":
            return self.log.add(self.record, "file_read", "", tool="str_replace_editor", paths=self._paths(path))
        args: dict[str, Any] = {"created": True} if verb == "create" else {}
        if flags.get("old_str"):
            args["old_string"] = flags["old_str"]
        text = flags.get("file_text") or flags.get("new_str") or ""
        return self.log.add(self.record, "file_edit", text, tool="str_replace_editor", args=args, paths=self._paths(path))

    def _paths(self, name: str | None) -> tuple[str, ...]:
        return (within(name, self.cwd),) if name else ()

    def _observed(self, call: int, text: str, seconds: Any) -> None:
        event = self.log.events[call]
        is_command = event.kind == "command"
        args: dict[str, Any] = {}
        mark = _DONE_MARK.search(text)
        code = int(mark[1]) if mark and is_command else None
        text = _DONE_MARK.sub("", text)
        if _BLOCKED.match(text):
            args["harness"] = "refused"
        elif _TIMED_OUT.match(text):
            args["timeout"] = True
        if "<response clipped>" in text:
            args["truncated"] = True
        failed = bool(args.get("harness") or args.get("timeout") or code or (_NOT_RUN if is_command else _FAILED).match(text))
        if failed and event.kind == "file_edit":
            self.log.mark(call, is_error=True)
        self.log.add(
            self.record, "command_result" if is_command else "tool_result", text.strip("\n"), tool=event.tool, args=args, answers=call,
            exit_code=code, is_error=failed, duration_s=float(seconds) if isinstance(seconds, int | float) and seconds > 0 else None,
        )  # fmt: skip

    def _patch(self) -> str:
        patch = self.info.get("submission")
        last = self.steps[-1] if self.steps and isinstance(self.steps[-1], dict) else {}
        if not self.info and last.get("action") == "submit":  # a demonstration
            patch = last.get("observation")
        return patch.replace("\r\n", "\n") if isinstance(patch, str) else ""

    def _submission(self) -> None:
        patch = self._patch().strip("\n")
        paths = patches.paths_of_diff(patch)
        if paths:
            self.log.add(max(len(self.steps) - 1, 0), "file_edit", patch + "\n", tool="submission", paths=paths)

    # --- the whole ----------------------------------------------------------------------------------------------------

    def _instance(self) -> str:
        problem = _dict(self.config.get("problem_statement"))
        told = problem.get("id") or self.info.get("instance_id")
        stem = re.sub(r"\.traj$|\.json$", "", self.context.source.name.replace(":", "/").rsplit("/", 1)[-1])
        return str(told) if told else stem

    def _repo(self, instance: str) -> str | None:
        places = (_dict(_dict(self.config.get("env")).get("repo")), _dict(self.config.get("problem_statement")))
        urls = (place["github_url"] for place in places if isinstance(place.get("github_url"), str))
        found = next((key for url in urls if (key := repo_key.from_url(url))), None)
        checkout = _CHECKOUT.fullmatch(self.cwd or "")
        own = f"{checkout['org']}/{checkout['name']}" if checkout and "__" not in checkout["name"] else None
        if (self.cwd or "").startswith("/__"):  # the path of a folder on the user's machine, written with `__` for `/`
            own = "local/" + (self.cwd or "").rsplit("__", 1)[-1]
        told = _dict(self.config.get("problem_statement")).get("id")
        return found or (benchmark.repo_of_instance(str(told)) if told else None) or own or benchmark.repo_of_instance(instance)

    def findings(self) -> Findings:
        """What the document says about the run."""
        instance = self._instance()
        stats = _dict(self.info.get("model_stats"))
        status = self.info.get("exit_status")
        model = _dict(_dict(self.config.get("agent")).get("model")).get("name")
        named = _DIRECTORY.search(self.context.source.name)
        commit = _dict(_dict(self.config.get("env")).get("repo")).get("base_commit")
        cost = stats.get("instance_cost")
        # Two runs of one instance differ in their first step (1.x has its time to the microsecond); a growing file keeps it.
        first = hashlib.sha256(as_json([self.config.get("agent"), _own(self.steps[:1])]).encode()).hexdigest()[:12]
        attempts = self.document.get("attempts")
        return Findings(
            engine=ENGINE,
            session_id=f"{instance}@{first}",
            names=(instance,),
            model=str(model) if model else (named["model"] if named else None),
            repo=self._repo(instance),
            cwd=None if (self.cwd or "").startswith("/__") else self.cwd,
            base_commit=str(commit) if isinstance(commit, str) and re.fullmatch(r"[0-9a-f]{7,40}", commit) else None,
            environment=Environment(os="linux", sandbox=self._sandbox()),
            cost_usd=float(cost) if isinstance(cost, int | float) and cost > 0 else None,  # 0: a replay, or a model without a price
            tokens_in=whole(stats.get("tokens_sent")) or None,
            tokens_out=whole(stats.get("tokens_received")) or None,
            attempts=len(attempts) if isinstance(attempts, list) and attempts else 1,
            signals=list(self._signals(str(status))) if status else [],
        )

    def _sandbox(self) -> str | None:
        kind = _dict(_dict(self.config.get("env")).get("deployment")).get("type")
        return str(kind) if kind else None

    def _signals(self, status: str) -> Iterator[Signal]:
        """The status is weak: most runs that fail their tests say `submitted`, which is not more than a claim."""
        yield Signal("exit_status", status)
        if limit_reason(status):
            yield Signal("limit", status)
        elif status == "submitted":
            yield Signal("claim", "submitted" if self._patch().strip() else "empty patch")
        elif status == "exit_forfeit":
            yield Signal("claim", "failed")


def _own(steps: list[Any]) -> list[Any]:
    """The steps without the prompts that they repeat."""
    return [{k: v for k, v in s.items() if k not in ("messages", "query", "extra_info")} if isinstance(s, dict) else s for s in steps]


def _steps_of(history: list[Any]) -> Iterator[dict[str, Any]]:
    """The steps of a history: each reply that acts, with the message after it."""
    for message, following in zip(history, [*history[1:], {}], strict=False):
        if not isinstance(message, dict) or message.get("is_demo") or message.get("role") != "assistant":
            continue
        seen = _text(following.get("content")) if isinstance(following, dict) and following.get("role") in ("user", "tool") else ""
        prompt = _PROMPT.search(seen)
        state = {"open_file": prompt["file"], "working_dir": prompt["folder"]} if prompt else {}
        seen = _PROMPT.sub("", seen).removeprefix("OBSERVATION:\n")
        observation = "" if _NO_OUTPUT.match(seen) else seen
        thought = message.get("thought") or _text(message.get("content"))
        yield {"thought": thought, "action": message.get("action"), "observation": observation, "state": state}


def _words(action: str) -> list[str]:
    try:
        words = shlex.split(action)
    except ValueError:
        words = []
    return words or action.split()


def _edit_text(action: str, words: list[str]) -> tuple[str, str]:
    """(new text, replaced text) of an edit in one of its forms: a block of lines, or quoted arguments."""
    head, block, rest = action.partition("\n")
    if re.fullmatch(r"edit(?:\s+\d+:\d+)?", head.strip()) and block:
        return rest.removesuffix("end_of_edit").rstrip("\n"), ""
    if words[0] == "edit" and len(words) > 2:
        return words[2], words[1]
    return (words[1] if len(words) > 1 else ""), ""


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    return "\n".join(str(p["text"]) for p in parts if isinstance(p, dict) and isinstance(p.get("text"), str))


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
