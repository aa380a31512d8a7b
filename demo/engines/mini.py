"""mini-swe-agent trajectories, version 1: one document, one fenced command a reply, observations as user messages."""

from datetime import datetime

from steps import Done, Malformed, Played, Record, Result, Say, Sh, Think

from engines.common import digest, tokens

MODEL, VERSION = "deepseek/deepseek-chat", "1.17.4"
PATIENCE_SECONDS = 5
_LONG = 10_000  # characters; above, the middle is left out
_SYSTEM = (
    "You work in a shell. Each reply holds a THOUGHT and exactly ONE command in a fenced bash block:\n\n"
    "<format_example>\nTHOUGHT: why\n\n```bash\nyour_command_here\n```\n</format_example>"
)
_TASK = (
    "<pr_description>\n{task}\n</pr_description>\n\n<instructions>\nChange the files of the current directory so that the description is met. "
    "Every command runs in a new subshell. When you are done, submit with\n\n"
    "```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && git add -A && git diff --cached\n```\n</instructions>"
)
_WARNING = "<warning>\nThe output of your last command was too long.\nPlease try a different command that produces less output.\n</warning>"
_FORMAT_ERROR = (
    "Please always provide EXACTLY ONE action in triple backticks, found {count} actions.\n\n"
    "Please format your action in triple backticks as shown in <response_example>.\n\n"
    "<response_example>\nHere are some thoughts about why you want to perform the action.\n\n```bash\n<action>\n```\n</response_example>"
)
_PRICE = 0.27e-6, 1.10e-6  # USD a token in and out, to have a cost


def instance(played: Played) -> str:
    """`northwind__harbor-queue-142`."""
    owner, name = played.repository_url.removesuffix(".git").split("/")[-2:]
    return f"{owner}__{name}-{played.story.issue}"


def write(played: Played) -> Record:
    """The whole document."""
    story, thought = played.story, ""
    messages: list[Record] = [{"role": "system", "content": _SYSTEM}]
    messages.append({"role": "user", "content": _TASK.format(task=story.task)})
    cost = 0.0
    for done in played.done:
        step = done.step
        if isinstance(step, Think | Say):
            thought = step.text
            continue
        text = step.text if isinstance(step, Malformed) else f"THOUGHT: {thought}\n\n```bash\n{_command(done)}\n```"
        response, price = _response(played, text, tokens("".join(str(m["content"]) for m in messages)), done.at, len(messages))
        cost += price
        messages.append({"role": "assistant", "content": text, "extra": {"response": response}})
        messages.append({"role": "user", "content": _observation(done, played)})
    calls = sum(m["role"] == "assistant" for m in messages)
    if story.exit_status != "Submitted":
        messages.append({"role": "user", "content": ""})
    info: Record = {"exit_status": story.exit_status, "submission": played.submission}
    info |= {
        "model_stats": {"instance_cost": round(cost, 6), "api_calls": calls},
        "mini_version": VERSION,
        "config": _config(played, calls),
    }
    return {"info": info, "messages": messages, "trajectory_format": "mini-swe-agent-1", "instance_id": instance(played)}


def _command(done: Done) -> str:
    if not isinstance(done.step, Sh):
        raise TypeError(f"mini-swe-agent has no {type(done.step).__name__}")
    return done.step.command


def _observation(done: Done, played: Played) -> str:
    step, result = done.step, done.result
    if isinstance(step, Malformed):
        return _FORMAT_ERROR.format(count=step.text.count("```bash"))
    if "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT" in _command(done):
        return played.submission
    if result.timed_out:
        return (
            f"The last command <command>{_command(done)}</command> timed out and has been killed.\nThe output of the command was:\n"
            f" <output>\n{result.stdout}\n</output>\nPlease try another command and make sure to avoid those requiring interactive input."
        )
    return f"<returncode>{result.code}</returncode>\n{_shown(result)}"


def _shown(result: Result) -> str:
    text = result.stdout
    if len(text) < _LONG:
        return f"<output>\n{text}</output>"
    head, tail, left_out = text[: _LONG // 2], text[-_LONG // 2 :], len(text) - _LONG
    elided = f"<elided_chars>\n{left_out} characters elided\n</elided_chars>"
    return f"{_WARNING}<output_head>\n{head}\n</output_head>\n{elided}\n<output_tail>\n{tail}\n</output_tail>"


def _response(played: Played, text: str, context: int, at: datetime, number: int) -> tuple[Record, float]:
    made = tokens(text)
    price = context * _PRICE[0] + made * _PRICE[1]
    choice: Record = {"finish_reason": "stop", "index": 0, "message": {"role": "assistant", "content": text}}
    usage = {"prompt_tokens": context, "completion_tokens": made, "total_tokens": context + made, "cost": round(price, 7)}
    response: Record = {"id": f"gen-{int(at.timestamp())}-{digest(played.story.slug, number)[:20]}", "model": MODEL}
    response |= {"object": "chat.completion", "created": int(at.timestamp()), "choices": [choice], "usage": usage}
    return response, price


def _config(played: Played, calls: int) -> Record:
    limit = calls if played.story.exit_status == "LimitsExceeded" else 40
    agent: Record = {
        "system_template": _SYSTEM,
        "instance_template": _TASK.replace("{task}", "{{task}}"),
        "step_limit": limit,
        "cost_limit": 1.0,
    }
    place: Record = {"cwd": played.cwd, "env": {"PAGER": "cat"}, "timeout": PATIENCE_SECONDS}
    classes = {
        "agent_type": "minisweagent.agents.default.DefaultAgent",
        "environment_type": "minisweagent.environments.local.LocalEnvironment",
    }
    model = {"model_name": MODEL, "model_kwargs": {"temperature": 0.0}}
    return {"agent": agent, "environment": place, "model": model, "model_type": "minisweagent.models.litellm_model.LitellmModel", **classes}
