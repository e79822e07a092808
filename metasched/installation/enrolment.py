"""Tokens for the agents of many nodes at once: one file for each node, readable by its owner only.

It may be repeated, and interrupted anywhere: a file is written before its token is stored, and a file whose token is
not stored yet gives the token its secret. What was enrolled before keeps its token, so running agents go on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from metasched.records import InputError
from metasched.store.database.tokens import Tokens, digest, new_secret
from metasched.store.files.whole_files import read_text, refusal, write_text_atomically

#: What a secret looks like; a file that holds something else is not touched.
_SECRET = re.compile(r"metasched_[\w-]{43}")


@dataclass(frozen=True, slots=True)
class Enrolment:
    """What became of each node.

    Parameters
    ----------
    enrolled : nodes whose token was created or renewed; its secret is in their file.
    kept : nodes whose token is the one in their file.
    without_file : nodes that have a token whose secret is not in the folder. Their agents may be using it, so it stays.
    """

    enrolled: tuple[str, ...]
    kept: tuple[str, ...]
    without_file: tuple[str, ...]


def enrol(tokens: Tokens, nodes: Sequence[str], folder: Path, *, renew: bool = False) -> Enrolment:
    """Give every node a token for its agent, and write the secret to ``NODE.token`` in a folder.

    Parameters
    ----------
    tokens : where the tokens are stored.
    nodes : names of the nodes; a token is named like its node.
    folder : made with mode 0700 where it does not exist; its files get mode 0600.
    renew : replace the tokens whose secret is not in the folder.

    Raises
    ------
    InputError : when a token of a node's name is not its agent's, a file holds something else than a secret, or the
        folder cannot be written; then no token was changed.
    """
    known = {each.name: each for each in tokens.all()}
    for node in nodes:
        if node in known and (known[node].role, known[node].node) != ("agent", node):
            raise InputError(f"token {node} does not belong to the agent of node {node}: revoke it first")
        if "/" in node or node.startswith("."):
            raise InputError(f"node {node!r} cannot name a file")
    files = {node: folder / f"{node}.token" for node in nodes}
    held = {node: _held(path) for node, path in files.items() if path.exists()}
    kept = {node for node in held if node in known and digest(held[node]) == known[node].digest}
    lacking = {node for node in nodes if node in known and not renew} - kept
    wanted = [node for node in nodes if node not in kept | lacking]
    secrets = {node: held[node] if node in held and node not in known else new_secret() for node in wanted}
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot be created: {refusal(error)}", where=str(folder)) from None
    for node, secret in secrets.items():
        write_text_atomically(files[node], f"{secret}\n", mode=0o600)
    tokens.enrol(secrets)
    return Enrolment(tuple(wanted), *(tuple(node for node in nodes if node in each) for each in (kept, lacking)))


def _held(path: Path) -> str:
    text = read_text(path).strip()
    if not _SECRET.fullmatch(text):
        raise InputError("does not contain a token, expected one that metasched wrote, or no file", where=str(path))
    return text
