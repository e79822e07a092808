"""Many models fitted at once on other processes: the workers of a Dask scheduler, or some on this host."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from metasched.predictors.adaptive import adaptive
from metasched.predictors.contract import Saved
from metasched.predictors.memory.representable import representable
from metasched.records import Run
from metasched.store import documents
from metasched.store.database.run_records import RecordedRun

if TYPE_CHECKING:
    from distributed import Client

    from metasched.service.configuration import Fitting


#: Seconds that a scheduler may take to answer, and one of its workers for a fit.
CONNECTING, FITTING = 10.0, 600.0
#: Fits handed out at once for each process that computes: enough that none waits, and few in memory.
AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Fit:
    """What is to be fitted: the runs of an application on a platform, and those that it borrows where they are few."""

    application: str
    platform: str
    runs: Sequence[Run]
    lent: Sequence[Run] = ()

    def fitted(self) -> Saved:
        """The predictor that has learned the runs, without those whose numbers nobody can compute with."""
        runs = [run for run in self.runs if representable(run)]
        return adaptive(self.application, self.platform, runs, self.lent).fit(runs)

    def dump(self) -> str:
        """The same as a JSON document, which workers read."""
        runs, lent = ([RecordedRun(run).as_dict() for run in each] for each in (self.runs, self.lent))
        return json.dumps({"application": self.application, "platform": self.platform, "runs": runs, "lent": lent})

    @classmethod
    def parse(cls, text: str) -> Fit:
        """The fit that :meth:`dump` wrote as a document."""
        read = json.loads(text)
        runs, lent = ([RecordedRun.of_dict(each).run for each in read[name]] for name in ("runs", "lent"))
        return cls(read["application"], read["platform"], runs, lent)


def fitted_document(fit: str) -> str:
    """Fit on a worker: documents go there and come back, never predictors."""
    return documents.dump(Fit.parse(fit).fitted())


class FitWorkers:
    """Processes that fit models; connected to while there is something to fit.

    Nothing that Dask serializes comes from users: fits and models travel as JSON documents. Whoever reaches a scheduler
    without certificates can run code on its workers, as the documentation says.

    Parameters
    ----------
    settings : the scheduler's address, or how many processes of this host.
    """

    def __init__(self, settings: Fitting) -> None:
        self._settings = settings

    def fit(self, fits: Iterable[Fit]) -> Iterator[tuple[Fit, Saved | Exception]]:
        """Fit all, and return each as it is done, with its predictor or why there is none.

        Raises
        ------
        OSError : the scheduler does not answer, or no worker has finished a fit for ten minutes.
        ImportError
            Dask is not installed.
        """
        with self._connected() as client:
            from distributed import as_completed

            waiting, left = {}, iter(fits)
            room = AT_ONCE * max(1, sum(client.ncores().values()))
            done: Any = as_completed(loop=client.loop, timeout=FITTING)

            def hand_out(most: int) -> None:
                for fit in _first(left, most):
                    future = client.submit(fitted_document, fit.dump(), pure=False)
                    waiting[future.key] = fit
                    done.add(future)

            hand_out(room)
            while waiting:
                future = next(done)
                fit = waiting.pop(future.key)
                hand_out(1)
                try:
                    yield fit, documents.parse(future.result())
                except Exception as error:
                    yield fit, error

    @contextmanager
    def _connected(self) -> Iterator[Client]:
        from distributed import Client, LocalCluster
        from distributed.security import Security

        if (address := self._settings.scheduler) is not None:
            tls = {name: value for name, value in self._settings.tls.items() if value is not None}
            security = Security(require_encryption=True, **tls) if tls else None
            with closing(Client(address, timeout=CONNECTING, security=security, set_as_default=False)) as client:
                yield client
        else:
            with (
                LocalCluster(
                    n_workers=self._settings.processes, threads_per_worker=1, processes=True, dashboard_address=None,
                    host="127.0.0.1", silence_logs=logging.ERROR,
                ) as cluster,
                closing(Client(cluster, set_as_default=False)) as client,
            ):  # fmt: skip
                yield client


def _first(fits: Iterator[Fit], most: int) -> Iterator[Fit]:
    for _, fit in zip(range(most), fits, strict=False):
        yield fit
