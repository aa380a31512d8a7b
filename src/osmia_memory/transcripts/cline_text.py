"""Texts of Cline -> their parts: what was typed, what the harness put beside it, tools as XML, facts of a task. Pure."""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from osmia_memory.transcripts.events import span, when, whole
from osmia_memory.transcripts.records import parse

_HARNESS = re.compile(
    r"<(?P<tag>environment_details|SYSTEM_NOTICE|explicit_instructions|file_content|folder_content|workspace_diagnostics|git_working_state|"
    r"terminal_output|url_content|git_commit|error|hook_context|new_task_context|current_mode)\b[^>]*>.*?(?:</(?P=tag)>|\Z)",
    re.S,
)
_TYPED = re.compile(r"<(task|feedback|answer|user_message|user_feedback|user_input)\b[^<>]*>")
_RESULT = re.compile(r"\[(?P<tool>[a-z_]+)(?: for '(?P<what>.*?)')?\] Result:\s*", re.S)
_RESUMED = re.compile(r"\[TASK RESUMPTION\]|\[ERROR\] You did not use a tool|# Todo List|Context summary:|This session is being continued")
_COMPACTED = re.compile(r"Context summary:|This session is being continued|<SYSTEM_NOTICE>\s*Earlier context was compacted")
_FOLDER = re.compile(r"# Current (?:Working|Workspace) Directory \((.+?)\)")
_TOOLS = (
    "execute_command|read_file|write_to_file|replace_in_file|apply_diff|insert_content|search_and_replace|search_files|list_files|"
    "list_code_definition_names|browser_action|use_mcp_tool|access_mcp_resource|ask_followup_question|attempt_completion|new_task|"
    "plan_mode_respond|switch_mode|fetch_instructions|load_mcp_documentation|web_fetch|condense|update_todo_list"
)
_CALL = re.compile(rf"<(?P<tool>{_TOOLS})>\s*(?P<inside>.*?)\s*(?:</(?P=tool)>|\Z)", re.S)
_ARGUMENT = re.compile(r"<([a-z_]+)>")
_THINKING = re.compile(r"</?thinking>")


class Part(NamedTuple):
    """A piece of a text in the person's role. `kind` is typed, result, rest, compaction, or the harness's own name for it."""

    kind: str
    text: str
    name: str = ""  # of a result's tool


class TaskFacts(NamedTuple):
    """What lies beside a task; None where nothing tells. Cost in dollars."""

    model: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost: float | None = None
    started: datetime | None = None
    finished: datetime | None = None


def parts(text: str) -> Iterator[Part]:
    """The pieces of a text in order. `rest` is what no tag and no tool's name explains: typed, or a tool's output."""
    at = 0
    for match in _HARNESS.finditer(text):
        yield from _own(text[at : match.start()])
        tag = match["tag"]
        kind = "compaction" if _COMPACTED.match(match[0]) else "environment" if tag == "environment_details" else tag
        yield Part(kind, match[0])
        at = match.end()
    yield from _own(text[at:])


def _own(text: str) -> Iterator[Part]:
    if not text.strip():
        return
    result = _RESULT.match(text.lstrip())
    typed = list(_tagged(_TYPED, text))
    if result:
        yield Part("result", text.lstrip()[result.end() :], result["tool"])
    elif typed:
        yield from (Part("typed", inside.strip()) for _, inside in typed if inside.strip())
    elif _COMPACTED.match(text.lstrip()):
        yield Part("compaction", text.strip())
    elif _RESUMED.match(text.lstrip()):
        yield Part("notice", text.strip())
    else:
        yield Part("rest", text.strip())


def _tagged(opening: re.Pattern[str], text: str) -> Iterator[tuple[str, str]]:
    """(name, inside) of what stands between a tag and its end. Each end that is nowhere is looked for once."""
    at = 0
    endless: set[str] = set()
    for tag in opening.finditer(text):
        name = tag[1]
        if tag.start() < at or name in endless:
            continue
        end = text.find(f"</{name}>", tag.end())
        if end < 0:
            endless.add(name)
            continue
        yield name, text[tag.end() : end].removeprefix("\n").removesuffix("\n")
        at = end


def replaced_by(diff: str) -> str:
    """The new text of a search-and-replace edit."""
    new: list[str] = []
    is_new = False
    for line in diff.split("\n"):
        if re.match(r"(?:>{7}|\+{7}) REPLACE", line):
            is_new = False
        elif is_new:
            new.append(line)
        elif line.rstrip() == "=======":
            is_new = True
    return "\n".join(new)


def folder(environment: str) -> str | None:
    """The checkout that the environment's details name."""
    match = _FOLDER.search(environment)
    return match[1] if match else None


def xml_calls(text: str) -> tuple[str, list[tuple[str, dict[str, str]]]]:
    """(what the agent says, its calls) of a reply in which tools are XML."""
    calls = [(m["tool"], dict(_tagged(_ARGUMENT, m["inside"]))) for m in _CALL.finditer(text)]
    return _THINKING.sub("", _CALL.sub("", text)) if calls or "<thinking>" in text else text, calls


def task_facts(shown: Any, metadata: Any) -> TaskFacts:
    """Tokens, cost and times of a task by what was shown of it, and its model."""
    rows = [r for r in shown if isinstance(r, dict)] if isinstance(shown, list) else []
    requests = [told for r in rows if r.get("say") == "api_req_started" and isinstance(told := parse(str(r.get("text") or "")), dict)]
    usages = metadata.get("model_usage") if isinstance(metadata, Mapping) else None
    models = [str(u["model_id"]) for u in usages if isinstance(u, dict) and u.get("model_id")] if isinstance(usages, list) else []
    started, finished = span(when(r.get("ts")) for r in rows)
    inputs = [sum(whole(q.get(k)) or 0 for k in ("tokensIn", "cacheWrites", "cacheReads")) for q in requests if "tokensIn" in q]
    outputs = [whole(q.get("tokensOut")) or 0 for q in requests if "tokensOut" in q]
    costs = [float(q["cost"]) for q in requests if isinstance(q.get("cost"), int | float)]
    return TaskFacts(
        models[-1] if models else None,
        sum(inputs) if inputs else None,
        sum(outputs) if outputs else None,
        sum(costs) if costs else None,
        started,
        finished,
    )
