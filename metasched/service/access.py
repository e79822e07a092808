"""Who is asking, and whether they may: tokens, roles, and a bucket of requests for each client."""

from __future__ import annotations

import base64
import binascii
import secrets
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from threading import Lock

from metasched.store.tokens import Role, Token, digest

#: Clients whose buckets are remembered; beyond, the one that has been silent longest is forgotten.
MOST_CLIENTS = 10_000
#: How long a browser stays logged in (s), and how many do at once.
SESSION, MOST_SESSIONS = 43_200.0, 1000


@dataclass(frozen=True, slots=True)
class Client:
    """Whoever is asking: a name for the log and the limits, a role, and the node that an agent speaks for."""

    name: str
    role: Role | None
    node: str | None = None

    def may(self, *roles: Role) -> bool:
        """Whether the client has one of these roles; an admin has them all."""
        return self.role == "admin" or self.role in roles


#: Whoever reaches the Unix socket: its permissions have let them in.
LOCAL = Client("local socket", "scheduler")
NOBODY = Client("nobody", None)


class Doorkeeper:
    """Knows the tokens. Reading them from the database is the periodic work's, so that a request never waits for it."""

    def __init__(self) -> None:
        self._known: Mapping[str, Token] = {}
        self._nodes: frozenset[str | None] = frozenset()

    def learn(self, tokens: Iterable[Token]) -> None:
        """Take the tokens as they are now."""
        self._known = {token.digest: token for token in tokens}
        self._nodes = frozenset(token.node for token in self._known.values())

    def speaks_for(self, node: str) -> bool:
        """Whether a token was made for an agent on this node."""
        return node in self._nodes

    def recognise(self, authorization: str | None) -> Client:
        """The client that an Authorization header stands for: a bearer token, or the password of a browser."""
        scheme, _, value = (authorization or "").partition(" ")
        secret = value.strip()
        if scheme.lower() == "basic":
            try:
                secret = base64.b64decode(secret, validate=True).decode().partition(":")[2]
            except (binascii.Error, UnicodeDecodeError):
                return NOBODY
        elif scheme.lower() != "bearer":
            return NOBODY
        return self.of_digest(digest(secret)) if secret else NOBODY

    def of_digest(self, kept: str) -> Client:
        """The client whose secret has this digest."""
        token = self._known.get(kept)
        return NOBODY if token is None else Client(token.name, token.role, token.node)


class Sessions:
    """Browsers that have logged in: each has a random word of its own, so that its cookie holds no token.

    A session ends after some hours, when its browser logs out, when the token it began with is revoked, and when the
    daemon ends.

    Examples
    --------
    >>> sessions = Sessions(lasting=10.0)
    >>> word = sessions.begin("digest of a token", now=0.0)
    >>> sessions.token(word, now=9.0), sessions.token(word, now=11.0)
    ('digest of a token', None)
    """

    def __init__(self, lasting: float = SESSION, most: int = MOST_SESSIONS) -> None:
        self._lasting, self._most = lasting, most
        self._open: OrderedDict[str, tuple[str, float]] = OrderedDict()
        self._lock = Lock()

    def begin(self, token: str, now: float | None = None) -> str:
        """Begin a session of the token with this digest, and return its word."""
        word = secrets.token_urlsafe(32)
        with self._lock:
            self._open[digest(word)] = token, (time.monotonic() if now is None else now) + self._lasting
            if len(self._open) > self._most:
                self._open.popitem(last=False)
        return word

    def token(self, word: str, now: float | None = None) -> str | None:
        """The digest of the token that a session began with; None where there is no such session any more."""
        found = self._open.get(digest(word))
        return found[0] if found and found[1] > (time.monotonic() if now is None else now) else None

    def end(self, word: str) -> None:
        """End a session."""
        with self._lock:
            self._open.pop(digest(word), None)


class Buckets:
    """A token bucket for each client: so many requests a second, so many at once.

    Examples
    --------
    >>> buckets = Buckets(rate=1.0, burst=2)
    >>> [buckets.wait("n1", now=0.0), buckets.wait("n1", now=0.0), buckets.wait("n1", now=0.0)]
    [0.0, 0.0, 1.0]
    >>> buckets.wait("n1", now=1.5)
    0.0
    """

    def __init__(self, rate: float, burst: int) -> None:
        self._rate, self._burst = rate, float(burst)
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = Lock()

    def wait(self, name: str, now: float | None = None) -> float:
        """Take one request from a client's bucket: 0 where it may pass, else the seconds until it may."""
        now = time.monotonic() if now is None else now
        with self._lock:
            left, at = self._left.pop(name, (self._burst, now))
            left = min(self._burst, left + (now - at) * self._rate)
            passes = left >= 1.0
            self._left[name] = (left - 1.0 if passes else left, now)
            if len(self._left) > MOST_CLIENTS:
                self._left.popitem(last=False)
        return 0.0 if passes else (1.0 - left) / self._rate
