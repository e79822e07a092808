"""What one sees follows from who asks: their own jobs, administrators all, others no names."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from fastapi.testclient import TestClient

from metasched.service import authentication
from metasched.service.api.slow_clients import PEER_SCOPE, Peer
from metasched.service.app import make_app
from metasched.service.daemon import Daemon
from tests.service.daemons import running

USERS = ("alice", "bob", "")
#: Who may see whose jobs.
SEES = {
    "alice": {"alice"},
    "bob": {"bob"},
    "carol": set(),
    "nameless": set(),
    "scheduler": set(USERS),
    "admin": set(USERS),
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TestClient, dict[str, dict[str, str]]]]:
    with running(tmp_path_factory.mktemp("site")) as daemon:
        tokens = daemon.store.tokens
        made = {name: tokens.add(name, "reader", user=name) for name in ("alice", "bob", "carol")}
        made |= {"nameless": tokens.add("nameless", "reader")}
        made |= {"scheduler": tokens.add("s", "scheduler"), "admin": tokens.add("a", "admin")}
        daemon.access.refresh()
        client = TestClient(make_app(daemon))
        heads = {name: {"Authorization": f"Bearer {secret}"} for name, secret in made.items()}
        for number, user in enumerate(USERS):
            ask = {"application": "cg", "problem_size": 1000 + number, "user": user, "name": f"secret-{user}"}
            placed = client.post("/v1/placements", json=ask, headers=heads["scheduler"]).json()
            now = time.time()
            job = {"scheduler": "cluster east", "job": f"7{number}", "user": user, "nodes": "e1", "start": now - 60.0}
            job |= {"end": now - 1.0, "comment": f"metasched:app=cg,n={1000 + number},p=1,placement={placed['id']}"}
            assert client.post("/v1/jobs", json=job, headers=heads["scheduler"]).json()["stored"]
        yield client, heads


def test_health_says_to_everybody_what_the_daemon_takes_them_for(
    site: tuple[TestClient, dict[str, dict[str, str]]],
) -> None:
    client, heads = site
    roles = {who: client.get("/v1/health", headers=head).json()["role"] for who, head in heads.items()}
    readers = dict.fromkeys(("alice", "bob", "carol", "nameless"), "reader")
    assert roles == readers | {"scheduler": "scheduler", "admin": "admin"}
    assert client.get("/v1/health").json()["role"] is None


@pytest.mark.parametrize("who", SEES)
def test_placements_and_runs_are_shown_to_their_own_user_and_to_administrators(
    who: str, site: tuple[TestClient, dict[str, dict[str, str]]]
) -> None:
    client, heads = site
    everything = client.get("/v1/placements", headers=heads["admin"]).json()
    assert {each["question"]["user"] for each in everything} == set(USERS)
    listed = client.get("/v1/placements", headers=heads[who])
    assert {each["question"]["user"] for each in listed.json()} == SEES[who]
    for each in everything:
        seen = each["question"]["user"] in SEES[who]
        for path in ("", "/explanation"):
            answer = client.get(f"/v1/placements/{each['id']}{path}", headers=heads[who])
            assert answer.status_code == (200 if seen else 404)
    found = client.get("/v1/runs", headers=heads[who], params={"last": 1000}).json()["runs"]
    assert {size for run in found if (size := run["problem_size"]) in (1000, 1001, 1002) and run["start_time"]} == {
        1000 + USERS.index(user) for user in SEES[who]
    }
    page = client.get("/", headers=heads[who]).text
    hidden = [f"n={1000 + number} " for number, user in enumerate(USERS) if user not in SEES[who]]
    assert not [text for text in hidden if text in page]
    fields = (listed.text, client.get("/v1/status", headers=heads[who]).text, page)
    others = {user for user in USERS if user and user not in SEES[who]}
    assert not [user for user in others for text in fields if f"secret-{user}" in text or f'"{user}"' in text]


@pytest.mark.parametrize("field", ["user", "login"])
@pytest.mark.parametrize("who", SEES)
def test_a_trial_is_not_asked_for_in_the_name_of_somebody_else(
    who: str, field: str, site: tuple[TestClient, dict[str, dict[str, str]]]
) -> None:
    """Its answer follows from the limits of that user, and where these contradict others from their runs alone."""
    client, heads = site
    ask = {"application": "cg", "problem_size": 900, "trial": True}
    for user in USERS:
        status = client.post("/v1/placements", json=ask | {field: user}, headers=heads[who]).status_code
        assert status == (200 if user in {*SEES[who], ""} else 403)


def test_everybody_sees_how_good_the_advice_is(site: tuple[TestClient, dict[str, dict[str, str]]]) -> None:
    client, heads = site
    answer = [client.get("/v1/status", headers=heads[who]).json()["quality"] for who in ("carol", "admin")]
    assert answer[0] == answer[1]
    assert answer[0]["jobs"] == 3


def test_models_and_their_notices_name_nobody_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(tmp_path) as daemon:
        document = daemon.store.models.document("cg", "east")
        users = ["alice", "bob"] * (len(document["window"]) // 2)
        daemon.store.models.save("cg", "east", document | {"users": users, "doubted": ["bob"]})
        monkeypatch.setattr(daemon.models, "notices", lambda *key: ["bob is not believed"])
        tokens = daemon.store.tokens
        made = {"alice": tokens.add("alice", "reader", user="alice"), "admin": tokens.add("a", "admin")}
        daemon.access.refresh()
        client = TestClient(make_app(daemon))
        fields = {}
        for who, secret in made.items():
            heads = {"Authorization": f"Bearer {secret}"}
            model = client.get("/v1/models/cg/east", headers=heads).json()
            fields[who] = (model["users"][:2], model["doubted"], client.get("/v1/status", headers=heads).text)
        assert fields["alice"][:2] == (["alice", "user 1"], ["user 1"])
        assert fields["admin"][:2] == (["alice", "bob"], ["bob"])
        assert ["bob" in text for _, _, text in fields.values()] == [False, True]


@contextmanager
def by_socket(daemon: Daemon, user: int, *groups: int) -> Iterator[TestClient]:
    """A client that the system says is this user."""
    app = make_app(daemon)

    async def local(scope, receive, send) -> None:  # type: ignore[no-untyped-def]
        scope[PEER_SCOPE] = Peer(user, frozenset(groups))
        await app(scope, receive, send)

    yield TestClient(local)


def test_the_system_tells_who_asks_by_the_unix_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authentication.os, "geteuid", lambda: 777)
    monkeypatch.setattr(authentication.os, "getegid", lambda: 778)
    ask = {"application": "cg", "problem_size": 1400, "user": "nobody"}
    with running(tmp_path) as daemon:
        with by_socket(daemon, 0) as root:
            mine = root.post("/v1/placements", json=ask).json()["id"]
            others = root.post("/v1/placements", json=ask | {"user": "root"}).json()["id"]
        with by_socket(daemon, 777) as own, by_socket(daemon, 65534, 778) as of_group:
            assert [each.post("/v1/placements", json=ask).status_code for each in (own, of_group)] == [200, 200]
        with by_socket(daemon, 65534, 65534) as nobody:
            assert nobody.post("/v1/placements", json=ask).status_code == 403
            assert nobody.post("/v1/placements", json=ask | {"trial": True}).status_code == 200
            assert nobody.get(f"/v1/placements/{mine}").status_code == 200
            assert nobody.get(f"/v1/placements/{others}").status_code == 404
            assert nobody.post("/v1/loads", json={"node": "e1", "samples": [[1, 1, 1]]}).status_code == 403
        with by_socket(daemon, 4_000_000_000) as unknown:
            assert unknown.get("/v1/placements").json() == []


@pytest.mark.parametrize("shown", ["Bearer of-yesterday", "Basic bm9ib2R5Ong=", "MUNGE MUNGE:x:", "Bearer "])
def test_a_token_that_is_not_valid_is_refused_on_the_socket_too(shown: str, tmp_path: Path) -> None:
    with running(tmp_path) as daemon, by_socket(daemon, 0) as root:
        assert root.get("/v1/models").status_code == 200
        refused = root.get("/v1/models", headers={"Authorization": shown})
        assert (refused.status_code, refused.json()["detail"]) == (401, "the token is not valid")


def test_a_user_is_known_by_name_and_by_number() -> None:
    assert authentication.called("nobody") == authentication.called("65534") == {"nobody", "65534"}
    assert authentication.called("no such user") == {"no such user"}
    assert authentication.called("9" * 30) == {"9" * 30}
    assert authentication.called(None) == authentication.called("") == frozenset()


def test_a_user_whose_directory_was_away_is_looked_up_again_and_one_that_was_found_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, away, asked = [0.0], [True], list[str]()
    account = SimpleNamespace(pw_name="ida", pw_uid=4242)

    def found(name: str) -> object:
        asked.append(name)
        if away[0]:
            raise KeyError(name)
        return account

    monkeypatch.setattr(authentication.pwd, "getpwnam", found)
    monkeypatch.setattr(authentication.pwd, "getpwuid", lambda number: found(f"{number}"))
    monkeypatch.setattr(authentication, "time", SimpleNamespace(monotonic=lambda: now[0]))
    assert [authentication.called("ida") for _ in range(3)] == 3 * [{"ida"}]
    assert authentication.local_client(4242, frozenset()).users == {"4242"}
    assert asked == ["ida", "4242"]
    away[0], now[0] = False, authentication.LOOKED_UP_AGAIN
    assert authentication.called("ida") == authentication.local_client(4242, frozenset()).users == {"ida", "4242"}
    away[0], now[0] = True, 9 * authentication.LOOKED_UP_AGAIN
    assert authentication.called("ida") == authentication.local_client(4242, frozenset()).users == {"ida", "4242"}
    assert asked == 2 * ["ida", "4242"]
