"""Users by JSON Web Tokens that the site's own identity provider has signed (RFC 7519), checked by PyJWT."""

from __future__ import annotations

import re
from typing import Any

from metasched.records import InputError
from metasched.service.configuration import WebTokens
from metasched.store.files.whole_files import read_text

#: Longest token, and longest user name, that is accepted.
MOST, LONGEST_USER = 16_384, 255
#: How far the clocks of provider and daemon may differ (s).
LEEWAY = 30.0
#: Fewest bytes of a shared secret: as many as its digest has (RFC 7518, section 3.2).
SHORTEST_SECRET = {"HS256": 32, "HS384": 48, "HS512": 64}
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]*")


class TokenReader:
    """Reads the users and their roles from tokens.

    Parameters
    ----------
    settings : the algorithm, key, issuer, audience and claims that are accepted.

    Raises
    ------
    InputError : when PyJWT is not installed, or the key cannot be read or does not fit the algorithm.
    """

    def __init__(self, settings: WebTokens) -> None:
        try:
            import jwt
        except ImportError:
            raise InputError("needs PyJWT: pip install 'metasched[jwt]'", where="[authentication.jwt]") from None
        self._settings, self._errors = settings, jwt.PyJWTError
        # One algorithm, named by the administrator: what a token says of its own algorithm is only compared with it.
        self._tokens = jwt.PyJWT()
        secret = read_text(settings.key).encode()
        if settings.algorithm in SHORTEST_SECRET:
            secret = secret.strip()
            if len(secret) < SHORTEST_SECRET[settings.algorithm] or secret.startswith(b"-----BEGIN"):
                least = SHORTEST_SECRET[settings.algorithm]
                raise InputError(f"expected a secret of at least {least} bytes", where=settings.key)
        try:
            algorithm = jwt.get_algorithm_by_name(settings.algorithm)
        except NotImplementedError:  # PyJWT is installed without the package that does public keys.
            raise InputError("needs cryptography: pip install 'metasched[jwt]'", where="[authentication.jwt]") from None
        try:
            self._key: Any = algorithm.prepare_key(secret)
        except (self._errors, ValueError, TypeError):
            raise InputError(f"expected a public key for {settings.algorithm} in PEM", where=settings.key) from None
        if hasattr(self._key, "sign") and settings.algorithm not in SHORTEST_SECRET:
            raise InputError("holds a private key, expected the public one", where=settings.key)

    def user(self, token: str) -> tuple[str, bool] | None:
        """The user that a token names, and whether it makes them an administrator; None where it is not valid."""
        found = self._settings
        if len(token) > MOST:
            return None
        required = ["exp", found.user_claim, *(["iss"] if found.issuer else []), *(["aud"] if found.audience else [])]
        try:
            claims = self._tokens.decode(
                token, self._key, algorithms=[found.algorithm], issuer=found.issuer, audience=found.audience,
                leeway=LEEWAY, options={"require": required, "verify_aud": found.audience is not None},
            )  # fmt: skip
        except (self._errors, ValueError, RecursionError):
            return None
        user = claims.get(found.user_claim)
        # A number would be taken for that of an account of this host, and providers number users as well.
        if not isinstance(user, str) or len(user) > LONGEST_USER or not _USER.fullmatch(user) or user.isdecimal():
            return None
        held = claims.get(found.administrator_claim) if found.administrator_claim else None
        return user, found.administrator_value in (held if isinstance(held, list) else [held]) and held is not None
