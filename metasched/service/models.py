"""The models of all applications on all platforms, in memory; one thread learns, whoever asks never waits for it."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from queue import Empty, SimpleQueue
from threading import Thread

from metasched.predictors import documents
from metasched.predictors.contract import Predictor
from metasched.predictors.robust import RobustPredictor
from metasched.records import InputError, Run
from metasched.store.database import Store
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
        self._queue: SimpleQueue[Run | tuple[Run, ...] | str] = SimpleQueue()
        self._thread = Thread(target=self._run, name="metasched-learner", daemon=True)
        self.failures = 0

    def start(self) -> None:
        """Read the saved models, and begin to learn the runs that were stored since they were saved."""
        for application, platform, _, _ in self._store.models():
            try:
                saved = stored_model(self._store, application, platform)
            except InputError as error:
                _log.warning("%s; it is learned again from the runs", error)
            else:
                self._predictors[application, platform] = saved
        self._queue.put(self._store.runs())
        self._thread.start()

    def stop(self) -> None:
        """Learn what is waiting, save what has changed, and end."""
        self._queue.put("stop")
        self._thread.join()

    def save(self) -> None:
        """Have the models saved that have changed since they were."""
        self._queue.put("save")

    def learn(self, run: Run) -> None:
        """Have a run learned."""
        self._queue.put(run)

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
            if isinstance(item, Run):
                self._learn(item)
            elif isinstance(item, tuple):
                self._catch_up(item)
            else:
                self._save()
                if item == "stop":
                    return

    def _learn(self, run: Run) -> None:
        key = run.application, run.cluster
        known = self._predictors.get(key)
        try:
            if known is None:
                self._predictors[key] = RobustPredictor(*key).fit([run])
            else:
                known.learn(run)
        except Exception:
            self.failures += 1
            _log.exception("a run of %s on %s could not be learned", *key)
        else:
            self._changed.add(key)
            self._unsettled.add(key)

    def _catch_up(self, stored: tuple[Run, ...]) -> None:
        of_key: dict[Key, list[Run]] = {}
        for run in stored:
            of_key.setdefault((run.application, run.cluster), []).append(run)
        for key, runs in of_key.items():
            known = self._predictors.get(key)
            try:
                if known is None:
                    self._predictors[key] = RobustPredictor(*key).fit(runs)
                    self._changed.add(key)
            except Exception:
                self.failures += 1
                _log.exception("the runs of %s on %s could not be learned", *key)
                continue
            for run in runs[known.window.seen :] if known is not None else ():
                self._learn(run)

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
                self._store.save_model(*key, json.loads(documents.dump(self._predictors[key])))
            except Exception as error:
                _log.error("the model of %s on %s was not saved: %s", *key, error)
            else:
                self._changed.discard(key)
