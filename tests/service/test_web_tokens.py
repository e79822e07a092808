"""Users by JSON Web Tokens: what a token must say to be believed, and what its user may do."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from fastapi.testclient import TestClient

from metasched.records import InputError
from metasched.service.app import make_app
from metasched.service.configuration import Configuration, WebTokens
from metasched.service.web_tokens import TokenReader
from tests.service.daemons import headers_for, running

KEY, OTHER = (rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2))
PRIVATE = KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
PUBLIC = KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
SITE = {"issuer": "https://login.site", "audience": "metasched", "user_claim": "name", "administrator_claim": "groups"}
#: Claims that are times, in seconds from when the token is made.
TIMES = ("exp", "nbf", "iat")
SOUND: dict[str, Any] = {"iss": "https://login.site", "aud": "metasched", "exp": 600.0, "name": "ann"}


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("keys") / "jwt.pem"
    path.write_bytes(PUBLIC)
    return path


@pytest.fixture(scope="module")
def reader(public: Path) -> TokenReader:
    return TokenReader(WebTokens.model_validate({"algorithm": "RS256", "key": str(public)} | SITE))


def made(claims: dict[str, Any], key: Any = KEY, algorithm: str = "RS256", **header: Any) -> str:
    now = time.time()
    claims = {
        name: now + value if name in TIMES and isinstance(value, float) else value
        for name, value in claims.items()
        if value is not None
    }
    return jwt.encode(claims, key, algorithm, headers=header)


@pytest.mark.parametrize(
    ("claims", "user"),
    [
        ({}, ("ann", False)),
        ({"aud": ["other", "metasched"]}, ("ann", False)),
        ({"name": "ann.b@site"}, ("ann.b@site", False)),
        ({"groups": ["staff", "metasched-admin"]}, ("ann", True)),
        ({"groups": "metasched-admin"}, ("ann", True)),
        ({"groups": ["metasched-administrators"]}, ("ann", False)),
        ({"groups": {"metasched-admin": 1}}, ("ann", False)),
        ({"exp": -5.0}, ("ann", False)),  # within what clocks may differ
        ({"exp": -60.0}, None),
        ({"exp": None}, None),
        ({"exp": "soon"}, None),
        ({"nbf": 600.0}, None),
        ({"iss": "https://elsewhere"}, None),
        ({"iss": None}, None),
        ({"aud": "mail"}, None),
        ({"aud": None}, None),
        ({"name": None, "sub": "ann"}, None),
        ({"name": ["ann"]}, None),
        ({"name": ""}, None),
        ({"name": "0"}, None),
        ({"name": "ann\nroot"}, None),
        ({"name": "ann/../bob"}, None),
        ({"name": "a" * 256}, None),
    ],
    ids=str,
)
def test_a_token_counts_only_for_what_it_says_in_full(
    claims: dict[str, Any], user: tuple[str, bool] | None, reader: TokenReader
) -> None:
    assert reader.user(made(SOUND | claims)) == user


@pytest.mark.parametrize(
    "kind", ["another key", "none", "the public key as a secret", "RS512", "a bit", "long", "text"]
)
def test_a_token_that_is_not_signed_as_configured_counts_for_nothing(kind: str, reader: TokenReader) -> None:
    # PyJWT refuses to sign with a public key as a secret, as an attacker would.
    secret = jwt.api_jws.PyJWS()
    secret._algorithms["HS256"] = _Careless(jwt.algorithms.HMACAlgorithm.SHA256)
    sound = made(SOUND)
    forged = {
        "another key": lambda: made(SOUND, OTHER),
        "none": lambda: made(SOUND, None, "none"),
        "the public key as a secret": lambda: secret.encode(made(SOUND).split(".")[1].encode(), PUBLIC, "HS256"),
        "RS512": lambda: made(SOUND, algorithm="RS512"),
        "a bit": lambda: sound[:-10] + ("A" if sound[-10] != "A" else "B") + sound[-9:],
        "long": lambda: made(SOUND | {"pad": "x" * 20_000}),
        "text": lambda: "a.b.c",
    }[kind]()
    assert reader.user(sound) == ("ann", False)
    assert reader.user(forged) is None


class _Careless(jwt.algorithms.HMACAlgorithm):
    def prepare_key(self, key: Any) -> bytes:
        return bytes(key)


def test_a_package_that_is_missing_is_named_and_no_key_is_blamed(public: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(name: str) -> None:
        raise NotImplementedError(name)

    monkeypatch.setattr(jwt, "get_algorithm_by_name", unknown)
    with pytest.raises(InputError, match="needs cryptography"):
        TokenReader(WebTokens.model_validate({"algorithm": "RS256", "key": str(public)} | SITE))


def test_a_secret_that_both_share_needs_no_issuer(tmp_path: Path) -> None:
    key = tmp_path / "secret"
    key.write_text("0123456789abcdef" * 2 + "\n")
    slurm = TokenReader(WebTokens(algorithm="HS256", key=str(key), user_claim="sun"))
    # What Slurm's `scontrol token` makes.
    claims = {"exp": 60.0, "iat": 0.0, "sun": "ann"}
    assert slurm.user(made(claims, "0123456789abcdef" * 2, "HS256")) == ("ann", False)
    assert slurm.user(made(claims, "1123456789abcdef" * 2, "HS256")) is None


@pytest.mark.parametrize(
    ("table", "content", "why"),
    [
        ({}, b"no key", "expected a public key for RS256 in PEM"),
        ({}, PRIVATE, "holds a private key, expected the public one"),
        ({"algorithm": "ES256"}, PUBLIC, "expected a public key for ES256 in PEM"),
        ({"algorithm": "HS256"}, b"short", "expected a secret of at least 32 bytes"),
        ({"algorithm": "HS256"}, PUBLIC, "expected a secret of at least 32 bytes"),
    ],
)
def test_a_key_that_does_not_fit_is_refused_in_one_line(
    table: dict[str, str], content: bytes, why: str, tmp_path: Path
) -> None:
    key = tmp_path / "key"
    key.write_bytes(content)
    settings = WebTokens.model_validate({"algorithm": "RS256", "key": str(key)} | SITE | table)
    with pytest.raises(InputError, match=why):
        TokenReader(settings)


@pytest.mark.parametrize(
    "table", [{"algorithm": "none"}, {"algorithm": "RS256"}, {"algorithm": "RS256", "issuer": "x"}, {}], ids=str
)
def test_a_table_that_leaves_open_who_signs_for_whom_is_refused(table: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"algorithm|issuer"):
        Configuration.model_validate({"authentication": {"jwt": {"key": "k"} | table}})


def test_elliptic_curves_are_accepted(tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    path = tmp_path / "key"
    path.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    reader = TokenReader(WebTokens.model_validate({"algorithm": "ES256", "key": str(path)} | SITE))
    assert reader.user(made(SOUND, key, "ES256")) == ("ann", False)


@pytest.fixture(scope="module")
def client(public: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    table = {"administrators": ["bea"], "jwt": {"algorithm": "RS256", "key": str(public)} | SITE}
    with running(tmp_path_factory.mktemp("site"), authentication=table) as daemon:
        scheduler = headers_for(daemon, "s", "scheduler")
        client = TestClient(make_app(daemon))
        for user in ("ann", "carl"):
            ask = {"application": "cg", "problem_size": 1000, "user": user}
            assert client.post("/v1/placements", json=ask, headers=scheduler).json()["placed"]
        yield client


@pytest.mark.parametrize(
    ("claims", "users", "mode"),
    [({}, ["ann"], 403), ({"name": "bea"}, ["ann", "carl"], 200), ({"name": "dora"}, [], 403),
     ({"groups": ["metasched-admin"]}, ["ann", "carl"], 200)],
)  # fmt: skip
def test_users_see_their_own_jobs_and_administrators_all(
    claims: dict[str, Any], users: list[str], mode: int, client: TestClient
) -> None:
    head = {"Authorization": f"Bearer {made(SOUND | claims)}"}
    listed = client.get("/v1/placements", headers=head).json()
    assert sorted({each["question"]["user"] for each in listed} - {"dave"}) == users
    assert client.put("/v1/mode", json={"mode": "shadow"}, headers=head).status_code == mode
    placement = {"application": "cg", "problem_size": 9, "user": "dave"}
    assert client.post("/v1/placements", json=placement, headers=head).status_code == (200 if mode == 200 else 403)


def test_without_a_valid_token_nothing_is_shown(client: TestClient) -> None:
    for header in ("", "Bearer", "Bearer x", f"Bearer {made(SOUND, OTHER)}", f"MUNGE {made(SOUND)}"):
        answer = client.get("/v1/placements", headers={"Authorization": header})
        assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, 'Basic realm="metasched"')
