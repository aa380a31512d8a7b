"""Codex rollout files: a call and its output apart, texts told twice (as item and as event), counts that add up."""

import json
from datetime import datetime

from steps import Done, Edit, Interrupt, Played, Poll, Read, Record, Result, Say, Sh, Think, User

from engines.common import digest, hunks, iso, token, tokens, uuid7

MODEL, VERSION = "gpt-5.3-codex", "0.118.0"
WINDOW = 258_400
MAX_TOKENS = 1_500  # of one output, as the calls ask
_POLICY = "<permissions instructions>\nThe workspace may be written to. There is no access to the network.\n</permissions instructions>"


def write(played: Played) -> list[Record]:
    """The records of the rollout file, in order."""
    return _Rollout(played).records()


class _Rollout:
    def __init__(self, played: Played) -> None:
        self.played, self.story = played, played.story
        self.id = uuid7(self.story.start, "codex", self.story.slug)
        self.lines: list[Record] = []
        self.turn, self.turns, self.turn_began = "", 0, self.story.start
        self.running = 0
        self.used = {"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0, "reasoning_output_tokens": 0}
        self.context, self.said, self.thought = 6_900, 0, 0
        self.last_said = ""

    def records(self) -> list[Record]:
        self._meta()
        self._turn(self.story.task, self.story.start)
        for done in self.played.done:
            self._step(done)
        self._turn_over(self.played.done[-1].at)
        return self.lines

    def _step(self, done: Done) -> None:
        step, at = done.step, done.at
        if isinstance(step, Think):
            self._event(at, "agent_reasoning", text=step.text)
            summary = [{"type": "summary_text", "text": step.text}]
            self._item(at, type="reasoning", summary=summary, content=None, encrypted_content=digest(self.id, step.text)[:40])
            self.thought += tokens(step.text)
        elif isinstance(step, Say):
            self._say(step.text, at)
        elif isinstance(step, User):
            self._turn_over(at)
            self._turn(step.text, at)
        elif isinstance(step, Interrupt):
            self._event(at, "turn_aborted", turn_id=self.turn, reason="interrupted")
        elif isinstance(step, Edit):
            self._patch(step, done)
        elif isinstance(step, Poll):
            given = {"session_id": self.running, "chars": "", "yield_time_ms": 30_000, "max_output_tokens": MAX_TOKENS}
            self._call("write_stdin", given, done)
        else:
            self._command(step, done)

    def _command(self, step: object, done: Done) -> None:
        command, wait = (f"sed -n '1,200p' {step.path}", None) if isinstance(step, Read) else ("", None)
        if isinstance(step, Sh):
            command, wait = step.command, step.yields
        given: Record = {"cmd": command, "workdir": self.played.cwd}
        given |= {"yield_time_ms": int(1000 * (wait or 10)), "max_output_tokens": MAX_TOKENS}
        if done.result.code is None:
            self.running = 10_000 + int(digest(self.id, command)[:4], 16)
        self._call("exec_command", given, done)

    def _call(self, name: str, given: Record, done: Done) -> None:
        call = token("call_", 24, self.id, len(self.lines))
        arguments = json.dumps(given)
        self._item(done.at, type="function_call", name=name, arguments=arguments, call_id=call)
        output = self._output(call, done.result)
        self._item(done.at, type="function_call_output", call_id=call, output=output)
        self._count(done.at, arguments, output)

    def _output(self, call: str, result: Result) -> str:
        state = f"Process running with session ID {self.running}" if result.code is None else f"Process exited with code {result.code}"
        count, text = tokens(result.stdout), result.stdout
        if count > MAX_TOKENS:
            half, lines = MAX_TOKENS * 2, text.count("\n")
            text = f"Total output lines: {lines}\n\n{text[:half]}…{count - MAX_TOKENS} tokens truncated…{text[-half:]}"
        chunk, wall = digest(call)[:6], result.seconds
        return f"Chunk ID: {chunk}\nWall time: {wall:.4f} seconds\n{state}\nOriginal token count: {count}\nOutput:\n{text}"

    def _patch(self, step: Edit, done: Done) -> None:
        call = token("call_", 24, self.id, len(self.lines))
        path = f"{self.played.cwd}/{step.path}"
        diff = hunks(done.result.before, done.result.after)
        if step.old:
            body = [f"*** Update File: {step.path}", *("@@" if line.startswith("@@ ") else line for line in diff)]
            change: Record = {"type": "update", "unified_diff": "\n".join(diff) + "\n", "move_path": None}
        else:
            body = [f"*** Add File: {step.path}", *(f"+{line}" for line in step.new.splitlines())]
            change = {"type": "add", "content": step.new}
        text = "\n".join(["*** Begin Patch", *body, "*** End Patch"]) + "\n"
        self._item(done.at, type="custom_tool_call", status="completed", call_id=call, name="apply_patch", input=text)
        said = f"Success. Updated the following files:\n{'M' if step.old else 'A'} {step.path}\n"
        state: Record = {"stdout": said, "stderr": "", "success": True, "changes": {path: change}, "status": "completed"}
        self._event(done.at, "patch_apply_end", call_id=call, turn_id=self.turn, **state)
        self._item(done.at, type="custom_tool_call_output", call_id=call, output=f"Exit code: 0\nWall time: 0 seconds\nOutput:\n{said}")
        self._count(done.at, text, said)

    # --- turns and envelopes ------------------------------------------------------------------------------------------

    def _meta(self) -> None:
        git = {"commit_hash": self.played.base_commit, "branch": self.story.branch, "repository_url": self.played.repository_url}
        meta: Record = {"id": self.id, "timestamp": iso(self.story.start), "cwd": self.played.cwd, "originator": "codex_exec"}
        meta |= {"cli_version": VERSION, "source": "exec", "model_provider": "openai"}
        meta |= {
            "base_instructions": {"text": "You are a coding agent. Work in the folder you are given and say what you did."},
            "git": git,
        }
        self._append(self.story.start, "session_meta", meta)

    def _turn(self, text: str, at: datetime) -> None:
        self.turns += 1
        self.turn, self.turn_began = uuid7(at, self.id, "turn", self.turns), at
        self._event(at, "task_started", turn_id=self.turn, started_at=int(at.timestamp()), model_context_window=WINDOW)
        if self.turns == 1:
            self._message(at, "developer", _POLICY)
            place = f"<environment_context>\n  <cwd>{self.played.cwd}</cwd>\n  <shell>bash</shell>\n  <current_date>{at.date()}</current_date>\n"
            self._message(at, "user", place + "  <timezone>Etc/UTC</timezone>\n</environment_context>")
        sandbox = {"type": "workspace-write", "network_access": False, "exclude_tmpdir_env_var": False, "exclude_slash_tmp": False}
        context: Record = {"turn_id": self.turn, "cwd": self.played.cwd, "current_date": str(at.date()), "timezone": "Etc/UTC"}
        context |= {"approval_policy": "never", "sandbox_policy": sandbox, "model": MODEL, "effort": "medium", "summary": "auto"}
        self._append(at, "turn_context", context)
        self._message(at, "user", text)
        self._event(at, "user_message", message=text, images=[], local_images=[], text_elements=[])
        self.context += tokens(text)

    def _turn_over(self, at: datetime) -> None:
        spent = int((at - self.turn_began).total_seconds() * 1000)
        when = int(at.timestamp())
        self._event(at, "task_complete", turn_id=self.turn, last_agent_message=self.last_said or None, completed_at=when, duration_ms=spent)

    def _say(self, text: str, at: datetime) -> None:
        self._event(at, "agent_message", message=text)
        self._message(at, "assistant", text)
        self.said += tokens(text)
        self.last_said = text

    def _message(self, at: datetime, role: str, text: str) -> None:
        kind = "output_text" if role == "assistant" else "input_text"
        self._item(at, type="message", role=role, content=[{"type": kind, "text": text}])

    def _count(self, at: datetime, sent: str, got: str) -> None:
        made, thought = tokens(sent) + self.said + self.thought, self.thought
        self.said = self.thought = 0
        last = {"input_tokens": self.context, "cached_input_tokens": self.context * 9 // 10, "output_tokens": made}
        last |= {"reasoning_output_tokens": thought}
        for key, value in last.items():
            self.used[key] += value
        self.context += made + tokens(got)
        info = {"total_token_usage": _with_total(self.used), "last_token_usage": _with_total(last), "model_context_window": WINDOW}
        self._event(at, "token_count", info=info, rate_limits=None)

    def _event(self, at: datetime, kind: str, **fields: object) -> None:
        self._append(at, "event_msg", {"type": kind, **fields})

    def _item(self, at: datetime, **fields: object) -> None:
        self._append(at, "response_item", fields)

    def _append(self, at: datetime, kind: str, payload: Record) -> None:
        self.lines.append({"timestamp": iso(at), "type": kind, "payload": payload})


def _with_total(counts: dict[str, int]) -> dict[str, int]:
    return {**counts, "total_tokens": counts["input_tokens"] + counts["output_tokens"]}
