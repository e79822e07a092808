"""The models of all applications on all platforms, in memory; one thread learns, whoever asks never waits for it."""

from __future__ import annotations

import json
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Lock, Thread

from metasched.placement.clusters.partition import Partition
from metasched.predictors.contract import Predictor, for_user, under
from metasched.predictors.energy.predictor import MeteredPredictor, adaptive, tells_meter
from metasched.predictors.porting.platforms import ENOUGH, lent_by
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import DEFAULT_SETTINGS, InputError, Run, Settings
from metasched.service.quality.recent_predictions import RecentPredictions
from metasched.store import documents
from metasched.store.database.run_records import Forgotten, RecordedRun, Selection
from metasched.store.database.store import Store
from metasched.store.errors import StoreError

_log = logging.getLogger(__name__)

Key = tuple[str, str]

#: How long nothing must have been learned until a search that runs beside is waited for and adopted (s).
QUIET = 2.0
#: Models of platforms never used that are kept ready at most.
MOST_NEVER_USED = 64
#: Runs that are remembered as handed in: far more than come between two savings.
MOST_TAKEN = 200_000


@dataclass(frozen=True, slots=True)
class Learned:
    """How many runs a model has learned, and of how many of them the loads were not measured."""

    runs: int = 0
    unmeasured: int = 0

    def with_runs(self, runs: Iterable[Run]) -> Learned:
        """The counts with more runs learned."""
        measured = [run.measured for run in runs]
        return Learned(self.runs + len(measured), self.unmeasured + measured.count(False))


@dataclass(frozen=True, slots=True)
class Forgetting:
    """Runs to forget, and who waits for that."""

    which: Selection
    asked: Future[Forgotten]

    def done(self, forget: Callable[[Selection], Forgotten]) -> None:
        """Forget the runs, and pass the result or the error to the caller that waits."""
        try:
            self.asked.set_result(forget(self.which))
        except Exception as error:
            self.asked.set_exception(error)


class Models:
    """A predictor for each application and platform.

    Parameters
    ----------
    store : where models are saved, and runs read from when the daemon starts.

    Attributes
    ----------
    recent : what was predicted of the last runs, beside what they took.

    Notes
    -----
    Only the learning thread changes predictors. They replace what they know by one assignment, so that a prediction
    made meanwhile sees what was known before or after, never a mixture.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._predictors: dict[Key, documents.Saved] = {}
        self._changed: set[Key] = set()
        self._unsettled: set[Key] = set()
        self._learned: dict[Key, list[str]] = {}
        self._counts: dict[Key, Learned] = {}
        self._versions: dict[Key, int] = {}
        self._lost: set[Key] = set()
        # What was handed to the learning thread, so that nothing is learned twice; the oldest are forgotten.
        self._taken: OrderedDict[str, None] = OrderedDict()
        self._taking = Lock()
        #: Runs that a model was begun with: they may still wait to be learned.
        self._begun: dict[Key, frozenset[str]] = {}
        self._queue: SimpleQueue[RecordedRun | Key | Forgetting | str] = SimpleQueue()
        self._thread = Thread(target=self._run, name="metasched-learner", daemon=True)
        #: What borrows for platforms that were never used, as far as it was asked for.
        self._never_used: dict[Key, RobustPredictor] = {}
        self.failures = 0
        self.recent = RecentPredictions()

    def read(self) -> None:
        """Read the saved models that are new; for a daemon that does not learn itself, or not yet."""
        self._counts = {key: Learned(*counts) for key, counts in self._store.runs.learned().items()}
        for application, platform, version, _ in self._store.models.all():
            key = application, platform
            if self._versions.get(key) == version:
                continue
            try:
                self._predictors[key] = self._store.models.predictor(*key)
            except InputError as error:
                _log.warning("%s; it is learned again from the runs", error)
                self._lost.add(key)
            self._versions[key] = version

    def start(self) -> None:
        """Read the saved models, and begin to learn the stored runs that they do not know."""
        self.read()
        self.sweep()
        self._thread.start()

    def stop(self) -> None:
        """Learn what is waiting, save what has changed, and end."""
        if self._thread.ident is not None:
            self._queue.put("stop")
            self._thread.join()

    def sweep(self) -> None:
        """Have all stored runs learned that no saved model has learned and that nobody has handed in.

        Such are those from before the start, those that another process has stored, and those of a request that failed
        when its run was stored already.
        """
        lost, self._lost = self._lost, set()
        for record in self._store.runs.to_learn():
            key = record.run.application, record.run.cluster
            if key in self._predictors:
                self.learn(record)
            elif record.uid not in self._taken:
                lost.add(key)
        for key in sorted(lost):
            self._queue.put(key)

    def save(self) -> None:
        """Have the models saved that have changed since they were."""
        self._queue.put("save")

    def learn(self, record: RecordedRun) -> None:
        """Have a stored run learned, once."""
        if self._take(record.uid):
            self._queue.put(record)

    def _take(self, uid: str) -> bool:
        with self._taking:
            if uid in self._taken:
                return False
            self._taken[uid] = None
            if len(self._taken) > MOST_TAKEN:
                self._taken.popitem(last=False)
            return True

    def forget(self, which: Selection) -> Forgotten:
        """Have stored runs teach no model any more, and learn those that knew them anew; return once that is done."""
        asked: Future[Forgotten] = Future()
        self._queue.put(Forgetting(which, asked))
        return asked.result()

    @property
    def waiting(self) -> int:
        """Runs that wait to be learned."""
        return self._queue.qsize()

    def predictor(self, application: str, platform: str, user: str = "") -> Predictor | None:
        """The predictor of an application on a platform, for a user; None while nothing has been learned of it.

        Where the application never ran there, it is one that borrows from the other platforms, if these know enough.
        """
        key = application, platform
        known = self._predictors.get(key) or self._never_used.get(key)
        if known is None:
            known = self._borrowing(key)
        return None if known is None else for_user(known, user)

    def _borrowing(self, key: Key) -> RobustPredictor | None:
        """What predicts on a platform that was never used, from the others; None where these know too little."""
        lent = self._lent(key)
        if not lent:
            return None
        if len(self._never_used) >= MOST_NEVER_USED:
            self._never_used.clear()
        found = RobustPredictor(*key).borrowing(lent).fit(())
        self._never_used[key] = found
        return found

    def _lent(self, key: Key) -> tuple[Run, ...]:
        """The runs that an application can borrow for a platform."""
        application, platform = key
        times = {
            other: known.times if isinstance(known, MeteredPredictor) else known
            for (name, other), known in dict(self._predictors).items()
            if name == application
        }
        return lent_by(times, platform)

    def _borrow_again(self, application: str) -> None:
        """Have what borrows for platforms never used know what was learned on the others."""
        for key in [key for key in dict(self._never_used) if key[0] == application]:
            if key in self._predictors or self._borrowing(key) is None:
                self._never_used.pop(key, None)

    def on(
        self,
        application: str,
        partitions: Iterable[Partition],
        settings: Settings = DEFAULT_SETTINGS,
        *,
        user: str = "",
    ) -> dict[str, Predictor]:
        """The predictors of an application by the clusters of some partitions, for a user and some settings.

        Raises
        ------
        InputError
            One of them knows no such settings.
        """
        found = {each.state.name: self.predictor(application, each.platform, user) for each in partitions}
        return {name: under(predictor, settings) for name, predictor in found.items() if predictor is not None}

    def notices(self, application: str, platform: str) -> list[str]:
        """Whom the model of an application does not believe, and what has changed for all."""
        return list(getattr(self._predictors.get((application, platform)), "notices", ()))

    def all(self) -> Mapping[Key, documents.Saved]:
        """All predictors by application and platform."""
        return dict(self._predictors)

    def learned(self) -> Mapping[Key, Learned]:
        """How many stored runs each model has learned, by application and platform."""
        counts = dict(self._counts)
        return {key: counts.get(key, Learned()) for key in sorted(self._predictors)}

    def _run(self) -> None:
        while True:
            try:
                item = self._queue.get(timeout=QUIET)
            except Empty:
                self._settle()
                continue
            if isinstance(item, RecordedRun):
                self._learn(item)
            elif isinstance(item, Forgetting):
                item.done(self._forget)
            elif isinstance(item, tuple):
                self._begin_safely(item)
            else:
                self._save()
                if item == "stop":
                    return

    def _learn(self, record: RecordedRun) -> None:
        run = record.run
        key = run.application, run.cluster
        if record.uid in self._begun.get(key, ()):
            return
        self._learned.setdefault(key, []).append(record.uid)
        known = self._predictors.get(key)
        try:
            if known is None:
                self._predictors[key] = self._unfitted(key, [run]).fit([run])
            elif isinstance(known, RobustPredictor) and tells_meter(run):
                self._judge(known, run)
                self._predictors[key] = adaptive(*key, [run]).fit([*known.window, run])
            else:
                self._judge(known, run)
                if isinstance(known, RobustPredictor):
                    known.borrowing(self._lent(key) if len(known.window) < ENOUGH else ())
                known.learn(run)
            self._borrow_again(run.application)
            self._counts[key] = self._counts.get(key, Learned()).with_runs([run])
        except Exception:
            self.failures += 1
            _log.exception("a run of %s on %s could not be learned", *key)
        else:
            self._changed.add(key)
            self._unsettled.add(key)

    def _unfitted(self, key: Key, runs: Sequence[Run]) -> RobustPredictor | MeteredPredictor:
        """What can learn such runs, which are all; where they are few and tell no energy it borrows."""
        found = adaptive(*key, runs)
        if isinstance(found, RobustPredictor):
            found.borrowing(self._lent(key) if len(runs) < ENOUGH else ())
        return found

    def _judge(self, known: Predictor, run: Run) -> None:
        if not run.measured:
            return  # Its error would be that of the loads assumed.
        with suppress(InputError):  # no model is defined there: nothing was predicted
            self.recent.note(run, for_user(known, run.user).predict(run.request))

    def _begin(self, key: Key) -> None:
        """Make a model that there is none of, of all runs that are stored by now."""
        records = self._store.runs.all(application=key[0], platform=key[1], learnable=True)
        self._begun[key] = frozenset(record.uid for record in records)
        for record in records:
            self._take(record.uid)
        if not records:
            return
        try:
            runs = [record.run for record in records]
            self._predictors[key] = self._unfitted(key, runs).fit(runs)
        except Exception:
            self.failures += 1
            _log.exception("the runs of %s on %s could not be learned", *key)
        else:
            self._learned[key] = [record.uid for record in records]
            self._counts[key] = Learned().with_runs(record.run for record in records)
            self._changed.add(key)

    def _begin_safely(self, key: Key) -> None:
        """The same, once: where the database fails, the next sweep asks for it again."""
        try:
            if key not in self._begun or key not in self._predictors:
                self._begin(key)
        except StoreError as error:
            self._lost.add(key)
            _log.warning("%s on %s is learned later: %s", *key, error)

    def _forget(self, which: Selection) -> Forgotten:
        found = self._store.runs.forget(which)
        for key in found.models:
            for kept in (self._predictors, self._counts, self._learned):
                kept.pop(key, None)
            self._changed.discard(key)
            self._unsettled.discard(key)
            self._begin(key)
        for application in {application for application, _ in found.models}:
            self._return_lent(application)
            self._borrow_again(application)
        self._save()
        return found

    def _return_lent(self, application: str) -> None:
        """Have models that borrowed learn again from what the others still have to lend."""
        for key, known in self._predictors.items():
            if key[0] == application and isinstance(known, RobustPredictor) and known.lent:
                known.borrowing(self._lent(key)).fit(known.window)
                self._changed.add(key)

    def _settle(self) -> None:
        for key in self._unsettled:
            try:
                self._predictors[key].settle()
            except Exception:
                self.failures += 1
                _log.exception("a search for %s on %s failed", *key)
        self._unsettled.clear()

    def _save(self) -> None:
        for key in sorted(self._changed):
            try:
                document = json.loads(documents.dump(self._predictors[key]))
                self._store.models.save(*key, document, learned=self._learned.get(key, ()))
            except Exception as error:
                _log.error("the model of %s on %s was not saved: %s", *key, error)
            else:
                self._changed.discard(key)
                self._learned.pop(key, None)
