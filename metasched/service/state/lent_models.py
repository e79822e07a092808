"""Models that count with runs that other sites lend for one question; nothing of them is kept as learned."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock

from metasched.placement.clusters.partition import Partition
from metasched.predictors.abilities import teaching_of
from metasched.predictors.contract import Predictor, Saved
from metasched.predictors.porting.platforms import ENOUGH, with_lent
from metasched.records import Run
from metasched.service.state.model_cache import Key
from metasched.service.state.models import Models

#: Models with lent runs that are kept ready: a grid asks with the same ones for minutes.
MOST_READY = 32


class LentModels:
    """Makes models with lent runs, and keeps the newest ready."""

    def __init__(self, models: Models) -> None:
        self._models, self._lock = models, Lock()
        self._ready: OrderedDict[tuple[Key, tuple[Run, ...], tuple[Run, ...]], Predictor] = OrderedDict()

    def runs_of(self, application: str) -> int:
        """How many runs the model knows that has learned the most of an application here."""
        counts = (self._models.learned_by((application, each)).runs for each in self._models.platforms(application))
        return max(counts, default=0)

    def predictor(self, application: str, platform: str, lent: tuple[Run, ...]) -> Predictor | None:
        """What predicts on a platform with lent runs, where it knows too few of its own; None where nothing can."""
        own = self._models.predictor(application, platform)
        taught = () if own is None else teaching_of(own)
        if len(taught) >= ENOUGH:
            return own
        key = (application, platform), taught, lent
        with self._lock:
            if key in self._ready:
                self._ready.move_to_end(key)
                return self._ready[key]
        made = with_lent(application, platform, own, lent)
        if made is None or made is own:
            return own
        with self._lock:
            self._ready[key] = made
            if len(self._ready) > MOST_READY:
                self._ready.popitem(last=False)
        return made

    def with_runs(self, lent: Sequence[Run]) -> Models | WithLent:
        """The models as they are when some runs are lent."""
        return WithLent(self, self._models, tuple(lent)) if lent else self._models


@dataclass(frozen=True, slots=True)
class WithLent:
    """The models of this site for one question for which runs were lent."""

    maker: LentModels
    models: Models
    lent: tuple[Run, ...]

    def on(self, application: str, partitions: Iterable[Partition]) -> dict[str, Predictor]:
        """The predictors of an application by the clusters of some partitions."""
        found = {each.state.name: self.maker.predictor(application, each.platform, self.lent) for each in partitions}
        return {name: predictor for name, predictor in found.items() if predictor is not None}

    def all(self) -> Mapping[Key, Saved]:
        """What is known without the lent runs, by application and platform."""
        return self.models.all()
