"""What a daemon knows of jobs, queues and loads as hours pass, for :mod:`tests.service.state.test_whole_answers`.

``make answers`` writes it down anew; read the difference before it is kept.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from whole_documents import written_down

from metasched.history.log_formats import read_log
from metasched.history.queue import QueuedJob
from metasched.placement.clusters.partition import Partition
from metasched.placement.clusters.state import ClusterState
from metasched.records import InputError, Load
from metasched.service.state.job_history import JobHistory
from metasched.service.state.live_clusters import LiveClusters
from metasched.service.state.load_forecasts import LoadForecaster
from metasched.service.state.load_history import LoadHistory
from metasched.service.state.queues import Queues
from metasched.store.database.load_means import FIVE_MINUTES, mean_loads, update_means
from metasched.store.database.store import Store

START = 1_699_999_200.0
USERS, NAMES = ("ada", "bob", "cy"), ("solve", "sort")


def answers() -> dict[str, Any]:
    """What is known, by what it is known of."""
    return {name: list(told()) for name, told in (("jobs", jobs), ("loads", loads))}


def partitions(free: int) -> tuple[Partition, ...]:
    """Two partitions that share a node, and one for itself, with so many free processors on each node."""
    nodes = {"p": ["n1", "n2"], "q": ["n2", "n3"], "r": ["n4"]}
    return tuple(
        Partition(ClusterState.make(f"c/{name}", own, processors=free), "c", "c", name) for name, own in nodes.items()
    )


def queue(hour: int, now: float) -> list[QueuedJob]:
    """The jobs of an hour: those of the hour before run, or have gone, and new ones wait."""
    found = []
    for at in range(9):
        number = 6 * hour + at
        runs = at < 3 and number % 7 != 3
        where = frozenset(("p", "q", "r", "pq", "pr")[number % 5])
        found.append(QueuedJob(
            f"{number}", where, 1 + number % 4, None if number % 8 == 5 else 1800.0 * (1 + number % 3),
            60.0 * at + 30.0 if runs else None, ("n1", "n2", "n3", "n4")[number % 4 : number % 4 + 1] if runs else (),
            ready=number % 6 != 4, submitted=None if number % 9 == 8 else now - 100.0 * (9 - at),
            started=now - 60.0 * at - 30.0 if runs else None, planned=now + 500.0 * at if at % 2 else None,
            user=USERS[number % 3], name=NAMES[number % 2], executable="run.sh" if number % 2 else "", account="x",
        ))  # fmt: skip
    return found


def refused(made: Any, *arguments: Any, **named: Any) -> Any:
    try:
        return made(*arguments, **named)
    except InputError as error:
        return str(error)


def jobs() -> Iterator[Any]:
    """What is expected of jobs and how long they wait, hour by hour, and again after a restart."""
    header = "job,submit_time,run_time,processors,requested_time,user,name,partition,wait,state"
    states = ("COMPLETED", "COMPLETED", "FAILED", "TIMEOUT", "COMPLETED", "CANCELLED")
    rows = [
        f"{n},{START - 90_000.0 + 900.0 * n},{30 + 97 * n % 1500},{1 + n % 4},{1800 * (1 + n % 3)},{USERS[n % 3]},"
        f"{NAMES[n % 2]},{'pqr'[n % 3]},{7 * n % 60},{states[n % 6]}"
        for n in range(80)
    ]
    asked = {"cluster": "c", "name": "solve", "partition": "p"}
    with tempfile.TemporaryDirectory() as folder, Store.open(f"{folder}/site.db") as store:
        history = JobHistory(store)
        yield refused(history.predict, "ada", 2, 1800.0, START), history.knows(None), history.knows("c")
        yield history.take("c", read_log([header, *rows])), history.knows(None), history.ends("c")
        history.restore(rest=0.0)
        queues = Queues(history, store.wait_errors)
        yield refused(queues.one_more, "p", 1, 60.0)
        for hour in range(6):
            now = START + 1200.0 * hour
            seen = queues.put("c", partitions(hour % 3), queue(hour, now), now)
            yield [float(each.state.queue_wait.at(many)) for each in seen for many in (1, 2, 4)]
            yield queues.waiting(now), queues.waiting(now + 500.0, lambda user: user == "ada")
            yield [queues.job(f"{6 * hour + at}", now + 9.0) for at in (0, 1, 4)], queues.job("0", now, "elsewhere")
            yield [refused(queues.one_more, each, 2, 1800.0) for each in ("p", "q", "r", "s")]
            yield refused(queues.one_more, "p", 99, 60.0), refused(queues.one_more, "p", 1, 60.0, "other")
            yield [history.predict(user, 2, 3600.0, now, **asked) for user in USERS]
            yield [history.left("c")(job) for job in queue(hour, now)], history.left("d")(queue(hour, now)[0])
            for job in queue(hour, now)[:3]:
                if job.started is not None:
                    state = ("COMPLETED", "", "FAILED")[hour % 3]
                    yield history.ended("c", job.number, job.started + hour % 2 * 1.5, now + 300.0, state)
                    yield history.ended("c", job.number, job.started, now + 300.0, state)
        yield history.ended("c", "999", START, START + 1.0, ""), store.past_jobs.count()
        again = JobHistory(store)
        again.follow()
        again.restore(rest=0.0)
        history.take("d", read_log([header, *rows[:9]]))
        again.follow()
        for each in (history, again):
            yield refused(each.predict, "ada", 2, 1800.0, START), refused(each.predict, "a", 2, 9.0, 0.0, cluster="e")
            yield [each.predict(user, 3, 1800.0, START + 9e3, **(asked | {"name": "sort"})) for user in USERS]
        yield history.forget(["bob"]), history.predict("bob", 2, 1800.0, START + 9e3, **asked), store.past_jobs.count()
        history.note("c", [], START + 9e3)
        history.note("c", [], START + 9e3 + 3600.5)
        yield float(queues.put("c", partitions(4), [], START + 2e4)[0].state.queue_wait.at(2))


def loads() -> Iterator[Any]:
    """What is known of the loads of nodes, and forecast of them."""
    live, traces, forecaster = LiveClusters(), LoadHistory(), LoadForecaster()
    source = np.random.default_rng(3)
    with Store.open(":memory:") as store:
        for minute in range(150):
            now = START + 60.0 * minute
            if minute % 50 == 0:
                live.put("c", partitions(4), now)
            made = [
                Load(now - 7.0 * at, f"n{at}", 0.05 + 0.9 * float(source.random()), 100.0 * float(source.random()))
                for at in range(1, 5)
                if at != 4 or minute < 100
            ]
            live.note(made[::-1])
            live.note([replace(made[0], time=now - 1000.0, available_cpu=0.5)])
            store.loads.add(made)
            view = live.refresh(now + 5.0)
            traces.note(view.partitions, now)
            forecaster.note(live.newest_loads(), now)
            if minute % 49 == 48:
                yield [
                    [asdict(row) for row in traces.of(each, day=day)][-5:] for each in ("c/p", "c/r") for day in (0, 1)
                ]
                forecaster.forecast([each.state for each in view.partitions], now)
                for horizon in (10.0, 120.0, 900.0, 1e5):
                    for each in view.partitions:
                        over = forecaster.forecasts.over(each.state, horizon)
                        yield over.available_cpu.tolist(), over.available_bandwidth.tolist()
        yield sorted(view.ages().items()), [live.newest(node) for node in ("n1", "n4", "n9")], sorted(live.nodes)
        yield [view.find("c", name) is view.named(f"c/{name}") for name in "pqrs"], dict(live.seen_at)
        yield [each.state.available_cpu.tolist() for each in view.partitions]
        update_means(store, now)
        restored = LoadHistory()
        parts = [
            mean_loads(store, FIVE_MINUTES, since=since, until=since + 3600.0) for since in (START, START + 3600.0)
        ]
        restored.note(view.partitions, now)
        restored.restore(view.load_names(), parts)
        for day in (False, True):
            rows = restored.of("c/q", day=day)
            yield len(rows), [asdict(row) for row in rows[::7]]


if __name__ == "__main__":
    print(written_down(answers(), 12))
