"""Tokens of the daemon's clients, each with a role.

A secret is 256 random bits, so a plain digest of it can neither be guessed nor looked up in a table; it is shown once,
when it is made, and kept nowhere.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import Engine, bindparam, delete, insert, select

from metasched.records import InputError
from metasched.store.database.engine import reading, writing
from metasched.store.database.tables import TokenRow
from metasched.store.roles import Role, check_token


@dataclass(frozen=True, slots=True)
class Token:
    """A token without its secret.

    An agent may write loads of its ``node``, a site report the links from the site that ``node`` names, a reader see
    the jobs of its ``user``.
    """

    name: str
    role: Role
    node: str | None
    digest: str
    made_at: float
    user: str | None = None


def new_secret() -> str:
    """A new secret: 256 random bits, after a prefix by which a leaked one is recognised."""
    return f"metasched_{secrets.token_urlsafe(32)}"


def digest(secret: str) -> str:
    """The stored digest of a secret: its SHA-256 in hexadecimal digits."""
    return hashlib.sha256(secret.encode()).hexdigest()


class Tokens:
    """The tokens in a database.

    >>> from metasched.store.database.store import Store
    >>> with Store.open(":memory:") as store:
    ...     secret = store.tokens.add("n1's agent", "agent", node="n1")
    ...     [(token.name, token.digest == digest(secret)) for token in store.tokens.all()]
    [("n1's agent", True)]
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def add(self, name: str, role: Role, *, node: str | None = None, user: str | None = None) -> str:
        """Make a token and return its secret.

        Raises
        ------
        InputError
            When there is a token of that name, or it cannot be made: see :func:`metasched.store.roles.check_token`.
        """
        check_token(name, role, node, user)
        secret = new_secret()
        row = {"name": name, "digest": digest(secret), "role": role, "made_at": time.time()}
        named = {"node": node, "user": user}
        with writing(self._engine) as connection:
            if connection.scalar(select(TokenRow.name).where(TokenRow.name == name)) is not None:
                raise InputError(f"token {name} already exists; revoke it first")
            connection.execute(insert(TokenRow), row | named)
        return secret

    def enrol(self, secrets_of: Mapping[str, str]) -> None:
        """Store the tokens of agents by the secret of each node, all or none; one of the name of a node is replaced."""
        now = time.time()
        rows = [
            {"name": node, "digest": digest(secret), "role": "agent", "made_at": now, "node": node}
            for node, secret in secrets_of.items()
        ]
        if not rows:
            return
        with writing(self._engine) as connection:
            connection.execute(
                delete(TokenRow).where(TokenRow.name == bindparam("of")), [{"of": each} for each in secrets_of]
            )
            connection.execute(insert(TokenRow), rows)

    def revoke(self, name: str) -> None:
        """Take a token away.

        Raises
        ------
        InputError : when there is none of that name.
        """
        with writing(self._engine) as connection:
            if not connection.execute(delete(TokenRow).where(TokenRow.name == name)).rowcount:
                raise InputError(f"there is no token {name}")

    def all(self) -> tuple[Token, ...]:
        """All tokens without their secrets, in the order of their names."""
        columns = (TokenRow.name, TokenRow.role, TokenRow.node, TokenRow.digest, TokenRow.made_at, TokenRow.user)
        with reading(self._engine) as connection:
            rows = connection.execute(select(*columns).order_by(TokenRow.name)).all()
        return tuple(Token(name, cast(Role, role), *others) for name, role, *others in cast(Any, rows))
