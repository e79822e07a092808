"""What the sender makes of each answer: what it sends again, gives up, waits for and logs."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from email.message import Message
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitors.agent import sender as module
from monitors.agent.sender import BATCH, Sender
from monitors.agent.spool import Spool
from monitors.http_exchange import Answer
from monitors.sources.contract import Sample

Asked = list[tuple[str, list[float]]]


def answer(status: int, body: object = None) -> Answer:
    text = body if isinstance(body, bytes) else json.dumps({} if body is None else body).encode()
    return Answer(status, Message(), text)  # type: ignore[arg-type]


def sending(
    path: Path, count: int, reply: Callable[[str, list[float]], Answer], patch: pytest.MonkeyPatch,
    urls: str = "http://one http://two/", now: Callable[[], float] = lambda: 0.0,
) -> tuple[Sender, Spool, Asked]:  # fmt: skip
    """A sender of so many samples at moments from 0 on, its spool, and what it posts: the URL and the moments."""
    spool, asked = Spool(path), []

    def post(url: str, token: str, message: dict[str, Any], timeout: float) -> Answer:
        assert (token, message["node"], timeout) == ("secret", "n0", 7.0)
        assert all(each[1:] == [0.5, 90.123] for each in message["samples"])
        moments = [each[0] for each in message["samples"]]
        asked.append((url, moments))
        return reply(url, moments)

    patch.setattr(module, "post", post)
    for moment in range(count):
        spool.keep(Sample("n0", float(moment), 0.50001, 90.1234))
    return Sender(spool, urls, "secret", timeout=7.0, clock=now), spool, asked


@settings(max_examples=25)
@given(st.integers(1, 40), st.sets(st.integers(0, 39), max_size=4), st.sampled_from([400, 413, 422]))
def test_of_samples_that_can_never_be_taken_each_is_left_out_and_no_other(
    count: int, bad: set[int], status: int
) -> None:
    taken: list[float] = []

    def reply(url: str, moments: list[float]) -> Answer:
        if bad & set(map(int, moments)):
            return answer(status)
        taken.extend(moments)
        return answer(200, {"refused": {}})

    with pytest.MonkeyPatch.context() as patch:
        sender, spool, _ = sending(Path(":memory:"), count, reply, patch)
        assert sender.send() == count - len(bad & set(range(count)))
    assert taken == [float(moment) for moment in range(count) if moment not in bad]
    assert (len(spool), sender.failures) == (0, 0)


@settings(max_examples=25)
@given(st.lists(st.sampled_from(["n0", "n1", "n2"]), max_size=12))
def test_each_sample_is_sent_under_the_name_that_its_node_had_however_often_it_was_renamed(names: list[str]) -> None:
    spool, taken = Spool(Path(":memory:")), []

    def post(url: str, token: str, message: dict[str, Any], timeout: float) -> Answer:
        taken.extend((message["node"], each[0]) for each in message["samples"])
        return answer(200)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "post", post)
        for moment, name in enumerate(names):
            spool.keep(Sample(name, float(moment), 0.5, 90.0))
        assert Sender(spool, "http://one", "secret").send() == len(names)
    assert taken == [(name, float(moment)) for moment, name in enumerate(names)]


def test_samples_are_sent_in_whole_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sender, _, asked = sending(tmp_path / "s.db", BATCH + 2, lambda *_: answer(200), monkeypatch)
    assert sender.send() == BATCH + 2
    assert [(url, len(moments)) for url, moments in asked] == [
        ("http://one/v1/loads", BATCH),
        ("http://one/v1/loads", 2),
    ]


def test_refused_samples_of_a_batch_are_counted_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    body = {"refused": {"too old": 2, "x" * 80: 1, "none": 0}}
    sender, spool, _ = sending(tmp_path / "s.db", 5, lambda *_: answer(200, body), monkeypatch)
    assert (sender.send(), len(spool)) == (2, 0)
    assert caplog.messages == [f"the daemon rejected samples: {{'too old': 2, '{'x' * 60}': 1}}"]


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b'{"refused": 3}', b'{"refused": {"a": "x"}}', b'{"refused": null}', b"[" * 100_000]
)
def test_an_answer_that_tells_no_refusals_refuses_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: bytes
) -> None:
    sender, _, _ = sending(tmp_path / "s.db", 5, lambda *_: answer(200, body), monkeypatch)
    assert sender.send() == 5


def test_after_each_failure_it_waits_up_to_twice_as_long_and_no_longer_than_five_minutes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, waits = [0.0], []

    def uniform(low: float, high: float) -> float:
        waits.append((low, high))
        return high

    monkeypatch.setattr("random.uniform", uniform)
    sender, spool, asked = sending(
        tmp_path / "s.db", 1, lambda *_: answer(503), monkeypatch, "http://one", lambda: now[0]
    )
    for number in range(1, 11):
        assert (sender.send(), sender.failures, len(asked)) == (0, number, number)
        now[0] += waits[-1][1] - 0.01
        assert (sender.send(), len(asked)) == (0, number)  # not yet
        now[0] += 0.01
    longest = [2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 300.0, 300.0]
    assert waits == [(each / 2, each) for each in longest]
    monkeypatch.setattr(module, "post", lambda *_: answer(200))
    assert (sender.send(), sender.failures, len(spool)) == (1, 0, 0)


@pytest.mark.parametrize(
    ("replies", "urls", "said"),
    [
        # Each daemon is asked once before it waits.
        ([503, 429], ["one", "two"], "HTTP 429 from http://two/v1/loads; 1 unsent samples"),
        ([None, None], ["one", "two"], "no answer from http://two/v1/loads; 1 unsent samples"),
        ([503, 200], ["one", "two"], None),
        ([300, 299], ["one", "two"], None),
    ],
)
def test_the_next_daemon_is_asked_before_it_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
    replies: list[int | None], urls: list[str], said: str | None,
) -> None:  # fmt: skip
    caplog.set_level(logging.INFO)
    left = iter(replies)

    def reply(url: str, moments: list[float]) -> Answer:
        status = next(left)
        if status is None:
            raise OSError("refused")
        return answer(status)

    sender, spool, asked = sending(tmp_path / "s.db", 1, reply, monkeypatch)
    sender.send()
    assert [url for url, _ in asked] == [f"http://{url}/v1/loads" for url in urls]
    assert (sender.failures, len(spool)) == ((0, 0) if said is None else (1, 1))
    assert caplog.messages == ([] if said is None else [said])


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"detail": "too many"}, " (too many)"),
        ({"detail": "a\nb\x1b"}, " (a b)"),
        ({"detail": "d" * 300}, f" ({'d' * 200})"),
        ({"detail": ["x"]}, " (['x'])"),
        ({}, ""),
        ([], ""),
        (b"{", ""),
        (b"[" * 100_000, ""),
    ],
)
def test_the_first_failure_is_logged_with_what_the_daemon_says_and_later_ones_quietly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, body: object, said: str
) -> None:
    caplog.set_level(logging.DEBUG)
    now = [0.0]
    sender, _, _ = sending(
        tmp_path / "s.db", 2, lambda *_: answer(503, body), monkeypatch, "http://one", lambda: now[0]
    )
    sender.send()
    now[0] += 300.0
    sender.send()
    line = f"HTTP 503{said} from http://one/v1/loads; 2 unsent samples"
    found = [(each.levelno, each.getMessage()) for each in caplog.records if each.name == module.__name__]
    assert found == [(logging.WARNING, line), (logging.DEBUG, line)]
