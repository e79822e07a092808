"""The models of all applications on all platforms, in memory; one thread learns, whoever asks never waits for it."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread

from metasched.predictors import documents
from metasched.predictors.contract import Predictor
from metasched.predictors.robust import RobustPredictor
from metasched.records import InputError, Request, Run
from metasched.service.track import Track
from metasched.store.database import RecordedRun, Store
from metasched.store.models import stored_model

_log = logging.getLogger(__name__)

Key = tuple[str, str]

#: How long nothing must have been learned until a search that runs beside is waited for and adopted (s).
QUIET = 2.0


class Models:
    """A predictor for each application and platform.

    Parameters
    ----------
    store : where models are saved, and runs read from when the daemon starts.

    Attributes
    ----------
    track : what was predicted of the last runs, beside what they took.

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
        self._queue: SimpleQueue[RecordedRun | tuple[RecordedRun, ...] | str] = SimpleQueue()
        self._thread = Thread(target=self._run, name="metasched-learner", daemon=True)
        self.failures = 0
        self.track = Track()

    def start(self) -> None:
        """Read the saved models, and begin to learn the stored runs that they do not know."""
        lost: set[Key] = set()
        for application, platform, _, _ in self._store.models():
            try:
                saved = stored_model(self._store, application, platform)
            except InputError as error:
                _log.warning("%s; it is learned again from the runs", error)
                lost.add((application, platform))
            else:
                self._predictors[application, platform] = saved
        for record in self._store.runs_to_learn():
            key = record.run.application, record.run.cluster
            if key in self._predictors:
                self._queue.put(record)
            else:
                lost.add(key)
        for application, platform in sorted(lost):
            records = self._store.recorded_runs(application=application, cluster=platform, learnable=True)
            if records:
                self._queue.put(records)
        self._thread.start()

    def stop(self) -> None:
        """Learn what is waiting, save what has changed, and end."""
        self._queue.put("stop")
        self._thread.join()

    def save(self) -> None:
        """Have the models saved that have changed since they were."""
        self._queue.put("save")

    def learn(self, record: RecordedRun) -> None:
        """Have a stored run learned."""
        self._queue.put(record)

    @property
    def waiting(self) -> int:
        """Runs that wait to be learned."""
        return self._queue.qsize()

    def predictor(self, application: str, platform: str) -> Predictor | None:
        """The predictor of an application on a platform; None while nothing has been learned of it."""
        return self._predictors.get((application, platform))

    def all(self) -> Mapping[Key, documents.Saved]:
        """All predictors by application and platform."""
        return dict(self._predictors)

    def _run(self) -> None:
        while True:
            try:
                item = self._queue.get(timeout=QUIET)
            except Empty:
                self._settle()
                continue
            if isinstance(item, RecordedRun):
                self._learn(item)
            elif isinstance(item, tuple):
                self._begin(item)
            else:
                self._save()
                if item == "stop":
                    return

    def _learn(self, record: RecordedRun) -> None:
        run = record.run
        key = run.application, run.cluster
        self._learned.setdefault(key, []).append(record.uid)
        known = self._predictors.get(key)
        try:
            if known is None:
                self._predictors[key] = RobustPredictor(*key).fit([run])
            else:
                self._judge(known, run)
                known.learn(run)
        except Exception:
            self.failures += 1
            _log.exception("a run of %s on %s could not be learned", *key)
        else:
            self._changed.add(key)
            self._unsettled.add(key)

    def _judge(self, known: Predictor, run: Run) -> None:
        request = Request(run.problem_size, run.processors, run.min_avg_avail_cpu, run.min_avg_avail_bw)
        with suppress(InputError):  # no model is defined there: nothing was predicted
            self.track.note(run, known.predict(request))

    def _begin(self, records: tuple[RecordedRun, ...]) -> None:
        """Make the model of runs that there is none of."""
        key = records[0].run.application, records[0].run.cluster
        try:
            self._predictors[key] = RobustPredictor(*key).fit([record.run for record in records])
        except Exception:
            self.failures += 1
            _log.exception("the runs of %s on %s could not be learned", *key)
        else:
            self._learned[key] = [record.uid for record in records]
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
                self._store.save_model(*key, document, learned=self._learned.get(key, ()))
            except Exception as error:
                _log.error("the model of %s on %s was not saved: %s", *key, error)
            else:
                self._changed.discard(key)
                self._learned.pop(key, None)
