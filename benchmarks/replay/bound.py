"""How far run times could be predicted from accounting: ``python -m benchmarks.replay.bound LOG[:PROCESSORS]...``.

Gradient-boosted trees learn from everything that the predictor of :mod:`metasched.history` knows at a job's
submission, and from its own distribution. They are trained on the jobs that ended before, again every few weeks; and on
all other weeks of the log, later ones included, which no predictor in use can know. Two tables: errors of run times;
and orders of jobs that wait at the same time, by the slowdown of the one that comes second.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from typing import Annotated

import numpy as np
import typer
from sklearn.ensemble import HistGradientBoostingRegressor

from benchmarks.replay.__main__ import WEEK, read_logs, tabulate
from metasched.arrays import Floats, Ints
from metasched.history.job_log import JobLog
from metasched.history.replay import SLOWDOWN_BOUND, Expected, Policy, replay
from metasched.history.run_times.learned import Learned
from metasched.history.run_times.simple import Keyed
from metasched.history.submission import submissions

#: Weeks before the first training, and between two.
BEFORE, BETWEEN = 4, 6
FOLDS = 5
#: Finished jobs by key that a job is described with.
LAST = 9
#: Most waiting jobs that each submitted one is compared with.
COMPARED = 6
#: What the trees are trained on.
EARLIER, OTHERS = "trees trained on earlier jobs", "trees trained on all other weeks"
NOTHING = (math.nan,) * 5


class Described(Learned):
    """Describes each submitted job by what is known then: run times as shares of its limit.

    Attributes
    ----------
    described : one row a job, shape (jobs, features).
    expected, order, keyed : what ``metasched`` predicts and orders by, and what ``keyed`` predicts (s); shape (jobs,).
    end : when each ended (s), shape (jobs,).
    """

    def __init__(self, log: JobLog) -> None:
        super().__init__(log)
        self._baseline, self._log, self._submissions = Keyed(log), log, submissions(log)
        self._limits = log.limits().tolist()
        self._last: dict[tuple[object, ...], deque[float]] = defaultdict(lambda: deque(maxlen=LAST))
        self._began: dict[object, dict[int, float]] = defaultdict(dict)
        self._pending: dict[object, int] = defaultdict(int)
        self._submitted_at: dict[object, float] = {}
        self._ended_at: dict[object, float] = {}
        self.described: list[list[float]] = []
        self.expected, self.order, self.keyed, self.end = (np.zeros(len(log)) for _ in range(4))

    def submitted(self, job: int, now: float) -> Expected:
        """See :class:`~metasched.history.replay.RunTimes`."""
        this, limit = self._submissions[job], self._limits[job]
        found = self.past.expect(this, now)
        row = [*found.quantiles, *found.answers]
        for key in self._keys(job):
            last = self._last[key]
            row += (last[-1], float(np.median(last)), sum(last) / len(last), min(last), max(last)) if last else NOTHING
        began = self._began[this.user]
        for others in (began, [other for other in began if self._limits[other] == limit]):
            ages = [now - began[other] for other in others]
            row += (max(ages), min(ages)) if ages else NOTHING[:2]
        row = [value / limit for value in row]
        row += (len(began), self._pending[this.user], *(len(self._last[key]) for key in self._keys(job)))
        row += (now - times.get(this.user, -math.inf) for times in (self._submitted_at, self._ended_at))
        row += (limit, this.processors, now % 86_400.0)
        self.described.append(row)
        self._submitted_at[this.user] = now
        self._pending[this.user] += 1
        self.keyed[job] = self._baseline.submitted(job, now).run_time
        known = super().submitted(job, now)
        self.expected[job], self.order[job] = known.run_time, known.order
        return known

    def started(self, job: int, now: float) -> None:
        """See :class:`~metasched.history.replay.RunTimes`."""
        super().started(job, now)
        user = self._submissions[job].user
        self._pending[user] -= 1
        self._began[user][job] = now

    def ended(self, job: int, now: float) -> None:
        """See :class:`~metasched.history.replay.RunTimes`."""
        super().ended(job, now)
        self._baseline.ended(job, now)
        user = self._submissions[job].user
        del self._began[user][job]
        self._ended_at[user] = self.end[job] = now
        for key in self._keys(job):
            self._last[key].append(float(self._log.run_time[job]))

    def _keys(self, job: int) -> list[tuple[object, ...]]:
        this = self._submissions[job]
        return [(this.user, this.limit, this.processors), (this.user, this.limit), (this.user,), ("limit", this.limit)]


class Trees:
    """Predicts every week of a replay by trees that are trained on others.

    Parameters
    ----------
    log, seen : the replay's jobs, and what was known of them.
    later : whether later weeks count too, or only jobs that ended before.
    """

    def __init__(self, log: JobLog, seen: Described, *, later: bool) -> None:
        self._described = np.array(seen.described)
        self._described[~np.isfinite(self._described)] = np.nan
        week = ((log.submit_time - log.submit_time[0]) // WEEK).astype(np.int64)
        weeks = int(week[-1]) + 1
        if later:
            fold = np.random.default_rng(0).integers(0, FOLDS, weeks)[week]
            parts = [(fold != each, fold == each) for each in range(FOLDS)]
        else:
            parts = [
                (seen.end < log.submit_time[0] + first * WEEK, (week >= first) & (week < first + BETWEEN))
                for first in range(BEFORE, weeks, BETWEEN)
            ]
        self._parts = [(train, judged) for train, judged in parts if train.any() and judged.any()]

    def predict(self, target: Floats, weight: Floats, loss: str, otherwise: Floats) -> Floats:
        """What is predicted of each job, shape (jobs,); ``otherwise`` where no other job was there to train on."""
        found = otherwise.copy()
        for train, judged in self._parts:
            model = HistGradientBoostingRegressor(
                loss=loss, learning_rate=0.09, max_iter=100, max_leaf_nodes=15, min_samples_leaf=200,
                l2_regularization=5.0, max_features=0.4, max_bins=63, early_stopping=False, random_state=0,
            )  # fmt: skip
            model.fit(self._described[train], target[train], sample_weight=weight[train])
            found[judged] = model.predict(self._described[judged])
        return found


def waiting_together(log: JobLog, start: Floats) -> tuple[Ints, Ints]:
    """Pairs of jobs of different users that wait at the same time, two arrays of shape (pairs,)."""
    generator, user, waiting = np.random.default_rng(0), log.labelled("user"), np.empty(0, dtype=np.int64)
    earlier, later = list[int](), list[int]()
    for job, now in enumerate(log.submit_time):
        waiting = waiting[start[waiting] > now]
        others = waiting[user[waiting] != user[job]]
        chosen = generator.choice(others, min(COMPARED, others.size), replace=False) if others.size else others
        earlier += chosen.tolist()
        later += [job] * chosen.size
        waiting = np.append(waiting, job)
    return np.array(earlier, dtype=np.int64), np.array(later, dtype=np.int64)


def delayed(order: Floats, run_time: Floats, pairs: tuple[Ints, Ints]) -> float:
    """By how much the job of each pair that comes second is slowed down by the run time of the other, on average."""
    one, other = pairs
    bounded = np.maximum(run_time, SLOWDOWN_BOUND)
    if_one, if_other = run_time[one] / bounded[other], run_time[other] / bounded[one]
    tied = np.where(order[one] == order[other], (if_one + if_other) / 2.0, if_other)
    return float(np.where(order[one] < order[other], if_one, tied).mean())


def bounds(log: JobLog, processors: int) -> tuple[dict[str, float], dict[str, float]]:
    """By predictor: mean absolute errors (s) of run times under EASY, and mean slowdowns of the second of each pair."""
    seen = Described(log)
    start = replay(log, processors, Policy.easy, seen).start
    run, limit = log.run_time, log.limits()
    expected = {"keyed": seen.keyed, "metasched": seen.expected}
    order = {"requests": limit, "metasched": seen.order}
    for what, later in ((EARLIER, False), (OTHERS, True)):
        trees = Trees(log, seen, later=later)
        # shares of the limit, weighted by it, have the same absolute errors as seconds
        share = trees.predict(run / limit, limit, "absolute_error", seen.expected / limit)
        logarithm = trees.predict(np.log(np.maximum(run, 1.0) / limit), np.ones(run.size), "squared_error",
                                  np.log(seen.order / limit))  # fmt: skip
        expected[what] = np.clip(share, 0.0, 1.0) * limit
        expected[f"mean of metasched and {what}"] = (seen.expected + expected[what]) / 2.0
        order[what] = np.exp(logarithm) * limit
        order[f"mean of metasched and {what}"] = np.sqrt(seen.order * order[what])
    order["known run times"] = run
    pairs = waiting_together(log, start)
    return (
        {what: float(np.abs(each - run).mean()) for what, each in expected.items()},
        {what: delayed(each, run, pairs) for what, each in order.items()},
    )


def main(
    logs: Annotated[list[str], typer.Argument(help="Log, and after a colon the processors of its cluster.")],
) -> None:
    found = {name: bounds(log, processors) for name, (log, processors) in read_logs(logs).items()}

    def error(name: str, what: str) -> str:
        errors, _ = found[name]
        return f"{errors[what]:,.0f} s, {errors[what] / errors['keyed'] - 1.0:+.1%}"

    def closed(name: str, what: str) -> str:
        _, slowdowns = found[name]
        worst, best = slowdowns["requests"], slowdowns["known run times"]
        return f"{slowdowns[what]:.2f}, {(worst - slowdowns[what]) / (worst - best):.0%}" if worst > best else "-"

    errors, slowdowns = next(iter(found.values()))
    tabulate("Mean absolute error of run times, and against keyed", found, [
        (what, lambda name, what=what: error(name, what)) for what in errors
    ])  # fmt: skip
    tabulate("Slowdown of the second of two waiting jobs, and share of the gap closed", found, [
        (what, lambda name, what=what: closed(name, what)) for what in slowdowns
    ])  # fmt: skip


if __name__ == "__main__":
    typer.run(main)
