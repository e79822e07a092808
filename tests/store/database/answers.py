"""What a database tells after days of use, compared by :mod:`tests.store.database.test_whole_answers`.

``make answers`` writes it down anew; read the difference before it is kept.
"""

from __future__ import annotations

import math
import random
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields
from typing import Any

import numpy as np
import pytest
from whole_documents import written_down

from metasched.advised_placements import AdvisedPlacement, Answer, Ask, Outcome
from metasched.history.job_log import JobLog
from metasched.history.log_formats import read_log
from metasched.records import InputError, Load, Run
from metasched.store.database import integrity, load_means, retention
from metasched.store.database.backup import backup, restore
from metasched.store.database.downgrade import SCHEMAS, downgrade
from metasched.store.database.ended_records import EndedRecord
from metasched.store.database.load_means import FIVE_MINUTES, HOUR
from metasched.store.database.modes import ModeSet
from metasched.store.database.run_records import RecordedRun, Selection, forgotten_document
from metasched.store.database.store import Store
from metasched.store.files.loads import Loads

#: A moment at the start of an hour (s since 1970), and how long the clock is ahead of it at the end.
START, LATER = 1_699_999_200.0, 9000.0
USERS, APPLICATIONS, PLATFORMS = ("ada", "bob", "cy"), ("cg", "fft"), ("c8", "c9")


def answers() -> dict[str, Any]:
    """What each kind of record tells, by its name."""
    with Store.open(":memory:") as store, pytest.MonkeyPatch.context() as patch:
        now = [START]
        patch.setattr("time.time", lambda: now[0])
        source = random.Random(7)
        return {name: [of(each) for each in told(store, source, now)] for name, told in KINDS.items()}


def of(told: Any) -> Any:
    """An answer as a document."""
    if isinstance(told, RecordedRun | AdvisedPlacement):
        return told.as_dict()
    if isinstance(told, Run):
        return [told.application, told.problem_size, told.execution_time]
    if isinstance(told, Load):
        return [told.time, told.node, told.available_cpu, told.available_bandwidth]
    if isinstance(told, JobLog | Loads):
        return {each.name: of(getattr(told, each.name)) for each in fields(told)}
    if isinstance(told, np.ndarray):
        return told.tolist()
    if isinstance(told, set | frozenset):
        return sorted(map(str, told))
    if isinstance(told, Mapping):
        return {str(key): of(value) for key, value in told.items()}
    if isinstance(told, list | tuple):
        return [of(each) for each in told]
    return asdict(told) if hasattr(told, "__dataclass_fields__") else told


def refused(made: Any, *arguments: Any, **named: Any) -> str:
    """The line that refuses something."""
    try:
        return str(of(made(*arguments, **named)))
    except (InputError, ValueError) as error:
        return re.sub(r"^.*?: ", "", str(error))


def record(source: random.Random, number: int, at: float) -> RecordedRun:
    extra = {"user": USERS[number % 3]} | ({"energy": f"{100 + number}"} if number % 4 == 0 else {})
    cpu, bandwidth = (math.nan if number % each == 3 else 0.5 + 0.01 * (number % 9) for each in (5, 7))
    run = Run(
        APPLICATIONS[number % 2], PLATFORMS[number // 2 % 2], 100 + number, 1 + number % 3, cpu, bandwidth,
        10.0 + source.randrange(100), at + 60.0 * number, ("n1", f"n{number}"), "train", extra,
    )  # fmt: skip
    return RecordedRun(run, number % 6 // 5, number % 6 != 5, f"{number:032x}")


def runs(store: Store, source: random.Random, now: list[float]) -> Iterator[Any]:
    records = [record(source, number, START) for number in range(24)]
    yield store.runs.add_all(records[:20])
    yield store.runs.add_all(records[16:])
    for application in (None, "cg"):
        for platform in (None, "c9"):
            yield store.runs.learnable(application=application, platform=platform, last=None if platform else 4)
            for users in (None, ["ada"], ["ada", "cy"], []):
                yield store.runs.count(application=application, platform=platform, users=users)
    for since, until in ((None, START + 300.0), (START + 300.0, None), (START + 120.0, START + 300.0)):
        yield [each.uid[-2:] for each in store.runs.all(since=since, until=until, learnable=since is None)]
    yield store.runs.all(users=["bob"], last=2)
    yield store.runs.all(application="fft", users=["cy"], last=3)
    yield len(store.runs.to_learn())
    yield store.models.save("cg", "c8", {"fit": 1}, learned=[each.uid for each in records if each.learnable][:9])
    yield store.runs.learned(), [each.uid[-2:] for each in store.runs.to_learn()]
    for which in (
        {"user": "bob", "until": START + 600.0}, {"uids": (records[0].uid, records[1].uid)},
        {"since": START + 900.0, "until": START + 960.0}, {"application": "cg", "user": "ada", "platform": "c8"},
        {"user": "bob", "until": START + 600.0},
    ):  # fmt: skip
        yield forgotten_document(store.runs.forget(Selection(**which)))
    yield store.runs.learned(), [each.uid[-2:] for each in store.runs.to_learn()], store.models.all()
    for named in ({}, {"application": "cg"}, {"since": 2.0, "until": 2.0}, {"since": math.nan}, {"until": math.nan}):
        yield refused(Selection, **named)
    yield RecordedRun.of_dict(records[8].as_dict())


def models(store: Store, source: random.Random, now: list[float]) -> Iterator[Any]:
    for turn in range(14):
        now[0] += 10.0
        yield store.models.save(APPLICATIONS[turn % 3 % 2], PLATFORMS[turn % 2], {"turn": turn, "format": "other"})
    yield store.models.all()
    for moment in (START, START + 15.0, START + 75.0, START + 75.1, now[0]):
        yield store.models.documents_around("cg", "c8", moment)
    for version in (None, 1, 2, 99):
        yield refused(store.models.document, "cg", "c9", version)
    yield store.models.of_another_format()
    yield refused(store.models.document, "cg", "c7")
    yield refused(store.models.predictor, "cg", "c8")
    yield refused(store.models.save, "cg", "c8", {"at": math.inf})


def placements(store: Store, source: random.Random, now: list[float]) -> Iterator[Any]:
    made = []
    for number in range(9):
        ask = Ask(application=APPLICATIONS[number % 2], problem_size=900 + number, user=USERS[number % 3])
        answer = Answer(id=f"{number:032x}", mode="shadow", steer="nodes", placed=number % 4 > 0, message=f"m{number}")
        outcome = Outcome("c8", "p", ("n1",), 2, 5.0 + number, 0) if number == 3 else None
        made.append(AdvisedPlacement(START + 10.0 * number, ask, answer, outcome))
    store.placements.add(made[:6])
    store.placements.add(made[4:])
    outcome = Outcome("c9", "q", ("n2", "n3"), 4, 12.0, 1, None, "77", "s", START + 1.0)
    yield [store.placements.settle(f"{number:032x}", outcome) for number in (0, 0, 3, 99)]
    runs = {at: record(source, 30 + at, START) for at in range(3, 7)}
    ended = [EndedRecord(run.uid, run, f"{at:032x}", outcome, at == 4) for at, run in runs.items()]
    yield store.ended.add(ended), store.ended.add(ended)
    again = record(source, 35, START)
    yield store.ended.add([EndedRecord(again.uid, again, None, outcome, True)])
    for settled in (None, True, False):
        for users in (None, ["ada"], ["bob", "cy"]):
            found = store.placements.recent(4, settled=settled, users=users)
            yield [(each.uid[-2:], each.outcome is not None) for each in found]
    yield store.placements.find(made[3].uid), store.placements.find("none")
    yield [each.uid[-2:] for each in store.placements.made_between(START + 10.0, START + 40.0)]


def loads(store: Store, source: random.Random, now: list[float]) -> Iterator[Any]:
    now[0] = START + LATER
    samples = [
        Load(START + 7.0 * at + shift, node, source.randrange(1, 100) / 100.0, float(source.randrange(10, 95)))
        for at in range(0, 1200, 3)
        for shift, node in enumerate(("n1", "n2", "far"))
        if at % 50 != 6 or node != "n2"
    ]
    late, early = samples[-60:] + samples[100:130], samples[:100] + samples[130:-60]
    yield store.loads.add(early), store.loads.add(early[:9])
    yield load_means.update_means(store, START + 3000.0)
    yield store.loads.add(late), load_means.update_means(store), load_means.update_means(store)
    for step in (FIVE_MINUTES, HOUR):
        yield load_means.mean_loads(store, step, since=START + 299.0, until=START + 7200.0)
    yield refused(load_means.mean_loads, store, 60, since=0.0, until=1.0)
    found = store.loads.all(since=START + 1000.0, until=START + 1100.0)
    yield found, len(store.loads.all(node="n2")), len(store.loads.all(node="n2", until=START + 700.0))
    yield store.loads.of(["far", "n1"], since=START + 5000.0, until=START + 5070.0)
    for most in (None, 3):
        yield len(store.loads.oldest("n1", most, since=START + 60.0)), store.loads.oldest("n1", 2, until=START + 60.0)
    yield store.loads.newest(since=START), store.loads.newest(since=START + 8395.0)


def past_jobs(store: Store, source: random.Random, now: list[float]) -> Iterator[Any]:
    rows = [
        f"{n},{START + 50.0 * n},{60 + 7 * n},{1 + n % 4},{'' if n % 5 == 1 else 3600},{USERS[n % 3]},s{n % 2},"
        f"{'' if n % 7 == 2 else 5 * n},{'FAILED' if n == 4 else 'COMPLETED'}"
        for n in range(15)
    ]
    header = "job,submit_time,run_time,processors,requested_time,user,name,wait,state"
    log = read_log([header, *rows])
    yield store.past_jobs.add(log, "c8", lambda user: user.upper()), store.past_jobs.add(log, "c9")
    surer = read_log([header, rows[4].replace("FAILED", "TIMEOUT"), rows[5].replace("COMPLETED", "TIMEOUT")])
    yield store.past_jobs.add(surer, "c8", lambda user: user.upper())
    yield store.past_jobs.log(["c8"])
    yield store.past_jobs.log(["c8", "c9"], ended_since=START + 700.0)
    yield tuple(store.past_jobs.counts()), store.past_jobs.count(), store.past_jobs.count(["c9", "c7"])
    yield store.past_jobs.ends("c8"), store.past_jobs.ends("c7"), store.past_jobs.any_user()
    yield store.past_jobs.forget(["ADA", "bob"]), store.past_jobs.count(), store.past_jobs.add(log, "c9")
    yield store.past_jobs.prune(START + 250.0), store.past_jobs.prune(-math.inf), store.past_jobs.count()
    yield refused(store.past_jobs.log, ["c7"])
    yield refused(store.past_jobs.add, log.picked(np.arange(0)), "c8")


def others(store: Store, source: random.Random, now: list[float]) -> Iterator[Any]:
    yield store.modes.newest()
    for at, mode in ((3.0, "act"), (2.0, "advise")):
        store.modes.add(ModeSet(at, mode, "shadow", "root"))
    yield store.modes.newest()
    store.tokens.add("reading", "reader", user="ada")
    store.tokens.add("agent of n1", "agent", node="n1")
    store.tokens.enrol({"n1": "one", "n2": "two"})
    store.tokens.enrol({"n2": "three"})
    yield refused(store.tokens.add, "n1", "agent", node="n1")
    store.tokens.revoke("reading")
    yield refused(store.tokens.revoke, "reading")
    yield [(each.name, each.role, each.node, each.user, each.made_at) for each in store.tokens.all()]
    for at, uid in ((5.0, "b"), (4.0, "a"), (4.0, "c")):
        store.sent_jobs.save(uid, at, {"job": uid}, {"east": {"known": at}, uid: {}})
    store.sent_jobs.save("c", 9.0, {"job": "again"}, {}, ["b"])
    store.sent_jobs.save_sites({"west": {"known": 1}, "east": {"known": 2}})
    yield [*store.sent_jobs.jobs().items()], store.sent_jobs.sites()


def end(store: Store, source: random.Random, now: list[float]) -> Iterator[Any]:
    yield integrity.check(store), integrity.damage(store)
    before = START + 3600.0
    yield retention.prune(store, loads_before=before, placements_before=START + 35.0, past_jobs_before=START + 400.0)
    yield len(store.loads.all()), store.past_jobs.count(), [each.uid[-2:] for each in store.placements.recent()]
    for step in (FIVE_MINUTES, HOUR):
        yield load_means.mean_loads(store, step, since=START, until=START + 7200.0)
    yield [each.uid[-2:] for each in store.runs.all()]
    with tempfile.TemporaryDirectory() as folder:
        for version in SCHEMAS:
            yield downgrade(store, f"{folder}/{version}.db", version)
        yield backup(store, f"{folder}/copy")
        with Store.open(f"{folder}/again.db") as again:
            yield restore(again, f"{folder}/copy"), len(again.loads.all()), again.models.all()
            yield refused(restore, again, f"{folder}/copy"), restore(again, f"{folder}/copy", replace=True)


#: In the order in which they are used.
KINDS = {
    "runs": runs, "models": models, "placements": placements, "loads": loads, "past jobs": past_jobs,
    "others": others, "the end": end,
}  # fmt: skip

if __name__ == "__main__":
    print(written_down(answers(), 15))
