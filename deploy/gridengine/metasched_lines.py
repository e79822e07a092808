"""What Grid Engine says to a job submission verifier, line by line, without lines that a user wrote.

Grid Engine passes on the words of a job as they are: what follows a line break in one of them reads like a line of its
own, such as BEGIN. If that were answered, the answer to each later job would be the one to the job before it. But Grid
Engine says nothing after BEGIN until it is answered, and so a BEGIN after which more follows is a user's. Any Python
from 3.6 on runs it, with nothing but the standard library.
"""

import os
import select

#: Longest line that is read (bytes).
MOST_LINE = 4194304
#: How long after BEGIN more would follow, of a job with lines of its user's after any word that is to be answered (s).
PAUSE, LONG_PAUSE = 0.005, 0.3


class ServerLines:
    """Lines of Grid Engine.

    Parameters
    ----------
    handle : the file descriptor to read from.

    Attributes
    ----------
    forged : whether the present job has had lines of its user's.
    """

    def __init__(self, handle: int) -> None:
        self._handle, self._buffer, self._ended = handle, b"", False
        self._open = False  # whether a job has begun whose BEGIN has not come
        self.forged = False

    def next(self) -> bytes:
        """The next line, empty at the end.

        Raises
        ------
        ValueError
            Where it is too long.
        """
        while True:
            line = self._next()
            word = line.split(b" ", 1)[0].strip()
            if not line or self._meant(word):
                return line
            self.forged = True

    def _meant(self, word: bytes) -> bool:
        """Whether a line that begins with this word seems to be Grid Engine's."""
        if word in (b"START", b"QUIT"):
            if self._open or (self.forged and self._more(LONG_PAUSE)):
                return False
            self._open, self.forged = word == b"START", False
        elif not self._open:
            return False
        elif word == b"BEGIN":
            if self._more(LONG_PAUSE if self.forged else PAUSE):
                return False
            self._open = False
        return True

    def _more(self, seconds: float) -> bool:
        """Whether more is said within this time."""
        return bool(self._buffer) or (bool(select.select([self._handle], [], [], seconds)[0]) and self._read())

    def _read(self) -> bool:
        part = b"" if self._ended else os.read(self._handle, 65536)
        self._buffer += part
        self._ended = not part
        return bool(part)

    def _next(self) -> bytes:
        while b"\n" not in self._buffer:
            if len(self._buffer) > MOST_LINE:
                raise ValueError("a line is too long")
            if not self._read():
                break
        line, ended, self._buffer = self._buffer.partition(b"\n")
        return line + ended
