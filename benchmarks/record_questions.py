"""Record the cassettes `authored` of `reconcile`, `summarize_pattern` and `engine_profile`, over HTTP on this machine.

    python benchmarks/record_questions.py [--folder cassettes]

A server on 127.0.0.1 answers with the replies of benchmarks/authored_questions. Statistics that no reply is about get an empty sentence.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import yaml

from osmia_memory import demonstration, phrasing, recording
from osmia_memory.budget import Budget
from osmia_memory.llm import LiteLlmCompleter, Price
from osmia_memory.memory import Memory
from osmia_memory.models import EngineProfile, Pattern
from osmia_memory.nominating import Nominations

HERE = Path(__file__).parent / "authored_questions"
NOTE = "replies written by hand in place of a capable model, with errors planted on purpose (benchmarks/authored_questions); no evidence of any model's quality"
PRICE = Price(0.15, 0.60)
PROMPTS = ("reconcile", "summarize_pattern", "engine_profile")


def a_memory(folder: Path) -> Memory:
    """The demo's memory with the observations and outcomes that the replies are about."""
    memory = demonstration.memory(folder / "memory.duckdb")
    for _ in memory.extract([str(demonstration.RUNS)]):
        pass
    memory.import_rows((HERE / "knowledge.jsonl").read_bytes(), name="knowledge")
    for engine, solved in (("codex", 28), ("aider", 9)):
        rows = [{"id": f"docs-{n}", "resolved": n < solved, "task_type": "docs", "engine": engine} for n in range(30)]
        memory.import_outcomes([("docs", json.dumps(rows).encode())])
    return memory


class Asked:
    """What the three prompts made of that memory."""

    def __init__(self, memory: Memory, completer: Any, prompt: str) -> None:
        budget, record, redact = Budget(), memory.recorder(), memory.redact
        report = memory.statistics()
        self.nominations: Nominations | None = None
        self.patterns: list[Pattern] = report["patterns"]
        self.profiles: list[EngineProfile] = report["profiles"]
        if prompt == "reconcile":
            self.nominations = memory.nominate(completer, budget)
        elif prompt == "summarize_pattern":
            self.patterns, _ = phrasing.patterns(self.patterns[:5], completer, budget, redact, record)
        else:
            self.profiles, _ = phrasing.profiles(self.profiles, completer, budget, redact, record)


def reply_to(question: str) -> str:
    """The reply written for a question."""
    for one in yaml.safe_load((HERE / "replies.yaml").read_text(encoding="utf-8")):
        if one["about"] in question:
            return json.dumps(one["reply"], ensure_ascii=False)
    return json.dumps({"sentence": ""})


@contextmanager
def serving() -> Iterator[str]:
    """A server that speaks OpenAI's chat completions; gives its base URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            text = reply_to(body["messages"][-1]["content"])
            usage = {"prompt_tokens": sum(len(m["content"]) for m in body["messages"]) // 4, "completion_tokens": len(text) // 4 + 1}
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
            reply = {"id": "authored", "object": "chat.completion", "created": 0, "model": "authored", "choices": [choice]}
            data = json.dumps({**reply, "usage": {**usage, "total_tokens": sum(usage.values())}}, ensure_ascii=False).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    server.shutdown()
    server.server_close()


def main() -> int:
    """Serve and record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=recording.FOLDER, help="where the cassettes are kept")
    given = parser.parse_args()
    today = datetime.now(UTC).date().isoformat()
    origin = recording.Origin(
        "authored", "openai/authored", NOTE, today, 0, True, PRICE.usd_per_million_in, PRICE.usd_per_million_out, "gpt-4o-mini"
    )
    with serving() as base_url:
        for prompt in PROMPTS:
            path = recording.path_of("authored", prompt, folder=given.folder)
            completer = LiteLlmCompleter(origin.model, base_url=base_url, api_key="none", price=PRICE, at_once=1)
            with tempfile.TemporaryDirectory() as folder, recording.recording(path, origin):
                Asked(a_memory(Path(folder)), completer, prompt)
            print(f"recorded in {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
