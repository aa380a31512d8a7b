"""Record the cassette `authored`: the replies of benchmarks/authored, served over HTTP on this machine to the recorder that serves any model.

    python benchmarks/record_authored.py [--folder cassettes]

A server on 127.0.0.1 answers each request about a part of a demo run with the proposals written for that run, good and planted bad ones in
the order of the file. Token counts are a quarter of the characters, as for any model whose tokenizer is not known.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

from osmia_memory import demonstration
from osmia_memory.budget import Budget
from osmia_memory.model_pass import ModelPass
from osmia_memory.models import Skip
from osmia_memory.testing import ScriptedCompleter

AUTHORED = Path(__file__).parent / "authored"
NOTE = (
    "replies written by hand in place of a capable model, with errors planted on purpose (benchmarks/authored); no evidence of any model's "
    "quality, and token counts are a quarter of the characters"
)


def replies() -> dict[str, str]:
    """The question about each part of a demo run -> the text of its reply."""
    written = {d["run"]: d["proposals"] for path in AUTHORED.glob("*.yaml") if (d := yaml.safe_load(path.read_text(encoding="utf-8")))}
    found: dict[str, str] = {}
    asking = ModelPass(ScriptedCompleter([]), Budget())
    with tempfile.TemporaryDirectory() as folder:
        memory = demonstration.memory(Path(folder) / "plain.duckdb")
        for report in memory.extract([str(demonstration.RUNS)], keep_transcripts=True):
            assert not isinstance(report, Skip), report
            left = [p["fact"] for p in written.get(Path(report.run.source).name, ())]
            tasks = asking.tasks(report.digest)
            for task in tasks:
                mine = [f for f in left if task is tasks[-1] or f["quotes"][0]["event"] in task.chunk.events]
                left = [f for f in left if f not in mine]
                found[str(task.request.messages[-1]["content"])] = json.dumps({"facts": mine}, ensure_ascii=False)
    return found


def tokens(text: str) -> int:
    """A quarter of the characters."""
    return math.ceil(len(text) / 4)


def serve(found: dict[str, str]) -> ThreadingHTTPServer:
    """A server that speaks OpenAI's chat completions."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            text = found[body["messages"][-1]["content"]]
            usage = {"prompt_tokens": tokens("".join(m["content"] for m in body["messages"])), "completion_tokens": tokens(text)}
            reply = {
                "id": "authored",
                "object": "chat.completion",
                "created": 0,
                "model": "authored",
                "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
                "usage": {**usage, "total_tokens": sum(usage.values())},
            }
            data = json.dumps(reply, ensure_ascii=False).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def main() -> int:
    """Serve and record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", help="where the cassettes are kept")
    given = parser.parse_args()
    server = serve(replies())
    command = [sys.executable, "-m", "osmia_memory", "cassettes", "record", "--model", "openai/authored", "--arm", "authored"]
    command += ["--base-url", f"http://127.0.0.1:{server.server_address[1]}/v1", "--note", NOTE]
    command += ["--price", "0.15,0.60", "--price-of", "gpt-4o-mini", *(["--folder", given.folder] if given.folder else [])]
    status = subprocess.run(command, check=False).returncode
    server.shutdown()
    return status


if __name__ == "__main__":
    sys.exit(main())
