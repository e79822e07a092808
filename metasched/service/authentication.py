"""Authentication and authorisation of clients: tokens, roles, and a bucket of requests for each client."""

from __future__ import annotations

import base64
import binascii
import os
import pwd
import secrets
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock

from metasched.service.configuration import Authentication
from metasched.service.munge_credentials import MungeCredentials
from metasched.service.web_tokens import TokenReader
from metasched.store.database.tokens import Token, Tokens, digest
from metasched.store.roles import Role

#: Largest number of clients with buckets; beyond, the one without requests for longest is removed.
MOST_CLIENTS = 10_000
#: How long a browser stays logged in (s), and how many do at once, in total and with one token.
SESSION, MOST_SESSIONS, MOST_OF_TOKEN = 43_200.0, 1000, 50
#: How long a user that this host does not know is not looked up again (s), and digits of the numbers of users.
LOOKED_UP_AGAIN, LONGEST_NUMBER = 120.0, 10


@dataclass(frozen=True, slots=True)
class Client:
    """A client: a name for the log and the limits, a role, and the node of an agent.

    ``users`` is what schedulers may call the user: by name, and by number.
    """

    name: str
    role: Role | None
    node: str | None = None
    users: frozenset[str] = frozenset()

    def may(self, *roles: Role) -> bool:
        """Whether the client has one of these roles; an admin has them all."""
        return self.role == "admin" or self.role in roles

    @property
    def sees_all(self) -> bool:
        """Whether the client sees the jobs of all users: administrators do, and schedulers, which report them."""
        return self.may("scheduler")

    @property
    def shown(self) -> frozenset[str] | None:
        """The user whose jobs the client may see, which is its own; None for all users."""
        return None if self.sees_all else self.users

    def sees(self, user: str) -> bool:
        """Whether the client may see a job of a user."""
        return self.sees_all or user in self.users


NOBODY = Client("nobody", None)


def local_client(user: int, groups: frozenset[int]) -> Client:
    """The client on the Unix socket, by the numbers of its user and groups that the system reports.

    Root, the daemon's own user and its group are its scheduler, whose hooks they run; anybody else is a reader.
    """
    account = _account(f"{user}")
    name = f"{user}" if account is None else account.pw_name
    role: Role = "scheduler" if user in (0, os.geteuid()) or os.getegid() in groups else "reader"
    return Client(f"user {name}", role, users=frozenset((name, f"{user}")))


def called(user: str | None) -> frozenset[str]:
    """The names of a user: the given one, and its name and number if this host knows them."""
    if not user:
        return frozenset()
    known = _account(user)
    return frozenset((user,) if known is None else (user, known.pw_name, f"{known.pw_uid}"))


def _account(user: str) -> pwd.struct_passwd | None:
    """The account of a user by name or number; None where this host does not know it.

    One that was found stays known. One that was not is looked up again after a while: a directory may have been away.
    """
    return _looked_up(user, int(time.monotonic() // LOOKED_UP_AGAIN))


@lru_cache(maxsize=10_000)
def _looked_up(user: str, period: int) -> pwd.struct_passwd | None:
    try:
        return _found(user)
    except (KeyError, ValueError):
        return None


@lru_cache(maxsize=10_000)
def _found(user: str) -> pwd.struct_passwd:
    return pwd.getpwuid(int(user)) if user.isdecimal() and len(user) <= LONGEST_NUMBER else pwd.getpwnam(user)


class KnownTokens:
    """The tokens in memory. Periodic work reads them from the database, so that a request never waits for it."""

    def __init__(self) -> None:
        self._known: Mapping[str, Token] = {}
        self._nodes: frozenset[str | None] = frozenset()

    def replace(self, tokens: Iterable[Token]) -> None:
        """Replace the tokens by those that are valid now."""
        self._known = {token.digest: token for token in tokens}
        self._nodes = frozenset(token.node for token in self._known.values())

    def has_agent_of(self, node: str) -> bool:
        """Whether a token was made for an agent on this node."""
        return node in self._nodes

    def client(self, authorization: str | None) -> Client:
        """The client of an Authorization header: with a bearer token, or the password of a browser."""
        scheme, _, value = (authorization or "").partition(" ")
        secret = value.strip()
        if scheme.lower() == "basic":
            try:
                secret = base64.b64decode(secret, validate=True).decode().partition(":")[2]
            except (binascii.Error, UnicodeDecodeError):
                return NOBODY
        elif scheme.lower() != "bearer":
            return NOBODY
        return self.client_of_digest(digest(secret)) if secret else NOBODY

    def client_of_digest(self, kept: str) -> Client:
        """The client whose secret has this digest."""
        token = self._known.get(kept)
        return NOBODY if token is None else Client(token.name, token.role, token.node, called(token.user))


class Sessions:
    """Sessions of browsers that have logged in: each has its own random word, so that the cookie contains no token.

    A session ends after some hours, when its browser logs out, when the token it began with is revoked, and when the
    daemon ends.

    >>> sessions = Sessions()
    >>> word = sessions.begin("digest of a token", now=0.0)
    >>> sessions.token(word, now=SESSION - 1.0), sessions.token(word, now=SESSION + 1.0)
    ('digest of a token', None)
    """

    def __init__(self) -> None:
        self._open: OrderedDict[str, tuple[str, float]] = OrderedDict()
        self._lock = Lock()

    def begin(self, token: str, now: float | None = None) -> str:
        """Begin a session of the token with this digest, and return its word."""
        word = secrets.token_urlsafe(32)
        with self._lock:
            own = [each for each, (of, _) in self._open.items() if of == token]
            if len(own) >= MOST_OF_TOKEN:  # Otherwise one token could end the sessions of all others.
                del self._open[own[0]]
            self._open[digest(word)] = token, (time.monotonic() if now is None else now) + SESSION
            if len(self._open) > MOST_SESSIONS:
                self._open.popitem(last=False)
        return word

    def token(self, word: str, now: float | None = None) -> str | None:
        """The digest of the session's token; None if there is no such session any more."""
        found = self._open.get(digest(word))
        return found[0] if found and found[1] > (time.monotonic() if now is None else now) else None

    def end(self, word: str) -> None:
        """End a session: its cookie becomes invalid."""
        with self._lock:
            self._open.pop(digest(word), None)


class Buckets:
    """A token bucket for each client: requests a second, and requests at once.

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

    def wait(self, name: str, now: float | None = None, *, count: int = 1) -> float:
        """Take one or more requests from a client's bucket: 0 if it may pass, else the seconds to wait.

        Parameters
        ----------
        name : of the client.
        now : the present by a monotonic clock (s); None to read it.
        count : requests that it counts for.
        """
        now = time.monotonic() if now is None else now
        with self._lock:
            left, at = self._left.pop(name, (self._burst, now))
            left = min(self._burst, left + (now - at) * self._rate)
            passes = left >= count
            self._left[name] = (left - count if passes else left, now)
            if len(self._left) > MOST_CLIENTS:
                self._left.popitem(last=False)
        return 0.0 if passes else (count - left) / self._rate


class Access:
    """The access rules of the daemon: which clients may send requests, and how often.

    Parameters
    ----------
    tokens : the tokens in the database.
    rate, burst : requests a second that each client may make, and how many at once.
    others : what names users besides tokens.

    Attributes
    ----------
    known : the tokens in memory.
    sessions : of browsers.
    buckets : of requests, one for each client.
    """

    def __init__(self, tokens: Tokens, rate: float, burst: int, others: Authentication) -> None:
        self._administrators = frozenset(others.administrators)
        self._web = None if others.jwt is None else TokenReader(others.jwt)
        self._munge = None if others.munge is None else MungeCredentials(others.munge)
        self.known, self.sessions, self.buckets = KnownTokens(), Sessions(), Buckets(rate, burst)
        self._tokens = tokens
        self._reading = Lock()

    def refresh(self) -> None:
        """Read which tokens are valid now."""
        with self._reading:  # Otherwise a list read before a token was created could replace a newer one.
            self.known.replace(self._tokens.all())

    @property
    def challenges(self) -> str:
        """The schemes that a client without a token is offered."""
        return ", ".join(['Basic realm="metasched"', *(["MUNGE"] if self._munge else [])])

    async def other(self, authorization: str, request: str, host: str) -> Client:
        """The client whose Authorization header holds no token of the daemon's own: one with a JWT, or by MUNGE."""
        scheme, _, value = authorization.partition(" ")
        if self._web is not None and scheme.lower() == "bearer":
            named = self._web.user(value.strip())
            return NOBODY if named is None else self._user(*named)
        # Each credential costs a process, so invalid ones count against the limit of requests, too.
        if self._munge is not None and scheme.lower() == "munge" and not self.buckets.wait(f"credentials of {host}"):
            number = await self._munge.user(value.strip(), request, host)
            return NOBODY if number is None else self._user(f"{number}")
        return NOBODY

    def _user(self, user: str, administrator: bool = False) -> Client:
        """A user of the site, by name or number: an administrator who is named as such, a reader else."""
        names = called(user)
        role: Role = "admin" if administrator or names & self._administrators else "reader"
        return Client(f"user {min((each for each in names if not each.isdecimal()), default=user)}", role, users=names)

    def client_of_session(self, word: str) -> Client:
        """The client whose browser began the session with this word."""
        return self.known.client_of_digest(self.sessions.token(word) or "")
