"""Small parts of the daemon's state: its mode, contests of models, freed memory, described and running jobs."""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from known_model import Known

from metasched.placement.clusters.running_jobs import RunningJob, StartedJob
from metasched.placement.clusters.state import ClusterState
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.predictors.tournament import WINDOW, error_of
from metasched.records import Request, Run
from metasched.service.configuration import DESCRIBED
from metasched.service.state import contests, memory_use, running_jobs
from metasched.service.state.contests import Contests
from metasched.service.state.described_clusters import DescribedClusters
from metasched.service.state.mode_switch import ModeSwitch
from metasched.service.state.running_jobs import RunningJobs
from metasched.store.database.modes import ModeSet
from metasched.store.database.store import Store

KEY = ("cg", "east")


@pytest.fixture
def store() -> Iterator[Store]:
    with Store.open(":memory:") as found:
        yield found


def test_a_mode_that_was_set_says_who_set_it_and_when_and_holds_until_the_configuration_says_another(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    changes: list[str] = []
    switch = ModeSwitch("shadow", store.modes, lambda: 1.5e9)
    switch.on_change = changes.append
    untouched = {"mode": "shadow", "configured": "shadow", "set_by": None, "set_at": None}
    assert switch.as_dict() == untouched
    switch.set("act", "root")
    known = {"mode": "act", "configured": "shadow", "set_by": "root", "set_at": 1.5e9}
    assert switch.as_dict() == known
    assert changes == ["act"]
    assert [each.getMessage() for each in caplog.records] == ["mode act, set by root; it was shadow"]
    caplog.clear()
    assert ModeSwitch("shadow", store.modes, lambda: 1.5e9).as_dict() == known
    assert [(each.levelno, each.getMessage()) for each in caplog.records] == [
        (logging.WARNING, 'mode act, as root set it; the configuration says "shadow"')
    ]
    caplog.clear()
    assert ModeSwitch("advise", store.modes, lambda: 1.5e9).as_dict() == {
        "mode": "advise", "configured": "advise", "set_by": None, "set_at": None,
    }  # fmt: skip
    assert caplog.records == []


def test_a_mode_that_is_set_as_configured_is_not_warned_of(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    store.modes.add(ModeSet(1.0, "shadow", "shadow", "root"))
    assert ModeSwitch("shadow", store.modes, lambda: 1.5e9).as_dict()["set_by"] == "root"
    assert caplog.records == []


def test_what_another_daemon_set_is_taken_up_once(store: Store) -> None:
    changes: list[str] = []
    switch = ModeSwitch("shadow", store.modes, lambda: 1.5e9)
    switch.on_change = changes.append
    switch.read()
    assert changes == []
    store.modes.add(ModeSet(1.0, "act", "shadow", "root"))
    for _ in range(2):
        switch.read()
    store.modes.add(ModeSet(2.0, "advise", "advise", "root"))
    switch.read()
    assert changes == ["act", "shadow"]
    assert switch.mode == "shadow"


class Guess:
    """Predicts a share of each run's time: of its problem size."""

    def __init__(self, share: float) -> None:
        self.share, self.known = share, -1

    def predict(self, request: Request) -> Any:
        """As long as the share of the problem size (s)."""
        return SimpleNamespace(execution_time=self.share * request.problem_size)

    def corrected(self, runs: Sequence[Run]) -> Guess:
        """The same, which remembers how many runs it was shown."""
        self.known = len(runs)
        return self


def run(size: float, cpu: float = 0.9) -> Run:
    return Run("cg", "east", size, 2, cpu, 90.0, size)


def test_the_smaller_mean_error_over_the_last_twenty_runs_wins() -> None:
    found: Any = Contests()
    assert not found.assumed_better(KEY)
    for _ in range(WINDOW):
        found.note(KEY, Guess(1.5), Guess(3.0), run(10.0))
    assert found.assumed_better(KEY)
    assert not found.assumed_better(("lu", "east"))
    # Errors are 0.5 and 2 of old runs, 3 and 0 of new ones: means cross where 3 k + 0.5 (20 - k) = 2 (20 - k).
    won = []
    for _ in range(WINDOW):
        found.note(KEY, Guess(4.0), Guess(1.0), run(10.0))
        won.append(found.assumed_better(KEY))
    assert won == [k < 20 / 3 for k in range(1, WINDOW + 1)]
    assert found._errors[KEY] == ((3.0, 0.0),) * WINDOW
    found.forget(KEY)
    found.forget(KEY)
    assert not found.assumed_better(KEY)


def test_runs_without_measured_loads_decide_nothing_and_a_tie_goes_to_what_was_learned() -> None:
    found: Any = Contests()
    found.note(KEY, Guess(1.0), Guess(9.0), run(10.0, float("nan")))
    assert not found.assumed_better(KEY)
    found.note(KEY, Guess(2.0), Guess(0.5), run(10.0))
    assert found._errors[KEY] == ((1.0, 1.0),)
    assert not found.assumed_better(KEY)


@pytest.mark.parametrize(("many", "held_back"), [(3, 0), (4, 1), (7, 1), (8, 2), (40, 10)])
def test_both_are_tried_on_the_last_quarter_of_known_runs_by_those_before(
    many: int, held_back: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[int] = []

    def fit(application: str, platform: str, runs: Sequence[Run]) -> Any:
        shown.append(len(runs))
        return SimpleNamespace(fitted=lambda: Guess(2.0))

    monkeypatch.setattr(contests, "Fit", fit)
    found, assumed = Contests(), Guess(1.25)
    runs = [run(10.0 + number) for number in range(many)]
    for _ in range(2):
        found.rehearse(KEY, assumed, runs)  # type: ignore[arg-type]
    assert found._errors.get(KEY, ()) == ((0.25, 1.0),) * held_back
    assert (assumed.known, shown) == ((many - held_back, [many - held_back]) if held_back else (-1, []))


def test_a_rehearsal_passes_over_runs_without_loads() -> None:
    found, assumed = Contests(), Guess(1.0)
    runs = [run(10.0 + number) for number in range(12)]
    found.rehearse(KEY, assumed, [*runs[:-3], *(run(30.0, float("nan")) for _ in range(3))])  # type: ignore[arg-type]
    assert found._errors[KEY] == ()
    found = Contests()
    found.rehearse(KEY, assumed, [*runs[:-1], run(30.0, float("nan"))])  # type: ignore[arg-type]
    fitted = RobustPredictor("cg", "east").fit(runs[:9])
    assert len(found._errors[KEY]) == 2
    assert [known for _, known in found._errors[KEY]] == [error_of(fitted, each) for each in runs[9:11]]


def test_the_c_library_is_told_what_malloc_h_calls_these_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    library = SimpleNamespace(
        mallopt=lambda *given: told.append(given), malloc_trim=lambda left: told.append(("trim", left))
    )
    monkeypatch.setattr(memory_use, "ctypes", SimpleNamespace(CDLL=lambda name: library if name is None else None))
    memory_use.keep_little()
    memory_use.give_back()
    arenas, from_mapping, trimmed = -8, -3, -1  # M_ARENA_MAX, M_MMAP_THRESHOLD and M_TRIM_THRESHOLD of malloc.h
    assert told == [(arenas, 2), (from_mapping, 256 * 1024), (trimmed, 1024 * 1024), ("trim", 0)]


def test_a_c_library_without_these_calls_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str | None] = []
    monkeypatch.setattr(
        memory_use, "ctypes", SimpleNamespace(CDLL=lambda name: opened.append(name) or SimpleNamespace())
    )
    memory_use.keep_little()
    memory_use.give_back()
    assert opened == [None, None]


def test_what_is_there_is_never_looked_through_again(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[Any] = []
    stand_in = SimpleNamespace(
        collect=lambda: done.append("collect"), freeze=lambda: done.append("freeze"), set_threshold=done.append
    )
    monkeypatch.setattr(memory_use, "gc", stand_in)
    memory_use.keep_for_good()
    assert done == ["collect", "freeze", memory_use.YOUNG]
    assert gc.get_threshold()[0] < memory_use.YOUNG


JOB = RunningJob(("n0", "n2"), (1, 1), 30.0, 10.0)
STARTED = StartedJob(("n1",), (1,), 5.0, "cg", 100.0)


def shown(at: float, model: Any = None) -> tuple[DescribedClusters, list[tuple[Any, ...]]]:
    state = ClusterState.make("d", ["n0", "n1", "n2"], jobs=[1, 2, 1])
    description: Any = SimpleNamespace(clusters=(state,), running={"d": (JOB, STARTED)})
    found, calls = DescribedClusters(description, 1000.0), []
    clusters: Any = SimpleNamespace(
        put=lambda source, partitions, at: calls.append(("put", source, partitions[0].state.jobs.tolist(), at)),
        put_running=lambda source, jobs, at: calls.append(("running", source, tuple(jobs), at)),
    )
    found.show(clusters, model or (lambda platform, name: None), at)
    found.show(clusters, model or (lambda platform, name: None), at)
    return found, calls


def test_described_jobs_run_until_what_they_have_left_is_over() -> None:
    _, calls = shown(1039.0)
    running = ("running", calls[0][1], (JOB, STARTED), 1000.0)
    # A job without a model may run for ever; partitions are put up only where something has changed.
    assert calls == [running, ("put", DESCRIBED, [1, 2, 1], 1000.0), running]
    _, calls = shown(1040.0)
    running = ("running", calls[0][1], (STARTED,), 1000.0)
    assert calls == [running, ("put", DESCRIBED, [0, 2, 0], 1000.0), running]


def test_the_model_of_a_described_job_says_when_it_is_over() -> None:
    asked: list[tuple[str, str]] = []
    model = RobustPredictor("cg", "d").fit([Run("cg", "d", n, 1, 1.0, 90.0, n / 10.0) for n in (50.0, 100.0, 200.0)])

    def known(platform: str, name: str) -> RobustPredictor:
        asked.append((platform, name))
        return model

    whole = float(model.expect_many(100.0, 1, 1.0, 1000.0)[0])
    _, calls = shown(1000.0 + whole, known)
    assert calls[0][2] == (JOB,)
    assert calls[1][2] == [1, 1, 1]
    assert set(asked) == {("d", "cg")}


def test_clusters_are_put_up_again_where_one_job_ends_and_another_is_said_to_run_on() -> None:
    job, other = StartedJob(("n0",), (1,), 5.0, "a", 100.0), StartedJob(("n1",), (1,), 5.0, "b", 100.0)
    state = ClusterState.make("d", ["n0", "n1"], jobs=[1, 1])
    found = DescribedClusters(SimpleNamespace(clusters=(state,), running={"d": (job, other)}), 0.0)  # type: ignore[arg-type]
    put: list[list[int]] = []
    clusters: Any = SimpleNamespace(
        put=lambda source, partitions, at: put.append(partitions[0].state.jobs.tolist()),
        put_running=lambda source, jobs, at: None,
    )

    def taking(seconds: float) -> RobustPredictor:
        return RobustPredictor().fit([Run("x", "d", n, 1, 1.0, 90.0, seconds) for n in (50.0, 100.0, 200.0)])

    short, long = taking(10.0), taking(1e4)
    found.show(clusters, lambda platform, name: short if name == "a" else long, 100.0)
    found.show(clusters, lambda platform, name: short if name == "b" else long, 200.0)
    assert put == [[0, 1], [1, 0]]


def test_the_jobs_of_a_partition_are_worked_out_once_for_each_view(monkeypatch: pytest.MonkeyPatch) -> None:
    worked: list[Any] = []

    def terms(jobs: Any, state: Any, model: Any, *, sure: bool) -> Any:
        worked.append((jobs, state.name, model("cg"), sure))
        return len(worked)

    monkeypatch.setattr(running_jobs, "terms_left", terms)
    views = [SimpleNamespace(running_on=lambda partition, n=n: (f"job {n}",)) for n in range(2)]
    clusters = SimpleNamespace(view=views[0])
    models = SimpleNamespace(predictor=lambda application, platform: (application, platform))
    found: Any = RunningJobs(clusters, models)  # type: ignore[arg-type]
    one, other = (
        SimpleNamespace(state=SimpleNamespace(name=name), platform=f"of {name}", scheduler=scheduler)
        for name, scheduler in (("a", "slurm"), ("b", ""))
    )
    assert [found.on(one), found.on(other), found.on(one)] == [1, 2, 1]
    clusters.view = views[1]
    assert [found.on(one), found.on(one)] == [3, 3]
    assert worked == [
        (["job 0"], "a", ("cg", "of a"), True), (["job 0"], "b", ("cg", "of b"), False),
        (["job 1"], "a", ("cg", "of a"), True),
    ]  # fmt: skip


def test_a_job_that_runs_where_it_was_placed_counts_with_the_power_of_its_placement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def job(*nodes: str, comment: str) -> StartedJob:
        return StartedJob(nodes, (1,) * len(nodes), 600.0, "cg", 1.0, comment=comment)

    def named(uid: str) -> str:
        return f"metasched:app=cg,n=1,placement={uid * 16}"

    jobs = (
        job("n0", "n1", comment=named("a1")),
        job("n2", comment=named("a1")),  # placed there once, and elsewhere now
        job("n3", comment="metasched:app=cg,n=1"),
        RunningJob(("n4",), (1,), 100.0, 0.0, power=30.0),
    )
    clusters = SimpleNamespace(view=SimpleNamespace(running_on=lambda partition: jobs))
    models = SimpleNamespace(predictor=lambda application, platform: Known())
    running = RunningJobs(clusters, models)  # type: ignore[arg-type]
    partition: Any = SimpleNamespace(
        state=ClusterState.make("c", [f"n{k}" for k in range(5)]), platform="c", scheduler="slurm"
    )

    def placed(*nodes: str, power: float | None, doubt: float | None = None) -> Any:
        chosen = SimpleNamespace(nodes=nodes, frequency=None)
        return SimpleNamespace(power_middle=power, power_doubt=doubt, resource_set=chosen)

    monkeypatch.setattr(running_jobs, "MOST_PLACED", 8)
    running.remember("b2" * 16, placed("n3", power=None))
    for number in range(7):
        running.remember(f"{number:032x}", placed("n3", power=1.0))
    running.remember("a1" * 16, placed("n1", "n0", power=120.0, doubt=15.0))
    running.remember("c3" * 16, placed("n3", power=50.0))  # the oldest are forgotten
    found, notes = running.on(partition)
    assert notes == ()
    powers = {each.nodes: (each.power, each.power_doubt) for each in found}
    assert powers == {
        ("n0", "n1"): (120.0, 15.0), ("n2",): (None, 0.0), ("n3",): (None, 0.0), ("n4",): (30.0, 0.0)
    }  # fmt: skip
