"""Calls OpenPBS's commands."""

from __future__ import annotations

from typing import Any

from metasched.schedulers import lenient_json
from metasched.schedulers.commands import TIMEOUT, Commands


class PbsCommands(Commands):
    """qstat, pbsnodes and the others of one server; of their numbers the text is kept, since a name may be one."""

    __slots__ = ()

    @classmethod
    def of(cls, server: str = "", timeout: float = TIMEOUT) -> PbsCommands:
        """Those of a server.

        Parameters
        ----------
        server : its host as PBS_SERVER, empty for that of the usual pbs.conf.
        timeout : how long a command may take (s).
        """
        # Times in English, whatever the daemon's language is; without jobs some versions print nothing.
        return cls({"PBS_SERVER": server}, timeout, {"LC_ALL": "C"}, nothing={})

    def parsed(self, text: str) -> Any:
        """The document that a command printed; see :meth:`Commands.parsed`."""
        return lenient_json.read(text, texts=True)
