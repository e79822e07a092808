"""The models of all applications on all platforms, in memory; one thread learns, whoever asks never waits for it."""

from __future__ import annotations

import json
import logging
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Lock, Thread

from metasched.placement.clusters.partition import Partition
from metasched.predictors.abilities import borrow, borrowed_by, for_user, prepare
from metasched.predictors.adaptive import learned
from metasched.predictors.contract import Assumed, Predictor, Saved
from metasched.predictors.memory.representable import representable
from metasched.predictors.porting.platforms import ENOUGH
from metasched.records import InputError, Run
from metasched.service.quality.recent_predictions import RecentPredictions
from metasched.service.state.borrowing_models import BorrowingModels
from metasched.service.state.contests import Contests
from metasched.service.state.fit_workers import Fit, FitWorkers
from metasched.service.state.model_cache import Key, ModelCache
from metasched.store import documents
from metasched.store.database.run_records import Forgotten, RecordedRun, Selection
from metasched.store.database.store import Store
from metasched.store.errors import StoreError

_log = logging.getLogger(__name__)

#: How long nothing must have been learned until a search that runs beside is waited for and adopted (s).
QUIET = 2.0
#: From so many models on that there are none of, they are fitted by other processes where there are any.
MANY = 8
#: How long a start reads models before it takes questions (s).
WARM = 0.5
#: Runs that are remembered as handed in: far more than come between two savings.
MOST_TAKEN = 200_000
#: How long the end waits for runs to be learned (s); those that are left are learned after the next start.
ENDING = 20.0


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


@dataclass(frozen=True, slots=True)
class Beginning:
    """Models that there are none of, to be made of all their runs."""

    keys: tuple[Key, ...]


class Models:
    """A predictor for each application and platform.

    Parameters
    ----------
    store : where models are saved, and runs read from when the daemon starts.
    workers : processes that fit many models at once; None where the daemon fits all itself.

    Attributes
    ----------
    recent : what was predicted of the last runs, beside what they took.
    saving : whether models are saved; not where the stored ones may have become others than those that these were.

    Notes
    -----
    Only the learning thread changes predictors. They replace what they know by one assignment, so that a prediction
    made meanwhile sees what was known before or after, never a mixture.
    """

    def __init__(self, store: Store, workers: FitWorkers | None = None) -> None:
        self._store, self._workers = store, workers
        self._predictors = ModelCache(self._read_one, lambda key: key in self._changed or key in self._unsettled)
        self._changed: set[Key] = set()
        self._unsettled: set[Key] = set()
        self._learned: dict[Key, list[str]] = {}
        self._counts: dict[Key, Learned] = {}
        self._versions: dict[Key, int] = {}
        self._lost: set[Key] = set()
        # What was handed to the learning thread, so that nothing is learned twice; the oldest are forgotten.
        self._taken: OrderedDict[str, None] = OrderedDict()
        self._taken_lock = Lock()
        #: Runs that a model was begun with: they may still wait to be learned.
        self._begun: dict[Key, frozenset[str]] = {}
        self._queue: SimpleQueue[RecordedRun | Beginning | Forgetting | str] = SimpleQueue()
        self._thread = Thread(target=self._run, name="metasched-learner", daemon=True)
        self._ends = math.inf  # by the monotonic clock (s)
        self._borrowing = BorrowingModels(self._predictors)
        #: What answers for an application on a platform until enough of its runs there are learned, and then if it is
        #: better than what was learned.
        self._assumed: dict[Key, Assumed] = {}
        self._contests = Contests()
        self.failures, self.saving = 0, True
        self.recent = RecentPredictions()

    def assume(self, analytic: Iterable[Assumed]) -> None:
        """Answer with simulations and signatures where their applications have few runs on their platforms."""
        self._assumed = {(each.application, each.cluster): each for each in analytic}
        for key in [*self._assumed]:
            self._correct(key)

    def read(self) -> None:
        """Read the saved models that are new; for a daemon that does not learn itself, or not yet."""
        self._counts = {key: Learned(*counts) for key, counts in self._store.runs.learned().items()}
        new = {
            (application, platform): version
            for application, platform, version, _ in self._store.models.all()
            if self._versions.get((application, platform)) != version
        }
        unknown = self._store.models.of_another_format() & set(new) if new else frozenset()
        self._versions |= new
        for application, platform in unknown:
            _log.warning("the model of %s on %s has another format; it is learned again", application, platform)
        self._lost |= unknown
        self._predictors.know(set(new) - unknown)
        for key in self._assumed.keys() & new.keys():
            self._correct(key)

    def _read_one(self, key: Key) -> Saved | None:
        """A saved model; None where it is not sound, and will be learned again from the runs."""
        try:
            return self._store.models.predictor(*key)
        except InputError as error:
            _log.warning("%s; it is learned again from the runs", error)
            self._queue.put(Beginning((key,)))
            return None

    def start(self) -> None:
        """Read the saved models, and begin to learn the stored runs that they do not know."""
        self.read()
        self.sweep()
        self._thread.start()

    def warm(self, seconds: float = WARM) -> None:
        """Have the models saved last in memory, as many as are read in so long: the first questions need not wait."""
        end = time.monotonic() + seconds
        for application, platform, *_ in sorted(self._store.models.all(), key=lambda saved: -saved[3]):
            if time.monotonic() >= end or self._predictors.full:
                return
            if (known := self._predictors.get((application, platform))) is not None:
                prepare(known)

    def stop(self) -> None:
        """Learn what is waiting, as far as there is time, save what has changed, and end."""
        if self._thread.ident is not None:
            self._ends = time.monotonic() + ENDING
            self._queue.put("stop")
            self._thread.join()

    def sweep(self) -> None:
        """Have all stored runs learned that no saved model has learned and that nobody has handed in.

        Such are those from before the start, those that another process has stored, and those of a request that failed
        when its run was stored already.
        """
        waiting = self._store.runs.to_learn()
        lost = set(self._lost)
        self._lost -= lost  # The learning thread may have added others meanwhile.
        for record in waiting:
            key = record.run.application, record.run.cluster
            if key in self._predictors:
                self.learn(record)
            elif record.uid not in self._taken:
                lost.add(key)
        if lost:
            self._queue.put(Beginning(tuple(sorted(lost))))

    def save(self) -> None:
        """Have the models saved that have changed since they were."""
        self._queue.put("save")

    def learn(self, record: RecordedRun) -> None:
        """Have a stored run learned, once."""
        if self._take(record.uid):
            self._queue.put(record)

    def _take(self, uid: str) -> bool:
        with self._taken_lock:
            if uid in self._taken:
                return False
            self._taken[uid] = None
            if len(self._taken) > MOST_TAKEN:
                self._taken.popitem(last=False)
            return True

    def forget(self, which: Selection) -> Forgotten:
        """Have stored runs teach no model any more, and learn those that knew them again; return once that is done."""
        asked: Future[Forgotten] = Future()
        self._queue.put(Forgetting(which, asked))
        return asked.result()

    @property
    def waiting(self) -> int:
        """Runs that wait to be learned."""
        return self._queue.qsize()

    def predictor(self, application: str, platform: str, user: str = "") -> Predictor | None:
        """The predictor of an application on a platform, for a user; None while nothing has been learned of it.

        Where the configuration names a simulation or a signature, it is that one, corrected by the runs, while these
        are few or its last predictions were the better ones; where the application never ran there, one that borrows
        from the other platforms, if these know enough.
        """
        key = application, platform
        known: Predictor | None
        try:
            known = self.answering(key) or self._borrowing.predictor(key)
        except StoreError as error:
            _log.warning("the model of %s on %s cannot be read now: %s", *key, error)
            return None
        return None if known is None else for_user(known, user)

    def answering(self, key: Key) -> Saved | None:
        """What answers for an application on a platform out of its own runs, or of what is assumed.

        What is assumed answers while the runs are few, and then while its last predictions were the better ones.

        Raises
        ------
        StoreError : the saved model cannot be read.
        """
        known = self._predictors.get(key)
        few = known is None or len(known.window) < ENOUGH
        return self._assumed.get(key, known) if few or self._contests.assumed_better(key) else known

    @property
    def keys(self) -> set[Key]:
        """The applications and platforms that anything answers for without borrowing."""
        return {*self._predictors, *self._assumed}

    def _correct(self, key: Key) -> None:
        """Have a simulation or signature know the runs that the model has learned."""
        assumed = self._assumed.get(key)
        if assumed is None:
            return
        try:
            known = self._predictors.get(key)
            runs = () if known is None else tuple(known.window)
            if len(runs) >= ENOUGH:
                self._contests.rehearse(key, assumed, runs)
            self._assumed[key] = assumed.corrected(runs)
        except (InputError, StoreError) as error:
            _log.warning("the %s of %s on %s is not corrected by its runs: %s", assumed.name, *key, error)

    def on(self, application: str, partitions: Iterable[Partition], user: str = "") -> dict[str, Predictor]:
        """The predictors of an application by the clusters of some partitions, for a user."""
        found = {each.state.name: self.predictor(application, each.platform, user) for each in partitions}
        return {name: predictor for name, predictor in found.items() if predictor is not None}

    def notices(self, application: str, platform: str) -> list[str]:
        """Whom the model of an application does not believe, and what has changed for all."""
        return list(getattr(self._predictors.get((application, platform)), "notices", ()))

    def all(self) -> Mapping[Key, Saved]:
        """All predictors by application and platform; each is read when it is looked up."""
        return self._predictors

    def platforms(self, application: str) -> list[str]:
        """The platforms that there are models of an application on."""
        return self._predictors.platforms(application)

    def learned(self) -> Mapping[Key, Learned]:
        """How many stored runs each model has learned, by application and platform."""
        return {key: self.learned_by(key) for key in self._predictors}

    def learned_by(self, key: Key) -> Learned:
        """How many stored runs the model of an application on a platform has learned."""
        return self._counts.get(key, Learned())

    def _run(self) -> None:
        for each in self._assumed.values():
            each.prepare()
        while True:
            try:
                item = self._queue.get(timeout=QUIET)
            except Empty:
                self._settle()
                continue
            if time.monotonic() > self._ends and isinstance(item, RecordedRun | Beginning):
                continue
            if isinstance(item, RecordedRun):
                self._learn(item)
            elif isinstance(item, Forgetting):
                item.done(self._forget)
            elif isinstance(item, Beginning):
                self._begin_safely(item.keys)
            else:
                self._save()
                if item == "stop":
                    return

    def _learn(self, record: RecordedRun) -> None:
        run = record.run
        key = run.application, run.cluster
        if record.uid in self._begun.get(key, ()):
            return
        self._unsettled.add(key)  # from here on it stays in memory
        try:
            known = self._predictors.get(key)
            lent = self._borrowing.lent(key) if known is None or len(known.window) < ENOUGH else ()
        except StoreError as error:
            self._taken.pop(record.uid, None)  # so that the next sweep has it learned
            _log.warning("a run of %s on %s is learned later: %s", *key, error)
            return
        self._judge(key, known, run)
        try:
            self._predictors[key] = Fit(*key, [run], lent).fitted() if known is None else learned(known, run, lent)
            self._changed.add(key)
            self._learned.setdefault(key, []).append(record.uid)
            self._counts[key] = self._counts.get(key, Learned()).with_runs([run])
            self._borrowing.renew(run.application)
            self._correct(key)
        except Exception:
            self.failures += 1
            _log.exception("a run of %s on %s could not be learned", *key)

    def _to_fit(self, key: Key, runs: Sequence[Run]) -> Fit:
        """A model to be made of all its runs; where these are few it borrows."""
        return Fit(*key, runs, self._borrowing.lent(key) if len(runs) < ENOUGH else ())

    def _judge(self, key: Key, known: Saved | None, run: Run) -> None:
        """Note what was predicted of a run that is about to be learned; it is learned whatever fails here."""
        try:
            answering = self.answering(key)
            if answering is not None and run.measured:  # Else its error would be that of the loads assumed.
                with suppress(InputError):  # no model is defined there: nothing was predicted
                    self.recent.note(run, for_user(answering, run.user).predict(run.request))
            if known is not None and key in self._assumed:
                self._contests.note(key, self._assumed[key], known, run)
        except Exception:
            _log.exception("what was predicted of a run of %s on %s is not judged", *key)

    def _begin(self, keys: Iterable[Key]) -> None:
        """Make models that there are none of, each of all its runs that are stored by now."""
        for key, records in ((key, self._stored(key)) for key in keys):
            if records:
                fit = self._to_fit(key, [record.run for record in records])
                try:
                    self._begun_with(key, records, fit.fitted())
                except Exception:
                    self._failed(key)

    def _begin_elsewhere(self, keys: Sequence[Key], workers: FitWorkers) -> None:
        """The same by other processes; what they fail to fit is left."""
        read: dict[Key, Sequence[RecordedRun]] = {}

        def fits() -> Iterator[Fit]:
            for key in keys:
                if records := self._stored(key):
                    read[key] = records
                    yield self._to_fit(key, [record.run for record in records])

        for fit, found in workers.fit(fits()):
            key = fit.application, fit.platform
            records = read.pop(key)
            if isinstance(found, Exception):
                _log.warning("%s on %s is fitted by the daemon itself: %s", *key, found)
            else:
                self._begun_with(key, records, found)

    def _stored(self, key: Key) -> Sequence[RecordedRun]:
        """The runs that a model begins with."""
        records = self._store.runs.all(application=key[0], platform=key[1], learnable=True)
        self._begun[key] = frozenset(record.uid for record in records)
        for record in records:
            self._take(record.uid)
        return records

    def _begun_with(self, key: Key, records: Sequence[RecordedRun], predictor: Saved) -> None:
        """Take up a model that has learned so many runs."""
        prepare(predictor)
        self._changed.add(key)
        self._predictors[key] = predictor
        self._learned[key] = [record.uid for record in records]
        self._counts[key] = Learned().with_runs(record.run for record in records)
        self._correct(key)

    def _failed(self, key: Key) -> None:
        self.failures += 1
        _log.exception("the runs of %s on %s could not be learned", *key)

    def _begin_safely(self, keys: Iterable[Key]) -> None:
        """Make models, each once: where the database fails, the next sweep asks for them again."""
        left = [key for key in keys if key not in self._begun or key not in self._predictors]
        try:
            if self._workers is not None and len(left) >= MANY:
                try:
                    self._begin_elsewhere(left, self._workers)
                except StoreError:
                    raise
                except Exception as error:  # whatever Dask raises
                    _log.warning("models are fitted by the daemon itself: %s", error)
                left = [key for key in left if key not in self._predictors]
            self._begin(left)
        except StoreError as error:
            self._lost.update(key for key in left if key not in self._predictors)
            _log.warning("%d models are learned later: %s", len(left), error)

    def _forget(self, which: Selection) -> Forgotten:
        found = self._store.runs.forget(which)
        for key in found.models:
            self._predictors.pop(key)
            for kept in (self._counts, self._learned):
                kept.pop(key, None)
            self._changed.discard(key)
            self._unsettled.discard(key)
            self._contests.forget(key)
            self._correct(key)
        self._begin_safely(found.models)
        for application in {application for application, _ in found.models}:
            self._return_lent(application)
            self._borrowing.renew(application)
        self._save()
        return found

    def _return_lent(self, application: str) -> None:
        """Have models that borrowed learn again from what the others still have to lend."""
        for platform in self._predictors.platforms(application):
            key = application, platform
            try:
                known = self._predictors.get(key)
                if known is not None and borrowed_by(known):
                    self._changed.add(key)
                    borrow(known, self._borrowing.lent(key))
                    known.fit(run for run in known.window if representable(run))
            except StoreError as error:  # the next sweep has it made again: it must not keep what is forgotten
                _log.warning("the model of %s on %s is learned again later: %s", *key, error)
                self._predictors.pop(key)
                self._changed.discard(key)
                self._lost.add(key)

    def _settle(self) -> None:
        for key in self._unsettled:
            try:
                if key in self._predictors:
                    self._predictors[key].settle()
            except Exception:
                self.failures += 1
                _log.exception("a search for %s on %s failed", *key)
        self._unsettled.clear()

    def _save(self) -> None:
        for key in sorted(self._changed):
            if not self.saving:
                return
            try:
                document = json.loads(documents.dump(self._predictors[key]))
                self._store.models.save(*key, document, learned=self._learned.get(key, ()))
            except Exception as error:
                _log.error("the model of %s on %s was not saved: %s", *key, error)
            else:
                self._changed.discard(key)
                self._learned.pop(key, None)
