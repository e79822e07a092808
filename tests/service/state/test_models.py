"""What is learned after a restart: every stored run once, whatever kind of model there is."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace

import pytest
from waiting import until

from metasched.predictors.abilities import borrowed_by
from metasched.predictors.contract import Saved
from metasched.predictors.phases.predictor import PhasedPredictor
from metasched.predictors.porting.port import port
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import InputError, Interval, PhaseMark, Prediction, Run
from metasched.service.state import models as module
from metasched.service.state.fit_workers import Fit, FitWorkers
from metasched.service.state.models import MANY, Models
from metasched.store import documents
from metasched.store.database.ended_records import EndedRecord
from metasched.store.database.run_records import RecordedRun, Selection
from metasched.store.database.store import Store
from metasched.store.errors import StoreError


def run(cluster: str, n: float, p: int, scale: float = 1.0) -> Run:
    return Run("cg", cluster, n, p, 1.0, 90.0, scale * (1e-3 * n**1.5 / p + 1e-3 * n * (p - 1)))


def ported() -> Saved:
    """Fitted to eight runs of its target that the database does not hold."""
    reference = RobustPredictor("cg", "ref").fit([run("ref", n, p) for n in range(100, 900, 50) for p in (1, 2, 4)])
    sizes = [(n, p) for n in (300, 400, 500, 600) for p in (1, 2)]
    return port(reference, [run("ref", n, p) for n, p in sizes], [run("new", n, p, 0.5) for n, p in sizes])


def phased() -> Saved:
    """Fitted to marked runs that the database does not hold, as no database holds marks."""

    def marked(n: int, p: int) -> Run:
        marks = [PhaseMark("1", k, 1.0, 90.0, 1e-3 * n / p) for k in range(p)]
        return Run("cg", "new", n, p, 1.0, 90.0, 1e-3 * n / p, marks=tuple(marks))

    return PhasedPredictor("cg", "new").fit([marked(n, p) for n in (1000, 2000, 4000) for p in (1, 2, 4)])


def learned_by(path: Path, expected: int) -> list[float]:
    """Start the models of a database, let them learn what they do not know, and tell which runs those were."""
    with Store.open(path) as store:
        models = Models(store)
        taken: list[float] = []
        real = models._learn
        models._learn = lambda record: (taken.append(record.run.problem_size), real(record))  # type: ignore[method-assign]
        models.start()
        models.stop()
        assert models.failures == 0
        assert len(taken) == expected
    return taken


def of_another_format(path: Path) -> Path:
    """A database in which the model of two runs cannot be read any more."""
    with Store.open(path) as store:
        store.runs.add_all(RecordedRun(run("east", n, 2)) for n in (300.0, 400.0))
    learned_by(path, 0)
    with Store.open(path) as store:
        store.models.save("cg", "east", {"format": "metasched-model", "version": 99, "method": "robust"})
    return path


def test_the_end_leaves_runs_that_nobody_has_time_to_learn_to_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ENDING", -1.0)
    learned, begun, go = list[float](), Event(), Event()

    def learn(record: RecordedRun) -> None:
        learned.append(record.run.problem_size)
        begun.set()
        go.wait(60.0)

    with Store.open(tmp_path / "metasched.db") as store:
        models = Models(store)
        monkeypatch.setattr(models, "_learn", learn)
        models.start()
        for size in (100.0, 200.0, 300.0):
            models.learn(RecordedRun(run("new", size, 1)))
        assert begun.wait(60.0)
        ending = Thread(target=models.stop)
        ending.start()
        until(lambda: models._queue.qsize() >= 3)  # the last two, and that it is to end
        go.set()
        ending.join(60.0)
        assert not ending.is_alive()
    assert learned == [100.0]


@pytest.mark.parametrize("make", [ported, phased])
def test_runs_of_a_model_that_was_fitted_elsewhere_are_all_learned_and_each_once(make, tmp_path: Path) -> None:
    path = tmp_path / "metasched.db"
    with Store.open(path) as store:
        store.models.save("cg", "new", json.loads(documents.dump(make())))
        store.runs.add_all(RecordedRun(run("new", n, 2, 0.5)) for n in (700.0, 710.0, 720.0))
    assert learned_by(path, 3) == [700.0, 710.0, 720.0]
    learned_by(path, 0)
    with Store.open(path) as store:
        store.runs.add(run("new", 730.0, 2, 0.5))
    assert learned_by(path, 1) == [730.0]


def test_a_run_that_was_confirmed_late_is_learned_and_the_one_after_it_not_twice(tmp_path: Path) -> None:
    path = tmp_path / "metasched.db"
    early = RecordedRun(run("east", 300.0, 2), learnable=False)
    with Store.open(path) as store:
        store.runs.add_all([early, RecordedRun(run("east", 400.0, 2))])
    learned_by(path, 0)  # there was no model yet: it begins with all that it may learn
    with Store.open(path) as store:
        assert documents.parse(json.dumps(store.models.document("cg", "east"))).window.seen == 1
        store.ended.add([EndedRecord(early.uid, replace(early, learnable=True), corrects=True)])
    assert learned_by(path, 1) == [300.0]


def test_a_model_that_cannot_be_read_is_learned_again_from_all_runs(tmp_path: Path) -> None:
    path = of_another_format(tmp_path / "metasched.db")
    learned_by(path, 0)
    with Store.open(path) as store:
        assert documents.parse(json.dumps(store.models.document("cg", "east"))).window.seen == 2


def test_forgotten_runs_are_unlearned_at_once_and_after_a_restart(tmp_path: Path) -> None:
    answer = [replace(run("c8", n, p), extra={"user": "ada"}) for n in (300, 400, 500) for p in (1, 2)]
    lies = [replace(run("c8", n, 2, 5.0), extra={"user": "eve"}) for n in (350, 450)]
    request = run("c8", 450, 2).request
    with Store.open(tmp_path / "metasched.db") as store:
        store.runs.add_all([RecordedRun(each) for each in [*answer, *lies]])
        models = Models(store)
        models.start()
        found = models.forget(Selection(user="eve"))
        assert (found.runs, found.models) == (2, (("cg", "c8"),))
        assert models.forget(Selection(user="eve")).runs == 0
        now = models.predictor("cg", "c8")
        models.stop()
        again = Models(store)
        again.start()
        again.stop()
        later = again.predictor("cg", "c8")
        assert models.failures == again.failures == 0
        assert [each.extra["user"] for each in store.runs.learnable()] == ["ada"] * 6
        assert len(store.runs.all()) == 8
    clean = RobustPredictor("cg", "c8").fit(answer).predict(request)
    assert now is not None
    assert later is not None
    assert now.predict(request) == later.predict(request) == clean


def test_a_model_whose_runs_are_all_forgotten_is_gone(tmp_path: Path) -> None:
    with Store.open(tmp_path / "metasched.db") as store:
        store.runs.add_all([RecordedRun(run("c8", 300, 1), uid="0" * 32), RecordedRun(run("d16", 300, 1))])
        models = Models(store)
        models.start()
        assert models.forget(Selection(uids=("0" * 32,))).models == (("cg", "c8"),)
        known = [*models.all()]
        models.stop()
        assert known == [("cg", "d16")]
        assert [row[:2] for row in store.models.all()] == [("cg", "d16")]


def test_a_platform_never_used_borrows_from_the_others_until_it_has_runs_of_its_own(tmp_path: Path) -> None:
    sizes = [(n, p) for n in (300.0, 500.0, 800.0) for p in (1, 2, 4)]
    with Store.open(tmp_path / "metasched.db") as store:
        models = Models(store)
        models.start()
        assert models.predictor("cg", "new") is None
        for n, p in sizes:
            record = RecordedRun(run("old", n, p))
            store.runs.add_all([record])
            models.learn(record)
        models.stop()
        asked = run("new", 600.0, 4, 0.5)
        never = models.predictor("cg", "new")
        assert never is not None
        assert never.predict(asked.request).interval.holds(asked.execution_time)
        far = run("new", 3000.0, 8, 0.5).request
        before = never.predict(far).interval
        models._learn(RecordedRun(run("old", 3000.0, 8)))  # and knows at once what is learned of the others
        renewed = models.predictor("cg", "new")
        assert renewed is not None
        after = renewed.predict(far).interval
        assert after.high / after.low < 0.9 * before.high / before.low
        models._learn(RecordedRun(run("new", 400.0, 2, 0.5)))
        models._learn(RecordedRun(run("new", 700.0, 2, 0.5)))
        used = models.predictor("cg", "new")
        assert used is not None
        assert used.predict(asked.request).execution_time == pytest.approx(asked.execution_time, rel=0.1)
        assert "runs on old are used too" in used.predict(asked.request).warnings[0]
        assert models.failures == 0


def test_a_run_is_judged_by_what_its_user_was_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def told(predictor: object, user: str) -> SimpleNamespace:
        time = 10.0 if user == "ann" else 20.0
        return SimpleNamespace(predict=lambda request: Prediction(time, Interval(time, time, 0.9), ""))

    with Store.open(tmp_path / "metasched.db") as store:
        models = Models(store)
        for n in (300.0, 500.0, 800.0):
            models._learn(RecordedRun(run("east", n, 2)))
        monkeypatch.setattr(module, "for_user", told)
        for user in ("ann", "bob"):
            models._learn(RecordedRun(replace(run("east", 600.0, 2), extra={"user": user})))
        assert [each.predicted for each in models.recent.of("cg", "east")][-2:] == [10.0, 20.0]


@pytest.mark.parametrize("fault", [StoreError("the disk is full"), ValueError("a fault of ours")])
def test_a_run_is_learned_and_saved_whatever_fails_beside_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    def failing(*given: object) -> None:
        raise fault

    with Store.open(tmp_path / "metasched.db") as store:
        models = Models(store)
        records = [RecordedRun(run("east", n, 2)) for n in (300.0, 500.0, 800.0)]
        store.runs.add_all(records)
        models._learn(records[0])
        models._borrowing._never_used["cg", "other"] = RobustPredictor()
        with monkeypatch.context() as patched:
            patched.setattr(models._borrowing, "_made", failing)
            models._learn(records[1])
            patched.setattr(models.recent, "note", failing)
            models._learn(records[2])
        models._save()
        assert documents.parse(json.dumps(store.models.document("cg", "east"))).window.seen == 3
        assert store.runs.to_learn() == ()
    learned_by(tmp_path / "metasched.db", 0)


def test_a_run_that_could_not_be_learned_is_tried_again_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*given: object) -> None:
        raise ValueError("a fault of ours")

    path = tmp_path / "metasched.db"
    with Store.open(path) as store:
        models = Models(store)
        records = [RecordedRun(run("east", n, 2)) for n in (300.0, 500.0, 800.0)]
        store.runs.add_all(records)
        models._learn(records[0])
        with monkeypatch.context() as patched:
            patched.setattr(module, "learned", failing)
            models._learn(records[1])
        models._learn(records[2])
        models._save()
        assert models.failures == 1
    assert learned_by(path, 1) == [500.0]


@pytest.mark.parametrize(("kind", "read"), [("runs", "to_learn"), ("models", "of_another_format")])
def test_models_that_must_be_learned_again_are_though_the_database_fails_at_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, read: str
) -> None:
    def failing(*given: object) -> None:
        raise StoreError("the disk is full")

    with Store.open(of_another_format(tmp_path / "metasched.db")) as store:
        models = Models(store)
        with monkeypatch.context() as patched:
            patched.setattr(getattr(store, kind), read, failing)
            with pytest.raises(StoreError):
                models.start()
        models.start()
        models.stop()
        found = models.predictor("cg", "east")
        assert isinstance(found, RobustPredictor)
        assert found.window.seen == 2


def test_a_run_that_somebody_spoiled_keeps_no_other_from_being_learned(tmp_path: Path) -> None:
    path = tmp_path / "metasched.db"
    with Store.open(path) as store:
        store.runs.add_all(RecordedRun(run("east", n, 2)) for n in (300.0, 400.0))
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("UPDATE runs SET processors = 0 WHERE problem_size = 300")
    learned_by(path, 0)
    with Store.open(path) as store:
        assert documents.parse(json.dumps(store.models.document("cg", "east"))).window.seen == 1


@contextmanager
def lending(path: Path) -> Iterator[tuple[Models, Selection]]:
    """Models of which one has a run of its own and borrows three of another's, and these."""
    with Store.open(path) as store:
        lent = [RecordedRun(run("old", n, 2)) for n in (300.0, 500.0, 800.0)]
        store.runs.add_all(lent)
        models = Models(store)
        models.start()
        until(lambda: models.answering(("cg", "old")) is not None)
        own = RecordedRun(run("new", 400.0, 2))
        store.runs.add_all([own])
        models.learn(own)
        until(lambda: borrowed(models) == 3)
        yield models, Selection(uids=tuple(record.uid for record in lent))


def borrowed(models: Models) -> int:
    """How many runs the model with one run of its own has borrowed."""
    known = models.answering(("cg", "new"))
    return 0 if known is None else len(borrowed_by(known))


def test_what_was_forgotten_is_lent_to_nobody(tmp_path: Path) -> None:
    with lending(tmp_path / "metasched.db") as (models, those):
        assert models.forget(those).runs == 3
        models.stop()
        assert borrowed(models) == 0
        assert models.learned_by(("cg", "new")).runs == 1


def test_what_was_forgotten_is_lent_to_nobody_though_the_database_fails_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(_: object) -> tuple[Run, ...]:
        raise StoreError("the disk does not answer")

    with lending(tmp_path / "metasched.db") as (models, those):
        with monkeypatch.context() as meanwhile:
            meanwhile.setattr(models._borrowing, "lent", failing)
            models.forget(those)
        models.sweep()
        models.stop()
        known = models.answering(("cg", "new"))
        assert known is not None
        assert (borrowed(models), len(known.window)) == (0, 1)


class Elsewhere(FitWorkers):
    """Workers that fit where they are asked, but for some applications, and fail after some models."""

    def __init__(self, failing: Collection[str] = (), after: int = 99) -> None:
        self.failing, self.left, self.asked = failing, after, list[str]()

    def fit(self, fits: Iterable[Fit]) -> Iterator[tuple[Fit, Saved | Exception]]:
        for fit in fits:
            if not self.left:
                raise OSError("the scheduler has gone")
            self.left -= 1
            self.asked.append(fit.application)
            yield fit, InputError("no memory") if fit.application in self.failing else fit.fitted()


@pytest.mark.parametrize(
    ("count", "workers", "asked"),
    [
        (MANY - 1, Elsewhere(), 0), (MANY, Elsewhere(), MANY), (MANY, Elsewhere(["a1", "a3"]), MANY),
        (MANY, Elsewhere(after=2), 2), (MANY, None, 0),
    ],
)  # fmt: skip
def test_many_models_are_begun_by_workers_and_those_that_they_fail_to_fit_by_the_daemon(
    count: int, workers: Elsewhere | None, asked: int, tmp_path: Path
) -> None:
    with Store.open(tmp_path / "metasched.db") as store:
        for number in range(count):
            store.runs.add_all(
                RecordedRun(replace(run("east", n, 2), application=f"a{number}")) for n in (300.0, 400.0)
            )
        models = Models(store, workers)
        models.start()
        models.stop()
        assert (models.failures, len(models.all()), store.runs.to_learn()) == (0, count, ())
        assert {each.runs for each in models.learned().values()} == {2}
    assert len(workers.asked if workers else ()) == asked
