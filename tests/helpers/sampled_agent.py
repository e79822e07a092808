"""An agent that has measured once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from monitors.agent.server import SampleServer
from monitors.sources.contract import Sample


@contextmanager
def sampled_agent(folder: Path, age: float) -> Iterator[str]:
    """Serve a sample of that age (s): CPU 0.75, 940.5 Mbit/s; yields the settings of a hook that reads it.

    The file ``token`` of the folder holds the secret, which a test may replace.
    """
    sample = Sample("n1", time.time() - age, 0.75, 940.5)
    server = SampleServer(("127.0.0.1", 0), "secret", lambda: sample)
    server.start()
    (folder / "token").write_text("secret\n")
    try:
        yield f"address = 127.0.0.1:{server.server_port}\ntoken_file = {folder}/token\ndeadline = 2\n"
    finally:
        server.shutdown()
        server.server_close()
