"""Models in memory: only so many, each as good as if all were there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import Run
from metasched.service.state import models as state
from metasched.service.state.model_cache import ModelCache
from metasched.service.state.models import Models
from metasched.store import documents
from metasched.store.database.run_records import RecordedRun
from metasched.store.database.store import Store
from metasched.store.errors import StoreError

KEYS = [(application, platform) for application in ("cg", "lu", "mg") for platform in ("east", "west")]


def run(application: str, n: float, p: int, scale: float = 1.0) -> Run:
    return Run(application, "east", n, p, 1.0, 90.0, scale * (1e-3 * n**1.5 / p + 1e-3 * n * (p - 1)))


@given(st.lists(st.sampled_from(KEYS), max_size=30), st.sets(st.sampled_from(KEYS)), st.integers(1, 4))
def test_what_is_held_stays_and_the_rest_is_bounded(asked, held, most: int) -> None:
    reads: list[tuple[str, str]] = []

    def read(key: tuple[str, str]) -> RobustPredictor:
        reads.append(key)
        return RobustPredictor(*key)

    cache = ModelCache(read, held.__contains__, most=most)
    cache.know(KEYS)
    found = [cache[key] for key in asked]
    assert [(each.application, each.cluster) for each in found] == asked
    assert list(cache) == sorted(KEYS)
    assert len(cache._loaded) <= max(most, len(held) + 1)
    assert all(reads.count(key) <= 1 for key in held)
    assert cache.platforms("cg") == ["east", "west"]


def test_what_is_not_sound_is_gone_and_what_cannot_be_read_now_is_read_later() -> None:
    answers: list[Exception | None] = [StoreError("locked"), None]

    def read(key: tuple[str, str]) -> None:
        answer = answers.pop(0)
        if answer is not None:
            raise answer

    cache = ModelCache(read, lambda key: False)
    cache.know([("cg", "east")])
    with pytest.raises(StoreError, match="locked"):
        cache.get(("cg", "east"))
    assert ("cg", "east") in cache
    assert cache.get(("cg", "east")) is None
    assert (len(cache), cache.platforms("cg")) == (0, [])
    with pytest.raises(KeyError):
        cache["lu", "east"]


def test_a_daemon_with_more_models_than_fit_in_memory_forgets_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "ModelCache", lambda read, holds: ModelCache(read, holds, most=1))
    sizes = [(n, p) for n in (300.0, 500.0, 800.0) for p in (1, 2, 4)]
    with Store.open(tmp_path / "metasched.db") as store:
        models = Models(store)
        models.start()
        for n, p in sizes:
            for application in ("cg", "lu", "mg"):
                record = RecordedRun(run(application, n, p, len(application)))
                store.runs.add_all([record])
                models.learn(record)
                models.save()
        models.stop()
        assert models.failures == 0
        assert [models.learned_by((name, "east")).runs for name in ("cg", "lu", "mg")] == [9, 9, 9]
        again = Models(store)
        again.read()
        for application in ("cg", "lu", "mg", "cg"):
            assert again.all()[application, "east"].window.seen == 9
        assert (len(again.all()), len(again._predictors._loaded)) == (3, 1)


@pytest.mark.parametrize(
    ("most", "seconds", "expected"), [(9, 60.0, ["mg", "lu", "cg"]), (2, 60.0, ["mg", "lu"]), (9, 0.0, [])]
)
def test_a_start_reads_the_models_saved_last_while_there_is_time_and_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, seconds: float, expected: list[str]
) -> None:
    monkeypatch.setattr(state, "ModelCache", lambda read, holds: ModelCache(read, holds, most=most))
    with Store.open(tmp_path / "metasched.db") as store:
        for name in ("cg", "lu", "mg"):
            known = RobustPredictor(name, "east").fit([run(name, n, 2) for n in (300.0, 500.0)])
            store.models.save(name, "east", json.loads(documents.dump(known)))
        models = Models(store)
        models.read()
        models.warm(seconds)
        assert [name for name, _ in models._predictors._loaded] == expected


def test_a_run_whose_model_cannot_be_read_now_is_learned_by_a_later_sweep(tmp_path: Path) -> None:
    with Store.open(tmp_path / "metasched.db") as store:
        known = RobustPredictor("cg", "east").fit([run("cg", n, 2) for n in (300.0, 500.0)])
        store.models.save("cg", "east", json.loads(documents.dump(known)))
        record = RecordedRun(run("cg", 700.0, 2))
        models = Models(store)
        models.read()
        real, models._predictors._read = models._predictors._read, _locked  # type: ignore[assignment]
        assert models.predictor("cg", "east") is None
        store.runs.add_all([record])
        models.learn(record)
        models.save()
        models._thread.start()
        while models.waiting:
            pass
        models._predictors._read = real  # type: ignore[method-assign]
        models.sweep()
        models.stop()
        assert (models.all()["cg", "east"].window.seen, models.failures) == (3, 0)


def _locked(key: tuple[str, str]) -> None:
    raise StoreError("database is locked")


def test_a_model_damaged_below_its_head_is_learned_again_when_it_is_asked_for(tmp_path: Path) -> None:
    with Store.open(tmp_path / "metasched.db") as store:
        store.runs.add_all(RecordedRun(run("cg", n, 2)) for n in (300.0, 400.0))
        head = {"format": documents.FORMAT, "version": documents.VERSION, "method": "robust"}
        store.models.save("cg", "east", head, learned=[each.uid for each in store.runs.to_learn()])
        models = Models(store)
        models.start()
        assert models.predictor("cg", "east") is None
        models.stop()
        assert models.all()["cg", "east"].window.seen == 2
