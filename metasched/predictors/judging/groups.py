"""The groups of a campaign: for each application and platform the learned runs and the predicted ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from metasched.records import InputError, Run

#: Training runs from which on a draw holds at least two problem sizes and two processor counts, where there are two.
VARIED = 4


@dataclass(frozen=True, slots=True)
class Group:
    """One application on one platform.

    Parameters
    ----------
    application, cluster : names.
    training : runs to learn before the first prediction, in the order of the campaign.
    rest : runs to predict, likewise.
    """

    application: str
    cluster: str
    training: tuple[Run, ...]
    rest: tuple[Run, ...]

    @property
    def key(self) -> tuple[str, str]:
        """Names of the application and of the platform."""
        return self.application, self.cluster

    @property
    def name(self) -> str:
        """Application and platform, as messages name them."""
        return f"{self.application} on {self.cluster}"


def groups(runs: Iterable[Run], training: int | None = None, seed: int = 0) -> tuple[Group, ...]:
    """Divide a campaign by application and platform, in the order in which they first appear.

    Rows of phase ``train`` are for training and all others to be predicted. Where no row has a phase and a number of
    training runs is asked for, these are drawn from all rows and the others are to be predicted.

    Parameters
    ----------
    runs : the campaign.
    training : draw this many training runs of each group, see :func:`draw`; all of a group that has fewer.
    seed : decides what is drawn.

    Raises
    ------
    InputError
        When training runs are asked for that no group has.

    Examples
    --------
    >>> runs = [Run("cg", c, n, 2, 1.0, 90.0, n / 100, phase="train") for c in ("a", "b") for n in (1, 2, 3)]
    >>> [(group.name, len(group.training)) for group in groups(runs, training=2)]
    [('cg on a', 2), ('cg on b', 2)]
    """
    found: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        found.setdefault((run.application, run.cluster), []).append(run)
    phased = training is None or any(run.phase for every in found.values() for run in every)
    trainable = {key: [run for run in every if run.phase == "train" or not phased] for key, every in found.items()}
    most = max(map(len, trainable.values()), default=0)
    if training is not None and training > most:
        raise InputError(f"has {most} {'train rows' if phased else 'rows'} to draw from, expected at least {training}")
    made = []
    for key, every in found.items():
        own = trainable[key]
        chosen = draw(own, min(training, len(own)), seed) if training is not None else own
        drawn = set(map(id, chosen))
        rest = [run for run in every if (run.phase != "train" if phased else id(run) not in drawn)]
        made.append(Group(*key, tuple(chosen), tuple(rest)))
    return tuple(made)


def draw(runs: Sequence[Run], count: int, seed: int) -> list[Run]:
    """Draw runs at random, the same ones for the same seed, and keep their order.

    From four on they have at least two problem sizes and two processor counts, if there are two to choose from.

    Examples
    --------
    >>> runs = [Run("cg", "c8", n, 1 if n > 1 else 2, 1.0, 90.0, 1.0) for n in range(1, 100)]
    >>> sorted({run.processors for run in draw(runs, 4, seed=7)})
    [1, 2]
    """
    rng = np.random.default_rng(seed)
    while True:
        chosen = [runs[place] for place in np.sort(rng.choice(len(runs), count, replace=False))]
        if count < VARIED or _variety(chosen) == _variety(runs):
            return chosen


def _variety(runs: Iterable[Run]) -> tuple[bool, bool]:
    """Whether there are two problem sizes, and two processor counts."""
    sizes, counts = zip(*((run.problem_size, run.processors) for run in runs), strict=True)
    return len(set(sizes)) > 1, len(set(counts)) > 1
