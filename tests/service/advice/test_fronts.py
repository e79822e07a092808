"""What questions need of a view is there before it is put up, and is what they would have computed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from metasched.advised_placements import Answer, Ask
from metasched.records import Load
from metasched.service.advice import fronts
from metasched.service.advice.fronts import ASKED_WITHIN
from metasched.service.advice.rankings import ranked
from metasched.service.daemon import Daemon
from metasched.service.schemas import RankIn
from tests.service.daemons import running

ASKED = [
    Ask(application="cg", problem_size=size, **more)
    for size in (300, 900, 1800, 50_000)
    for more in ({}, {"max_processors": 2}, {"per_node": 1}, {"exclude": "e1"})
]


def answers(daemon: Daemon, now: float) -> list[dict[str, Any]]:
    return [daemon.placer.answer(ask, now).model_dump(exclude={"id"}) for ask in ASKED]


def measured(daemon: Daemon, now: float) -> None:
    loads = [Load(now, node, 0.3 + 0.1 * number, 80.0) for number, node in enumerate(sorted(daemon.clusters.nodes))]
    daemon.clusters.note(loads)


@pytest.mark.parametrize("mode", ["shadow", "act"])
def test_a_prepared_view_gives_the_same_answers(mode: str, tmp_path: Path) -> None:
    found: list[list[dict[str, Any]]] = []
    for prepares in (True, False):
        folder = tmp_path / str(prepares)
        folder.mkdir()
        with running(folder, mode=mode) as daemon:
            daemon.work.stop()
            now = float(round(time.time()))
            prepare = daemon.placer.prepare if prepares else lambda view: None
            found.append([])
            for step in range(3):
                measured(daemon, now + step)
                daemon.clusters.refresh(now + step, prepare)
                found[-1] += answers(daemon, now + step)
    assert found[0] == found[1]
    assert any(each["placed"] for each in found[0])


def test_questions_do_not_wait_for_what_was_asked_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(tmp_path) as daemon:
        daemon.work.stop()
        now = time.time()
        answers(daemon, now)
        daemon.clusters.refresh(now + 1.0, daemon.placer.prepare)
        with monkeypatch.context() as patch:
            patch.setattr(fronts, "fronts_of", None)
            assert any(each["placed"] for each in answers(daemon, now + 1.0))
        for step in range(ASKED_WITHIN + 2):
            daemon.clusters.refresh(now + step, daemon.placer.prepare)
        monkeypatch.setattr(fronts, "fronts_of", None)
        with pytest.raises(TypeError):
            answers(daemon, now)


def test_an_answer_of_the_same_loads_is_compared_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Horizons near each other share a forecast, so that nothing is computed for the second."""
    with running(tmp_path, mode="act") as daemon:
        daemon.work.stop()
        now, made = time.time(), []
        for step in range(12):
            measured(daemon, now - 360.0 + 30.0 * step)
            daemon.load_forecaster.note(daemon.clusters.latest.values(), now - 360.0 + 30.0 * step)
        whole = fronts.fronts_of
        monkeypatch.setattr(fronts, "fronts_of", lambda *given: made.append(0) or whole(*given))
        view = daemon.clusters.refresh(now)
        daemon.load_forecaster.forecast([each.state for each in view.partitions], now)
        assert daemon.load_forecaster.forecasts.of
        first: Answer = daemon.placer.answer(ASKED[0], now)
        made.clear()
        daemon.placer.answer(ASKED[0], now)
        assert first.placed
        assert len(made) == len(daemon.clusters.view.partitions)


def test_answers_and_rankings_count_with_the_same_forecasts(tmp_path: Path) -> None:
    """The loads jump every half minute, so that no forecast is what was measured last."""
    with running(tmp_path) as daemon:
        daemon.work.stop()
        now = time.time()
        for step in range(40):
            at = now - 30.0 * (39 - step)
            daemon.clusters.note([Load(at, node, 0.2 + 0.7 * (step % 2), 80.0) for node in daemon.clusters.nodes])
            daemon.load_forecaster.note(daemon.clusters.latest.values(), at)
        view = daemon.clusters.refresh(now)
        daemon.load_forecaster.forecast([each.state for each in view.partitions], now)
        asked = {"application": "cg", "problem_size": 900.0}

        def compared(placement: dict[str, Any]) -> dict[str, float]:
            names = ("processors", "available_cpu", "available_bandwidth", "execution_time")
            low, high = (placement["interval"][end] for end in ("low", "high"))
            return {"low": low, "high": high} | {name: placement[name] for name in names}

        def first(**more: Any) -> dict[str, float]:
            found = ranked(RankIn(**asked, **more), view, daemon.models, daemon.placer, now)
            return compared(found["placements"][0])

        answer = daemon.placer.answer(Ask(**asked), now)
        assert answer.placement is not None
        quick, measured_last = compared(answer.placement.as_dict()), first(forecast=False)
        assert quick == pytest.approx(first())
        assert quick["available_cpu"] < 0.9 * measured_last["available_cpu"]
        assert quick["high"] / quick["low"] > 1.1 * measured_last["high"] / measured_last["low"]
