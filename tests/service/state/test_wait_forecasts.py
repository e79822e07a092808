"""What forecasts of waits missed is learned once of each job, however short, and of no job that waited otherwise."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasched.history.job_log import JobLog, job_key
from metasched.history.log_formats import read_log
from metasched.history.queue import Line, PrecedingJob, QueuedJob
from metasched.history.waits import Wait, WaitErrors
from metasched.service.state import wait_forecasts
from metasched.service.state.wait_forecasts import WaitForecasts

#: Eight processors, of which a job has four for 100 s more; when the queue is looked at (s), and a job that waits then.
LINES = {"p": Line(4, [PrecedingJob(4, 600.0, (100.0,))])}
LOOK = 1000.0
JOB = QueuedJob("7", frozenset("p"), 4, 60.0, submitted=LOOK - 5.0)


class Errors(WaitErrors):
    """Errors that remember what they learned: simulated and actual waits."""

    def __init__(self) -> None:
        super().__init__()
        self.met: list[tuple[float, float]] = []

    def learn(self, forecast: Wait, waited: float) -> None:
        self.met.append((forecast.simulated, waited))
        super().learn(forecast, waited)


def looked(*jobs: QueuedJob, start: float = 50.0) -> tuple[WaitForecasts, Errors]:
    """Forecasts after one look at a queue whose waiting jobs start in so many seconds."""
    errors = Errors()
    made = WaitForecasts(errors)
    look(made, LOOK, *jobs, start=start)
    return made, errors


def look(forecasts: WaitForecasts, now: float, *jobs: QueuedJob, start: float = 50.0) -> bool:
    waiting = {job.number: ("p", start) for job in jobs if job.ran is None and job.ready}
    return forecasts.look({job.number: job for job in jobs}, waiting, LINES, now)


def log(number: str, submitted: float, started: float, processors: int = 4, partition: str = "p") -> JobLog:
    row = f"{number},{submitted},1,{processors},60,{partition},{started - submitted}"
    return read_log(["job,submit_time,run_time,processors,requested_time,partition,wait", row])


def test_a_job_that_was_seen_waiting_and_ended_between_two_looks_is_learned_by_its_epilog() -> None:
    forecasts, errors = looked(JOB)
    assert not look(forecasts, LOOK + 15.0)
    assert forecasts.started("7", LOOK + 3.4)
    assert errors.met == [(50.0, pytest.approx(3.4))]
    assert not forecasts.started("7", LOOK + 3.4)
    for second in (2.0, 3.0, 4.0):  # the scheduler's second
        assert not forecasts.accounted(log("7", LOOK - 5.0, LOOK + second))
    assert len(errors.met) == 1


def test_an_epilog_may_tell_before_the_next_look() -> None:
    forecasts, errors = looked(JOB)
    assert forecasts.started("7", LOOK + 3.4)
    assert not look(forecasts, LOOK + 15.0)
    assert not look(forecasts, LOOK + 30.0, replace(JOB, ran=20.0, started=LOOK + 3.0))
    assert len(errors.met) == 1


def test_where_no_epilog_tells_accounting_does() -> None:
    forecasts, errors = looked(JOB)
    look(forecasts, LOOK + 15.0)
    assert not forecasts.accounted(log("8", LOOK - 5.0, LOOK + 3.0))
    assert forecasts.accounted(log("7", LOOK - 5.0, LOOK + 3.0))
    assert not forecasts.accounted(log("7", LOOK - 5.0, LOOK + 3.0))
    assert errors.met == [(50.0, 3.0)]


@pytest.mark.parametrize(("processors", "simulated"), [(4, 0.0), (8, 100.0)])
def test_a_job_that_no_look_saw_waiting_has_the_forecast_of_one_more(processors: int, simulated: float) -> None:
    runs = replace(JOB, processors=processors, submitted=LOOK + 2.0, started=LOOK + 9.0, ran=6.0)
    forecasts, errors = looked()
    assert look(forecasts, LOOK + 15.0, runs)
    assert not look(forecasts, LOOK + 30.0, runs)
    assert not forecasts.accounted(log("7", LOOK + 2.0, LOOK + 9.0, processors))
    forecasts, others = looked()
    look(forecasts, LOOK + 15.0)
    look(forecasts, LOOK + 30.0)
    assert forecasts.accounted(log("7", LOOK + 2.0, LOOK + 9.0, processors))
    assert not forecasts.accounted(log("7", LOOK + 2.0, LOOK + 9.0, processors))
    assert errors.met == others.met == [(pytest.approx(simulated), 7.0)]


@pytest.mark.parametrize(
    ("job", "why"),
    [
        (log("7", LOOK - 1.0, LOOK + 3.0), "nobody knows the queue that it came to"),
        (log("7", LOOK + 1.0, LOOK + 16.0), "the next look did not see it wait for processors"),
        (log("7", LOOK + 1.0, LOOK + 3.0, processors=9), "it is larger than the partition was"),
        (log("7", LOOK + 1.0, LOOK + 3.0, partition="q"), "nobody knows its partition"),
        (replace(log("7", LOOK + 1.0, LOOK + 3.0), wait=float("nan") * log("7", 0.0, 0.0).wait), "nor when it started"),
    ],
)
def test_other_jobs_of_accounting_teach_no_wait(job: JobLog, why: str) -> None:
    forecasts, errors = looked()
    look(forecasts, LOOK + 15.0)
    assert not forecasts.accounted(job), why
    assert errors.met == []


def test_an_old_forecast_is_not_that_of_a_job_put_back_into_the_queue_or_held() -> None:
    forecasts, errors = looked(JOB)
    assert not forecasts.started("7", LOOK - 60.0)
    look(forecasts, LOOK + 15.0)
    look(forecasts, LOOK + 30.0, replace(JOB, submitted=LOOK + 20.0))  # another run of it waits
    assert forecasts.started("7", LOOK + 40.0)
    assert errors.met == [(50.0, 10.0)]
    forecasts, errors = looked(JOB)
    look(forecasts, LOOK + 15.0, replace(JOB, ready=False))
    assert not forecasts.started("7", LOOK + 40.0)
    assert errors.met == []


def test_looks_are_remembered_for_a_while_and_for_so_many_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    forecasts, _ = looked()
    for now in range(15, 600, 15):
        look(forecasts, LOOK + now)
    assert not forecasts.accounted(log("7", LOOK + 16.0, LOOK + 17.0))
    assert forecasts.accounted(log("8", LOOK + 585.0 - 299.0, LOOK + 585.0 - 298.0))
    monkeypatch.setattr(wait_forecasts, "MOST_KEPT", 1)
    look(forecasts, LOOK + 600.0, JOB)
    look(forecasts, LOOK + 615.0, JOB)
    assert not forecasts.accounted(log("9", LOOK + 590.0, LOOK + 591.0))
    assert forecasts.accounted(log("10", LOOK + 616.0, LOOK + 617.0))


#: Jobs of up to a minute: when they are submitted, how long they wait and run, and whether an epilog tells of them.
DAYS = st.lists(st.tuples(st.integers(1, 150), st.integers(0, 60), st.integers(1, 40), st.booleans()), max_size=12)


@given(DAYS)
def test_each_job_is_learned_once_whoever_tells_of_it_first(jobs: list[tuple[int, int, int, bool]]) -> None:
    forecasts, errors = looked()
    times = [(LOOK + at, LOOK + at + wait, LOOK + at + wait + run) for at, wait, run, _ in jobs]
    told: set[int] = set()
    for now in range(15, 286, 15):
        for number, ((_, start, end), (_, _, _, epilog)) in enumerate(zip(times, jobs, strict=True)):
            if epilog and number not in told and end <= LOOK + now:
                told.add(number)
                forecasts.started(f"{number}", start + 0.3)
        queue = [
            replace(JOB, number=f"{number}", submitted=submitted, started=start if start <= LOOK + now else None,
                    ran=LOOK + now - start if start <= LOOK + now else None)
            for number, (submitted, start, end) in enumerate(times)
            if submitted < LOOK + now < end
        ]  # fmt: skip
        look(forecasts, LOOK + now, *queue)
        if now % 120 == 0 or now == 285:
            for number, (submitted, start, end) in enumerate(times):
                if end < LOOK + now:
                    forecasts.accounted(log(f"{number}", submitted, start))
    assert len(errors.met) == len(jobs)
    keys = {job_key(f"{number}", start) for number, (_, start, _) in enumerate(times)}
    assert keys <= set(forecasts._learned)
