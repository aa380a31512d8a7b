"""Events of OpenHands before its SDK: `action` and `observation` records, with or without ids, nested or flat."""

import re
from typing import Any

from osmia_memory.models import Signal
from osmia_memory.transcripts import benchmark
from osmia_memory.transcripts.events import whole
from osmia_memory.transcripts.openhands_steps import Steps
from osmia_memory.transcripts.outcome import claim_of
from osmia_memory.transcripts.records import as_json, parse

_SKILL = re.compile(
    r"\s*(?:print\()?(?P<name>open_file|create_file|edit_file\w*|insert_content_at_line|append_file|search_file)\(\s*(?:\w+\s*=\s*)?(?P<q>['\"])(?P<path>.+?)(?P=q)"
)
_SKILL_FAILED = re.compile(r"\s*\[?(?:Your proposed edit has introduced new syntax error|No exact match found|ERROR\b|Traceback)")
_CONTINUE = re.compile(r"\s*(?:Please continue working on the task on whatever approach|\[?Auto(?:matic)? response)")
_PROVIDER = re.compile(r"litellm|ERROR_LLM|RateLimit|AuthenticationError|ContextWindowExceeded|APIConnection|InternalServerError", re.I)
# The harness talking to itself.
_IGNORED_ACTIONS = frozenset("change_agent_state null pause resume stop init start recall condensation_request loop_recovery".split())
_IGNORED_OBSERVATIONS = frozenset("null think condense success agent_think recall_failure download".split())
_CALLS = frozenset(
    "browse browse_interactive mcp call_tool_mcp delegate task_tracking add_task modify_task send_pr push summarize kill".split()
)
_ENDINGS = frozenset({"finished", "error", "rejected"})
_Event = dict[str, Any]


class Reader:
    """Reads the events of one conversation in order."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.spoken = False  # the task was given
        self._usage: dict[str, tuple[int, int]] = {}

    def take(self, event: _Event) -> str | None:
        """Read one event; returns its type if nobody knows it."""
        self._metadata(event)
        if event.get("action") is not None:
            kind = str(event["action"])
            nested = event.get("args")
            return self._action(kind, event, nested if isinstance(nested, dict) else event)
        kind = str(event.get("observation"))
        extras = event.get("extras")
        return self._observation(kind, event, extras if isinstance(extras, dict) else event)

    def _metadata(self, event: _Event) -> None:
        """Model and tokens: each reply of the model stands at every call it made and at every result of these."""
        meta = event.get("tool_call_metadata")
        reply = meta.get("model_response") if isinstance(meta, dict) else None
        if isinstance(reply, dict):
            self.steps.model = str(reply["model"]) if reply.get("model") else self.steps.model
            usage = reply.get("usage")
            if isinstance(usage, dict):
                self._usage[str(reply.get("id"))] = (whole(usage.get("prompt_tokens")) or 0, whole(usage.get("completion_tokens")) or 0)
                self.steps.tokens = (sum(i for i, _ in self._usage.values()), sum(o for _, o in self._usage.values()))
        metrics = event.get("llm_metrics")
        if isinstance(metrics, dict):  # totals so far
            cost = metrics.get("accumulated_cost")
            self.steps.cost = float(cost) if isinstance(cost, int | float) and cost > 0 else self.steps.cost
            total = metrics.get("accumulated_token_usage")
            if isinstance(total, dict) and whole(total.get("prompt_tokens")):
                self.steps.tokens = (total["prompt_tokens"], whole(total.get("completion_tokens")) or 0)
                self._usage.clear()

    # --- actions ------------------------------------------------------------------------------------------------------

    def _action(self, kind: str, event: _Event, args: _Event) -> str | None:
        steps = self.steps
        key = event.get("id")
        if kind in _IGNORED_ACTIONS:
            return None
        if kind == "message":
            self._message(event, args)
        elif kind == "system":
            steps.say("system", args.get("content"))
        elif kind == "condensation":
            steps.add("compaction", str(args.get("summary") or ""), tool="condensation")
        elif kind == "think":
            steps.think(args.get("thought"))
        elif kind in ("finish", "reject"):
            self._finished(kind, event, args)
        else:
            steps.think(args.get("thought"))
            return self._call(kind, key, event, args)
        return None

    def _call(self, kind: str, key: Any, event: _Event, args: _Event) -> str | None:
        steps = self.steps
        if kind == "run":
            steps.command(key, args["command"], "bash", is_input=str(args.get("is_input")).lower() == "true")
        elif kind == "run_ipython":
            self._python(key, args["code"])
        elif kind == "read":
            steps.called(key, "file_read", "", "read", paths=steps.paths(args.get("path")))
        elif kind in ("edit", "write"):
            steps.edit(key, {**args, **self._arguments(event)}, kind)
        elif kind in _CALLS:
            hidden = ("thought", "action", "source", "timestamp", "id", "message", "confirmation_state", "security_risk")
            told = {k: v for k, v in args.items() if k not in hidden}
            steps.called(key, "tool_call", as_json(told), str(args.get("name") or kind))
        else:
            return f"action {kind}"
        return None

    @staticmethod
    def _arguments(event: _Event) -> _Event:
        """What the model wrote in the call of an editor; the action of some versions has only the path."""
        meta = event.get("tool_call_metadata")
        if not isinstance(meta, dict) or not isinstance(meta.get("model_response"), dict):
            return {}
        for choice in meta["model_response"].get("choices") or ():
            for call in choice["message"].get("tool_calls") or ():
                if call.get("id") == meta.get("tool_call_id"):
                    parsed = parse(call["function"]["arguments"])
                    return {k: v for k, v in parsed.items() if k != "path"} if isinstance(parsed, dict) else {}
        return {}

    def _python(self, key: Any, code: str) -> None:
        """Python in a notebook; the file functions that older versions offer there are reads and edits."""
        skill = _SKILL.match(code)
        if skill is None or skill["name"] == "search_file":
            self.steps.called(key, "tool_call", code, "ipython")
        elif skill["name"] == "open_file":
            self.steps.called(key, "file_read", code, "open_file", paths=self.steps.paths(skill["path"]))
        else:
            args = {"created": True} if skill["name"] == "create_file" else None
            self.steps.called(key, "file_edit", code, skill["name"], args=args, paths=self.steps.paths(skill["path"]))

    def _message(self, event: _Event, args: _Event) -> None:
        """A message of the user, of the agent, or what evaluations answer in the user's place."""
        text = args.get("content") if isinstance(args.get("content"), str) else event.get("message")
        source = event.get("source")
        if source == "agent" or (source is None and self.spoken and not _CONTINUE.match(str(text))):
            self.steps.say("assistant", text)
            return
        if self.spoken and _CONTINUE.match(str(text)):
            self.steps.say("system", text, tool="automatic answer")
            return
        framed = benchmark.split(str(text or "")) if not self.spoken else benchmark.Framed("", str(text or ""), "")
        self.steps.say("system", framed.before)
        self.steps.say("user", framed.task)
        self.steps.say("system", framed.after)
        self.spoken = True

    def _finished(self, kind: str, event: _Event, args: _Event) -> None:
        outputs = args["outputs"] if isinstance(args.get("outputs"), dict) else {}
        texts = (args.get("final_thought"), outputs.get("content"), outputs.get("reason"), args.get("thought"), event.get("message"))
        text = next((t for t in texts if isinstance(t, str) and t.strip()), "")
        self.steps.say("assistant", text)
        at = len(self.steps.log.events) - 1 if text else None
        completed = str(args.get("task_completed") or "").lower()
        claim = "failed" if kind == "reject" or completed == "false" else claim_of(text)
        self.steps.claim = Signal("claim", claim, at) if claim else None
        self.steps.ending = Signal("exit_status", "finished" if kind == "finish" else "rejected")

    # --- observations -------------------------------------------------------------------------------------------------

    def _observation(self, kind: str, event: _Event, extras: _Event) -> str | None:
        steps = self.steps
        content = event.get("content") if isinstance(event.get("content"), str) else ""
        if kind in _IGNORED_OBSERVATIONS:
            return None
        if kind == "run":
            metadata = extras["metadata"] if isinstance(extras.get("metadata"), dict) else {}
            steps.located(metadata)
            note = f"{metadata.get('prefix') or ''}{metadata.get('suffix') or ''}"
            code = metadata.get("exit_code", extras.get("exit_code"))
            steps.ran(steps.call_of(event.get("cause"), extras.get("command")), str(content), code, note=note)
        elif kind in ("edit", "write", "read", "run_ipython", "browse", "mcp", "delegate", "task_tracking", "agent_delegate"):
            self._returned(kind, event, extras, str(content))
        elif kind == "error":
            self._error(event, extras, str(content))
        elif kind == "user_rejected":
            steps.returned(steps.call_of(event.get("cause")), str(content), is_error=True, harness="refused")
        elif kind == "recall":
            self._recalled(extras, str(content))
        elif kind == "loop_detection":
            steps.add("error", str(content) or "loop detected", tool="harness", args={"harness": "loop"})
        elif kind == "agent_state_changed":
            self._state(extras)
        else:
            return f"observation {kind}"
        return None

    def _returned(self, kind: str, event: _Event, extras: _Event, content: str) -> None:
        steps = self.steps
        call = steps.call_of(event.get("cause"))
        created = kind in ("edit", "write") and extras.get("prev_exist") is False
        if created and call is not None and steps.log.events[call].kind == "file_edit":
            steps.log.mark(call, args={"created": True})
        failed = kind == "run_ipython" and bool(_SKILL_FAILED.match(content))
        steps.returned(call, content, is_error=failed or content.startswith("ERROR:") or extras.get("error") is True)

    def _error(self, event: _Event, extras: _Event, content: str) -> None:
        """What went wrong with a call, or with the run itself."""
        call = self.steps.call_of(event["cause"]) if event.get("cause") is not None else None
        if call is not None:
            self.steps.returned(call, content, is_error=True)
            return
        text = f"{extras.get('error_id') or ''} {content}".strip()
        provider = bool(_PROVIDER.search(text))
        self.steps.add("error", text, tool="provider" if provider else "harness", is_error=True)

    def _recalled(self, extras: _Event, content: str) -> None:
        """What the harness adds of the workspace or of stored instructions: nobody typed it."""
        if extras.get("repo_name"):
            self.steps.repo = self.steps.repo or str(extras["repo_name"])
        knowledge = extras.get("microagent_knowledge")
        told = [str(k.get("content") or "") for k in knowledge if isinstance(k, dict)] if isinstance(knowledge, list) else []
        self.steps.say(
            "system", "\n\n".join(filter(str.strip, (str(extras.get("repo_instructions") or ""), *told))) or content, tool="recall"
        )

    def _state(self, extras: _Event) -> None:
        state = str(extras.get("agent_state") or "")
        if state in _ENDINGS:
            self.steps.ending = Signal("exit_status", state)
        elif state in ("stopped", "paused"):
            self.steps.ending = Signal("exit_status", "interrupted")
        elif state in ("running", "rate_limited", "awaiting_user_input"):
            self.steps.ending = None
        reason = extras.get("reason")
        if state == "error" and isinstance(reason, str) and reason:
            provider = bool(_PROVIDER.search(reason))
            self.steps.add("error", reason, tool="provider" if provider else "harness", is_error=True)
