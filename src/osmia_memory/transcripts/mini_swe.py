"""mini-swe-agent trajectories, `*.traj.json`: version 1 (fenced commands in text) and 2 (tool calls), and bare message lists.

Only version 2 stamps its messages; version 1 has the provider's `created` seconds, and a message without a time has that of
the one before. The benchmark's instructions are told apart from the task.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from osmia_memory.errors import TranscriptError
from osmia_memory.models import Environment, Signal, Transcript
from osmia_memory.transcripts import patches
from osmia_memory.transcripts.context import Context, Findings
from osmia_memory.transcripts.events import EventLog, when, whole
from osmia_memory.transcripts.outcome import limit_reason
from osmia_memory.transcripts.records import MISREAD, Content, as_json, parse

ENGINE = "mini-swe-agent"
_READ_VERSIONS = ("mini-swe-agent-1", "mini-swe-agent-1.1")
_ACTION = re.compile(r"```(?:bash|mswea_bash_command|sh)\s*\n(.*?)\n```", re.S)
_OBSERVATION = re.compile(r"\s*(?:<exception>(?P<exception>.*?)</exception>\s*)?<returncode>(?P<code>-?\d+)</returncode>\s*", re.S)
_EXIT_TAIL = re.compile(r"\n?\[exit code (-?\d+)\]\s*\Z")
_ELIDED = re.compile(r"^\.\.\. \[\d+ characters elided\] \.\.\.$", re.M)
_TIMED_OUT = re.compile(
    r"\s*The last command <command>(?P<command>.*?)</command> timed out.*?<output>\n?(?P<output>.*?)\n?\s*</output>", re.S
)
_FORMAT_ERROR = re.compile(
    r"\s*(?:Please always provide EXACTLY ONE action|Tool call error:|Format error:|Your last (?:output|response) )", re.I
)
_TASK = re.compile(r"<pr_description>\s*(?:Consider the following PR description:\s*)?(?P<task>.*?)\s*</pr_description>", re.S)
_PLAIN_TASK = re.compile(
    r"\A\s*(?:Please solve this issue|Your task|Task):\s*(?P<task>.*?)(?=\n+You can execute bash commands|\n+## |\n+<instructions>|\Z)",
    re.S,
)
_INSTANCE = re.compile(r"(?P<org>[\w.-]+?)__(?P<name>[\w.-]+?)-[\w.]+\Z")


@dataclass
class _Trajectory:
    """One document, whichever form it has."""

    messages: list[Any]
    info: dict[str, Any]
    instance_id: str
    format: str | None


def sniff(head: list[dict[str, Any]]) -> bool:
    """A document with `trajectory_format`, or `info` and `messages`; or a bare list of messages with shell actions."""
    if any(str(d.get("trajectory_format", "")).startswith("mini-swe-agent") for d in head):
        return True
    if any(isinstance(d.get("messages"), list) and isinstance(d.get("info"), dict) and "exit_status" in d["info"] for d in head):
        return True
    texts = [str(d.get("content")) for d in head if d.get("role") in ("system", "user", "assistant")]
    return len(texts) == len(head) > 2 and any(_ACTION.search(t) for t in texts) and any("<returncode>" in t for t in texts)


def read(content: Content, context: Context) -> list[Transcript]:
    """One transcript for each trajectory of the file.

    Raises:
        TranscriptError: the file holds no message.
    """
    found = []
    for _, value in content.values(context.skips):
        trajectory = _trajectory(value, context)
        if trajectory is None:
            context.skips.add(None, "a document without messages")
            continue
        if content.cut:
            context.skips.add(len(trajectory.messages), "the document is cut off here")
        raw = [memoryview(context.source.data)] if len(content.documents) == 1 else [as_json(value).encode()]
        reader = _Reader(trajectory, context)
        reader.run()
        found.append(context.assemble(reader.findings(), reader.log, raw))
    if not found:
        raise TranscriptError(f"{context.source.name}: a mini-swe-agent trajectory without messages")
    return found


def _trajectory(value: Any, context: Context) -> _Trajectory | None:
    document: dict[str, Any] = {"messages": value} if isinstance(value, list) else value if isinstance(value, dict) else {}
    messages = document.get("messages")
    if not isinstance(messages, list) or not messages:
        return None
    info = document["info"] if isinstance(document.get("info"), dict) else {}
    form = document.get("trajectory_format")
    if isinstance(form, str) and form not in _READ_VERSIONS:
        context.skips.add(None, f"newer trajectory format {form[:60]!r}, read as far as it is known")
    base = re.sub(r"\.traj\.jsonl?$|\.jsonl?$", "", context.source.name.replace(":", "/").rsplit("/", 1)[-1])
    instance = document.get("instance_id") or info.get("instance_id") or base
    return _Trajectory(messages, info, str(instance), form if isinstance(form, str) else None)


class _Reader:
    """Reads the messages of one trajectory in order."""

    def __init__(self, trajectory: _Trajectory, context: Context) -> None:
        self.trajectory = trajectory
        self.context = context
        self.log: EventLog = context.log()
        stamps = [_time(m) if isinstance(m, dict) else None for m in trajectory.messages]
        self.is_timed = any(stamps)
        self.times = list(_clock(stamps))
        self.waiting: dict[str, int] = {}  # tool call id -> index of its call
        self.last: int | None = None  # the command that waits for its output
        self.tokens = [0, 0]
        self.format_errors = 0
        self.claim: Signal | None = None
        config = trajectory.info.get("config")
        self.config: dict[str, Any] = config if isinstance(config, dict) else {}

    def run(self) -> None:
        """Read every message; one of an unknown shape is named and skipped."""
        messages = self.trajectory.messages
        for number, message in enumerate(messages):
            if not isinstance(message, dict):
                self.context.skips.add(number, "not a message")
                continue
            try:
                self._message(number, message, is_last=number == len(messages) - 1)
            except MISREAD:
                self.context.skips.add(number, "message of an unknown shape")
        self._submission(len(messages) - 1)

    def _message(self, number: int, message: dict[str, Any], is_last: bool) -> None:
        ts = self.times[number]
        role = message.get("role") or ("assistant" if message.get("object") == "response" else message.get("type"))
        extra = message["extra"] if isinstance(message.get("extra"), dict) else {}
        text = _text(message.get("content", message.get("output") if role == "function_call_output" else None))
        if role == "system":
            self.log.add(number, "system", text, ts=ts)
        elif role == "assistant":
            self._count(message, extra)
            self._assistant(number, ts, message, extra, text)
        elif role in ("tool", "function_call_output"):
            call = self.waiting.pop(str(message.get("tool_call_id") or message.get("call_id")), None)
            self._observed(number, ts, text, extra, call)
        elif role == "exit" or (is_last and self._is_submission(text)):
            return
        elif role == "user":
            self._user(number, ts, text, extra, is_task=number <= 2 and not any(e.kind == "user" for e in self.log.events))
        else:
            self.context.skips.add(number, f"unknown role {str(role)[:40]!r}")

    def _is_submission(self, text: str) -> bool:
        """The last message repeats the patch, or is the empty output of the submitting command."""
        given = self.trajectory.info.get("submission")
        return text == given or not text.strip() or (not given and text.startswith("diff --git"))

    # --- the agent ----------------------------------------------------------------------------------------------------

    def _assistant(self, number: int, ts: datetime | None, message: dict[str, Any], extra: dict[str, Any], text: str) -> None:
        calls = list(_tool_calls(message))
        if message.get("object") == "response":
            text = "\n".join(_text(item.get("content")) for item in message.get("output") or () if item.get("type") == "message")
        reasoning = message.get("reasoning_content")
        if isinstance(reasoning, str) and reasoning.strip():
            self.log.add(number, "reasoning", reasoning, ts=ts)
        if calls:
            if text.strip():
                self.log.add(number, "reasoning", _thought(text), ts=ts)
            for call_id, name, arguments in calls:
                self._call(number, ts, call_id, name, arguments)
            return
        actions = _ACTION.findall(text)
        if len(actions) != 1 and isinstance(extra.get("actions"), list) and extra["actions"]:
            actions = [str(a.get("command", "")) for a in extra["actions"] if isinstance(a, dict)]
        if len(actions) != 1:  # the agent's own rule: anything else is rejected unrun
            self.log.add(number, "assistant", text, ts=ts)
            self.last = None
            return
        thought = _thought(text.split("```", 1)[0])
        if thought:
            self.log.add(number, "reasoning", thought, ts=ts)
        self.last = self.log.add(number, "command", actions[0].strip(), ts=ts, tool="bash")

    def _call(self, number: int, ts: datetime | None, call_id: str, name: str, arguments: Any) -> None:
        parsed = parse(arguments) if isinstance(arguments, str) else arguments
        line = parsed.get("command") if isinstance(parsed, dict) else None
        if name == "bash" and isinstance(line, str):
            self.waiting[call_id] = self.last = self.log.add(number, "command", line, ts=ts, tool="bash")
        else:
            text = arguments if isinstance(arguments, str) else as_json(arguments)
            self.waiting[call_id] = self.log.add(number, "tool_call", text, ts=ts, tool=name)

    def _count(self, message: dict[str, Any], extra: dict[str, Any]) -> None:
        response = extra["response"] if isinstance(extra.get("response"), dict) else message
        usage = response.get("usage")
        if isinstance(usage, dict):
            for at, names in enumerate((("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens"))):
                self.tokens[at] += next((n for name in names if (n := whole(usage.get(name)))), 0)

    # --- what it saw --------------------------------------------------------------------------------------------------

    def _user(self, number: int, ts: datetime | None, text: str, extra: dict[str, Any], is_task: bool) -> None:
        if text.startswith("<returncode>") and self.last is not None:
            self._observed(number, ts, text, extra, self.last)
            self.last = None
        elif late := _TIMED_OUT.match(text):
            self.log.add(
                number, "command_result", late["output"], ts=ts, tool="bash", args={"timeout": True}, answers=self.last, is_error=True
            )
            self.last = None
        elif extra.get("interrupt_type") == "FormatError" or _FORMAT_ERROR.match(text):
            self.log.add(number, "error", text, ts=ts, tool="format")
            self.format_errors += 1
            self.last = None
        elif extra.get("interrupt_type"):
            self.log.add(
                number, "error", text, ts=ts, tool="harness", args={"harness": "interrupted", "type": str(extra["interrupt_type"])}
            )
        elif _OBSERVATION.match(text) or "returncode" in extra or (self.last is not None and _EXIT_TAIL.search(text)):
            self._observed(number, ts, text, extra, self.last)
            self.last = None
        elif is_task:
            self._task(number, ts, text)
        else:
            self.log.add(number, "user", text, ts=ts)

    def _observed(self, number: int, ts: datetime | None, text: str, extra: dict[str, Any], call: int | None) -> None:
        """The output of a command, taken out of the template it was shown in."""
        args: dict[str, Any] = {}
        text, code, args["truncated"] = _unwrap(text)
        told = extra.get("returncode")
        code = code if told is None else whole(told)
        failure = str(extra.get("exception_info") or "")
        if "timed out" in failure or "TimeoutExpired" in failure:
            code, args["timeout"] = None, True
        elif "not executed" in failure:
            code, args["harness"] = None, "cascade"
        kind = self.log.events[call].kind if call is not None else "command"
        self.log.add(
            number, "command_result" if kind == "command" else "tool_result", text, ts=ts, tool="bash" if kind == "command" else None,
            args={key: value for key, value in args.items() if value}, answers=call, exit_code=code,
            is_error=code is None or code != 0,
        )  # fmt: skip

    def _task(self, number: int, ts: datetime | None, text: str) -> None:
        """The task, and around it the instructions that every run is given."""
        start, end = self._task_span(text)
        for around in (text[:start], text[end:]):
            around = re.sub(r"</?pr_description>|Consider the following PR description:", "", around).strip()
            if around:
                self.log.add(number, "system", around, ts=ts)
        self.log.add(number, "user", text[start:end], ts=ts)

    def _task_span(self, text: str) -> tuple[int, int]:
        for pattern in (_TASK, _PLAIN_TASK):
            match = pattern.search(text)
            if match and match["task"]:
                return match.span("task")
        agent = self.config.get("agent")
        template = str(agent.get("instance_template", "")) if isinstance(agent, dict) else ""
        before, found, after = template.partition("{{task}}")
        lead = before.strip().rsplit("\n", 1)[-1].strip()
        trail = re.split(r"\{[{%]", after.strip(), maxsplit=1)[0].strip()[:60]
        if not found or (lead and lead not in text):
            return 0, len(text)
        start = text.find(lead) + len(lead) if lead else 0
        end = text.find(trail, start) if trail else -1
        task = text[start : end if end > 0 else len(text)]
        start += len(task) - len(task.lstrip())
        return start, start + len(task.strip())

    def _submission(self, number: int) -> None:
        """The patch that the run handed in."""
        last = self.trajectory.messages[-1]
        extra = last["extra"] if isinstance(last, dict) and isinstance(last.get("extra"), dict) else {}
        patch = self.trajectory.info.get("submission") or extra.get("submission")
        if not patch and isinstance(last, dict) and last.get("role") == "user" and _text(last.get("content")).startswith("diff --git"):
            patch = last["content"]
        if isinstance(patch, str) and patch.strip():
            self.log.add(
                number, "file_edit", patch, ts=self.times[number], tool="submission", answers=self.last, paths=patches.paths_of_diff(patch)
            )
        elif self._status() == "Submitted":
            self.claim = Signal("claim", "empty patch")

    # --- the whole ----------------------------------------------------------------------------------------------------

    def _status(self) -> str | None:
        last = self.trajectory.messages[-1]
        extra = last["extra"] if isinstance(last, dict) and isinstance(last.get("extra"), dict) else {}
        status = self.trajectory.info.get("exit_status") or extra.get("exit_status")
        return str(status) if status else None

    def findings(self) -> Findings:
        """What the document says about the run."""
        info, config = self.trajectory.info, self.config
        stats = info["model_stats"] if isinstance(info.get("model_stats"), dict) else {}
        model = config["model"] if isinstance(config.get("model"), dict) else {}
        place = config["environment"] if isinstance(config.get("environment"), dict) else {}
        started = next((t for t in self.times if t is not None), None)
        instance = self.trajectory.instance_id
        match = _INSTANCE.match(instance)
        status = self._status()
        signals = [Signal("exit_status", status)] if status else []
        if status and limit_reason(status):
            signals.append(Signal("limit", status))
        if self.claim or status == "Submitted":
            signals.append(self.claim or Signal("claim", "submitted"))
        cwd = place.get("cwd")
        kind = (
            str(place.get("environment_class") or config.get("environment_type") or "")
            .rsplit(".", 1)[-1]
            .lower()
            .removesuffix("environment")
        )
        return Findings(
            engine=ENGINE,
            session_id=f"{instance}@{started:%Y%m%dT%H%M%SZ}" if started and self.is_timed else instance,
            names=(instance,),
            model=str(model["model_name"]) if model.get("model_name") else None,
            repo=f"{match['org']}/{match['name']}" if match else None,
            cwd=cwd if isinstance(cwd, str) and cwd else ("/testbed" if match else None),
            environment=Environment(os="linux" if kind and kind != "local" else None, sandbox=kind if kind and kind != "local" else None),
            cost_usd=float(stats["instance_cost"]) if isinstance(stats.get("instance_cost"), int | float) else None,
            tokens_in=self.tokens[0] or None,
            tokens_out=self.tokens[1] or None,
            signals=signals,
        )


def _clock(own: list[datetime | None]) -> Iterator[datetime | None]:
    """The time of each message: its own, else that of the one before; before the first known one, that."""
    current = next((t for t in own if t is not None), None)
    for time in own:
        current = time or current
        yield current


def _time(message: dict[str, Any]) -> datetime | None:
    extra = message.get("extra")
    if isinstance(extra, dict):
        response = extra["response"] if isinstance(extra.get("response"), dict) else {}
        found = when(extra.get("timestamp")) or when(response.get("created")) or when(response.get("created_at"))
        if found:
            return found
    return when(message.get("created_at"))


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    return "\n".join(str(p["text"]) for p in parts if isinstance(p, dict) and isinstance(p.get("text"), str))


def _thought(text: str) -> str:
    return re.sub(r"\A\s*(?:\*\*)?THOUGHTS?:?(?:\*\*)?:?\s*", "", text).strip()


def _tool_calls(message: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """(id, name, arguments) of a message's calls, in the form of chat completions or of responses."""
    for call in message.get("tool_calls") or ():
        function = call["function"]
        yield str(call.get("id")), str(function.get("name")), function.get("arguments")
    if message.get("object") == "response":
        for item in message.get("output") or ():
            if item.get("type") == "function_call":
                yield str(item.get("call_id")), str(item.get("name")), item.get("arguments")


def _unwrap(text: str) -> tuple[str, int | None, bool]:
    """(output, exit code, whether its middle was cut) of an observation as the known templates show it."""
    match = _OBSERVATION.match(text)
    code = int(match["code"]) if match else None
    rest = text[match.end() :] if match else text
    if "<output_head>" in rest and "<output_tail>" in rest:
        head, elided, tail = (_between(rest, tag) for tag in ("output_head", "elided_chars", "output_tail"))
        return f"{head}\n{elided or 'characters elided'}\n{tail}", code, True
    if rest.startswith("<output>") and rest.rstrip().endswith("</output>"):
        return rest[len("<output>") : rest.rindex("</output>")].removeprefix("\n").removesuffix("\n"), code, False
    ending = _EXIT_TAIL.search(rest, max(0, len(rest) - 60)) if code is None else None
    if ending:
        rest, code = rest[: ending.start()], int(ending[1])
    return rest, code, "characters elided" in rest and bool(_ELIDED.search(rest))


def _between(text: str, tag: str) -> str:
    """What the first `<tag>` and the last `</tag>` enclose, without the line breaks of the template."""
    start, end = text.find(f"<{tag}>"), text.rfind(f"</{tag}>")
    return text[start + len(tag) + 2 : end].removeprefix("\n").removesuffix("\n") if 0 <= start < end else ""
