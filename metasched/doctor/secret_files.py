"""Whether files with secrets that a configuration names are closed to others."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

from metasched.doctor.findings import Finding
from metasched.service.configuration import Configuration
from metasched.store.files.whole_files import refusal


def check_secret_files(settings: Configuration) -> Iterator[Finding]:
    """One finding for each file of a token or a key that everybody on this host may read or write."""
    tokens = settings.authentication.jwt
    named = (
        settings.listen.key,
        tokens.key if tokens is not None and tokens.algorithm.startswith("HS") else None,
        settings.fitting.tls_client_key,
        *(site.token_file for site in settings.site),
        *(source.token_file for source in settings.source),
    )
    for path in dict.fromkeys(Path(each) for each in named if each is not None):
        try:
            mode = stat.S_IMODE(path.stat().st_mode)
        except OSError as error:
            yield Finding("secrets", "wrong", f"{path}: {refusal(error)}", "correct its name or place")
            continue
        if mode & 0o007:
            line = f"{path} has mode {mode:04o}: everybody on this host may use it"
            yield Finding("secrets", "wrong", line, f"`chmod o= {path}`, and replace the secret in it")
