"""The groups of a campaign: for each application and platform the learned runs and the predicted ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from metasched.predictors.porting.platforms import ENOUGH, LENDS
from metasched.records import InputError, Run
from metasched.validation import Located

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
    InputError : when training runs are asked for that no group has.

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


@dataclass(frozen=True, slots=True)
class Judged:
    """The groups of a campaign with runs to predict.

    Parameters
    ----------
    groups : those that can be judged.
    left : those that cannot.
    lenders : by application, the groups that platforms with few training runs borrow from.
    """

    groups: list[Group]
    left: list[Group]
    lenders: Mapping[str, list[Group]]

    def lent(self, group: Group) -> tuple[Run, ...]:
        """The runs on other platforms that a group with few training runs borrows; none for others."""
        if len(group.training) >= ENOUGH:
            return ()
        others = (each for each in self.lenders.get(group.application, ()) if each.cluster != group.cluster)
        return tuple(run for each in others for run in each.training)


def judged_groups(
    runs: Sequence[Run],
    training: int | None = None,
    seed: int = 0,
    *,
    where: str,
    untrained: bool = False,
    borrowing: bool = False,
) -> Judged:
    """Find the groups of a campaign that can be judged.

    Parameters
    ----------
    runs, training, seed : see :func:`groups`.
    where : the campaign, for messages.
    untrained : whether a group without training runs can be judged.
    borrowing : whether platforms with few training runs borrow from others.

    Raises
    ------
    InputError : when there is none.
    """
    with Located(f"{where}, --training"):
        every = groups(runs, training, seed)
    asked = [group for group in every if group.rest]
    lenders = lending(every) if borrowing else {}
    if not asked:
        raise InputError("no row has phase predict, expected at least one", where=where)
    judged = [group for group in asked if group.training or untrained or group.application in lenders]
    if not judged:
        otherwise = "" if any(run.phase for run in runs) else ", or --training K to draw K runs"
        raise InputError(f"no row has phase train, expected at least one{otherwise}", where=where)
    return Judged(judged, [group for group in asked if group not in judged], lenders)


def lending(every: Iterable[Group]) -> dict[str, list[Group]]:
    """The groups of each application that has some platform with runs enough for others to borrow from."""
    found: dict[str, list[Group]] = {}
    for group in every:
        found.setdefault(group.application, []).append(group)
    able = {name: [each for each in of_one if len(each.training) >= LENDS] for name, of_one in found.items()}
    return {name: lenders for name, lenders in able.items() if lenders and len(found[name]) > 1}


def draw(runs: Sequence[Run], count: int, seed: int) -> list[Run]:
    """Draw runs at random, the same ones for the same seed, and keep their order.

    From four on they have at least two problem sizes and two processor counts, if there are two to choose from.

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
