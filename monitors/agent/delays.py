"""Round trips that an agent's probes measured, in a file: CSV with the columns from, to and delay (s)."""

from __future__ import annotations

import os
from pathlib import Path

#: Largest size of the file (bytes); then it is renamed, with the ending ``.old``, and a new one is started.
MOST = 4_000_000


class DelayFile:
    r"""A file of delays.

    Parameters
    ----------
    path : of the file.
    node : that measures.
    most : bytes that it has at most.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     delays = DelayFile(Path(folder, "delays.csv"), "n1")
    ...     delays.note("n2", 0.00025)
    ...     Path(folder, "delays.csv").read_text()
    'from,to,delay\nn1,n2,0.00025\n'
    """

    def __init__(self, path: Path, node: str, most: int = MOST) -> None:
        self._path, self._node, self._most = path, node, most

    def note(self, other: str, seconds: float) -> None:
        """Add a round trip to another node.

        Raises
        ------
        OSError : when the file cannot be written.
        """
        if not seconds > 0:
            return
        if self._path.exists() and self._path.stat().st_size >= self._most:
            os.replace(self._path, self._path.with_name(f"{self._path.name}.old"))
        with self._path.open("a", encoding="utf-8", newline="") as file:
            if file.tell() == 0:
                file.write("from,to,delay\n")
            file.write(f"{self._node},{other},{seconds:.6g}\n")
