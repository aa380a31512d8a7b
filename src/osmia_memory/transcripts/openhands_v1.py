"""Events of OpenHands' SDK (version 1): records told apart by `kind`, results paired by `action_id` or `tool_call_id`."""

import re
from typing import Any

from osmia_memory.models import Signal
from osmia_memory.transcripts import benchmark
from osmia_memory.transcripts.events import whole
from osmia_memory.transcripts.openhands_steps import Steps
from osmia_memory.transcripts.outcome import claim_of
from osmia_memory.transcripts.records import as_json, parse

_SHELLS = frozenset({"terminal", "execute_bash", "bash"})
_EDITORS = frozenset({"file_editor", "str_replace_editor", "planning_file_editor", "edit"})
_IGNORED = frozenset(
    "CondensationRequest TokenEvent StreamingDeltaEvent LLMCompletionLogEvent SecurityAnalyzerConfigurationEvent "
    "ACPTurnUsageEvent ServerErrorEvent".split()
)
_PROVIDER = re.compile(r"LLM|litellm|RateLimit|Authentication|ContextWindow|APIConnection|Timeout", re.I)
_Event = dict[str, Any]


class Reader:
    """Reads the events of one conversation in order."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.spoken = False
        self._tool_calls: dict[str, Any] = {}  # tool call id -> id of its action
        self._summaries: set[str] = set()
        self._acp_done: set[str] = set()

    def take(self, event: _Event) -> str | None:
        """Read one event; returns its kind if nobody knows it."""
        kind = str(event["kind"])
        handlers = {
            "SystemPromptEvent": self._system,
            "MessageEvent": self._message,
            "ActionEvent": self._action,
            "ObservationEvent": self._observation,
            "UserRejectObservation": self._rejected,
            "AgentErrorEvent": self._agent_error,
            "ConversationErrorEvent": self._conversation_error,
            "ConversationStateUpdateEvent": self._state,
            "Condensation": self._condensed,
            "CondensationSummaryEvent": self._condensed,
            "PauseEvent": self._stopped,
            "InterruptEvent": self._stopped,
            "ACPToolCallEvent": self._acp_call,
            "HookExecutionEvent": self._hook,
        }
        handler = handlers.get(kind)
        if handler is None:
            return None if kind in _IGNORED else kind
        handler(event)
        return None

    # --- words --------------------------------------------------------------------------------------------------------

    def _system(self, event: _Event) -> None:
        for key in ("system_prompt", "dynamic_context"):
            told = event.get(key)
            self.steps.say("system", told.get("text") if isinstance(told, dict) else told)

    def _message(self, event: _Event) -> None:
        message = event["llm_message"]
        text = _text(message.get("content"))
        if event.get("source") == "user":
            framed = benchmark.split(text) if not self.spoken else benchmark.Framed("", text, "")
            self.steps.say("system", framed.before)
            self.steps.say("user", framed.task, args={"by": "agent"} if event.get("sender") else None, origin=event.get("id"))
            self.steps.say("system", framed.after)
            self.spoken = True
        else:
            self.steps.think(message.get("reasoning_content"))
            self.steps.say("assistant", text, origin=event.get("id"))
        self.steps.say("system", _text(event.get("extended_content")), tool="recall")

    def _condensed(self, event: _Event) -> None:
        summary = str(event.get("summary") or "")
        if summary not in self._summaries:
            self._summaries.add(summary)
            self.steps.add("compaction", summary, tool="condensation")

    # --- calls --------------------------------------------------------------------------------------------------------

    def _action(self, event: _Event) -> None:
        steps = self.steps
        key, tool = event.get("id"), str(event.get("tool_name") or "")
        self._tool_calls[str(event.get("tool_call_id"))] = key
        steps.think(event.get("reasoning_content"), _text(event.get("thought")))
        action = event.get("action")
        if not isinstance(action, dict):  # arguments that no tool could be called with
            call = event.get("tool_call")
            given = call.get("arguments") if isinstance(call, dict) else None
            action = parse(given) if isinstance(given, str) else given
        action = {k: v for k, v in action.items() if k not in ("kind", "security_risk")} if isinstance(action, dict) else {}
        if tool in _SHELLS and isinstance(action.get("command"), str):
            steps.command(key, action["command"], tool, is_input=action.get("is_input") is True)
        elif tool in _EDITORS and action.get("path"):
            steps.edit(key, action, tool)
        elif tool == "think":
            steps.think(action.get("thought"))
        elif tool == "finish":
            text = str(action.get("message") or "")
            steps.say("assistant", text, origin=key)
            claim = claim_of(text)
            steps.claim = Signal("claim", claim, len(steps.log.events) - 1) if claim else None
        else:
            steps.called(key, "tool_call", as_json(action.get("data", action)), tool)

    def _call_of(self, event: _Event, line: Any = None) -> int | None:
        key = event.get("action_id") or self._tool_calls.get(str(event.get("tool_call_id")))
        return self.steps.call_of(key or f"?{event.get('id')}", line)

    def _observation(self, event: _Event) -> None:
        steps, observation = self.steps, event["observation"]
        tool = str(event.get("tool_name") or "")
        text = _text(observation.get("content")) or str(observation.get("output") or observation.get("error") or "")
        if tool in ("think", "finish"):
            return
        is_error = observation.get("is_error") is True
        if tool in _SHELLS:
            metadata = observation["metadata"] if isinstance(observation.get("metadata"), dict) else {}
            steps.located(metadata)
            code = whole(observation.get("exit_code"))
            steps.ran(
                self._call_of(event, observation.get("command")), text, metadata.get("exit_code") if code is None else code,
                note=f"{metadata.get('prefix') or ''}{metadata.get('suffix') or ''}", is_error=is_error,
                timed_out=observation.get("timeout") is True,
            )  # fmt: skip
        else:
            call = self._call_of(event)
            if observation.get("prev_exist") is False and call is not None and steps.log.events[call].kind == "file_edit":
                steps.log.mark(call, args={"created": True})
            steps.returned(call, text, is_error=is_error)
        steps.say("system", _text(event.get("extended_content")), tool="recall")

    def _rejected(self, event: _Event) -> None:
        reason = str(event.get("rejection_reason") or "")
        self.steps.returned(self._call_of(event), f"Action rejected: {reason}", is_error=True, harness="refused")
        if event.get("rejection_source", "user") == "user" and reason != "User rejected the action":
            self.steps.say("user", reason, origin=event.get("id"))

    def _acp_call(self, event: _Event) -> None:
        """A call of an agent behind the protocol for editors: told anew as it goes on, its last word counts."""
        key, kind = str(event["tool_call_id"]), str(event.get("tool_kind") or "")
        given = event["raw_input"] if isinstance(event.get("raw_input"), dict) else {}
        if key not in self.steps.calls:
            command, path = given.get("command"), given.get("file_path") or given.get("path")
            title = str(event.get("title") or kind)
            if kind == "execute" and command:
                line = command if isinstance(command, str) else " ".join(map(str, command))
                self.steps.command(key, line, "acp")
            elif kind in ("edit", "delete", "move") and isinstance(path, str):
                text = given.get("content") or given.get("new_string") or ""
                self.steps.called(key, "file_edit", str(text), title, paths=self.steps.paths(path))
            elif kind == "read" and isinstance(path, str):
                self.steps.called(key, "file_read", "", title, paths=self.steps.paths(path))
            else:
                self.steps.called(key, "tool_call", as_json(given), title)
        if event.get("status") in ("completed", "failed") and key not in self._acp_done:
            self._acp_done.add(key)
            output = event.get("raw_output")
            text = output if isinstance(output, str) else _text(event.get("content")) or ("" if output is None else as_json(output))
            failed = event.get("is_error") is True or event["status"] == "failed"
            self.steps.returned(self.steps.calls[key], text, is_error=failed)

    # --- the harness --------------------------------------------------------------------------------------------------

    def _agent_error(self, event: _Event) -> None:
        self.steps.returned(self._call_of(event), str(event["error"]), is_error=True)

    def _conversation_error(self, event: _Event) -> None:
        code, detail = str(event.get("code") or ""), str(event.get("detail") or "")
        tool = "provider" if _PROVIDER.search(code) else "harness"
        at = self.steps.add("error", f"{code}: {detail}", tool=tool, is_error=True)
        limit = re.search(r"MaxIterations|IterationLimit|BudgetExceeded", code)
        self.steps.ending = Signal("limit", code, at) if limit else Signal("exit_status", "error", at)

    def _stopped(self, event: _Event) -> None:
        kind = str(event["kind"]).removesuffix("Event").lower()
        self.steps.add("error", str(event.get("detail") or f"{kind} by the user"), tool="harness", args={"harness": "interrupted"})
        self.steps.ending = Signal("exit_status", "interrupted")

    def _hook(self, event: _Event) -> None:
        if event.get("success") is False or event.get("blocked") is True:
            text = "\n".join(str(event[k]) for k in ("stderr", "stdout", "reason") if event.get(k))
            args = {
                "command": str(event.get("hook_command") or ""),
                "exit_code": whole(event.get("exit_code")),
                "event": str(event.get("hook_event_type") or ""),
            }
            self.steps.add("system", text, tool="hook", args=args, is_error=True)

    def _state(self, event: _Event) -> None:
        key, value = event.get("key"), event.get("value")
        if key == "full_state" and isinstance(value, dict):
            self.base_state(value)
        elif key == "execution_status":
            self._status(str(value))
        elif key == "stats":
            self._stats(value)

    def base_state(self, state: _Event) -> None:
        """A conversation's whole state, as an event or from the file beside its events."""
        agent = state.get("agent")
        llm = agent.get("llm") if isinstance(agent, dict) else None
        if isinstance(llm, dict) and llm.get("model"):
            self.steps.model = str(llm["model"])
        workspace = state.get("workspace")
        if isinstance(workspace, dict) and isinstance(workspace.get("working_dir"), str):
            self.steps.cwd = self.steps.cwd or workspace["working_dir"]
        if isinstance(state.get("id"), str):
            self.steps.session_id = state["id"]
        self._stats(state.get("stats"))
        self._status(str(state.get("execution_status")))

    def _status(self, status: str) -> None:
        if status in ("finished", "error", "stuck"):
            kept = self.steps.ending if status == "error" and self.steps.ending and self.steps.ending.name == "limit" else None
            self.steps.ending = kept or Signal("exit_status", status)
        elif status == "running":
            self.steps.ending = None

    def _stats(self, stats: Any) -> None:
        """Totals so far: of the agent's model and of its helpers together."""
        usages = stats.get("usage_to_metrics") if isinstance(stats, dict) else None
        metrics = [m for m in usages.values() if isinstance(m, dict)] if isinstance(usages, dict) else []
        if not metrics:
            return
        costs = [m["accumulated_cost"] for m in metrics if isinstance(m.get("accumulated_cost"), int | float)]
        tokens = [m["accumulated_token_usage"] for m in metrics if isinstance(m.get("accumulated_token_usage"), dict)]
        told = (sum(whole(t.get("prompt_tokens")) or 0 for t in tokens), sum(whole(t.get("completion_tokens")) or 0 for t in tokens))
        self.steps.cost = sum(costs) or self.steps.cost
        self.steps.tokens = told if any(told) else self.steps.tokens
        main: dict[str, Any] = max(tokens, key=lambda t: whole(t.get("completion_tokens")) or 0, default={})
        self.steps.model = str(main["model"]) if main.get("model") else self.steps.model


def _text(content: Any) -> str:
    """The texts of a list of parts; images are named, not shown."""
    if isinstance(content, str):
        return content
    parts = [p for p in content if isinstance(p, dict)] if isinstance(content, list) else []
    return "\n".join(p["text"] if isinstance(p.get("text"), str) else "[image]" for p in parts if "text" in p or p.get("type") == "image")
