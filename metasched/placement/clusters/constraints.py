"""Demands of an application on its nodes and on its number of processors, and the nodes that they exclude.

The fields stand here once: description files, requests to the daemon and the command line are read into this model.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sized
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Self

import numpy as np
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError, model_validator

from metasched.arrays import Flags, Ints
from metasched.node_names import fold, unfold
from metasched.placement.clusters.state import ClusterState
from metasched.records import DEFAULT_SETTINGS, InputError, Settings
from metasched.validation import first_error
from monitors.validated_fields import Positive, StrictFields

#: Nodes that one list of names may stand for, and numbers of processors that may be allowed one by one: both are
#: unfolded while others wait for their answers, so they are counted before.
MOST_NAMED, MOST_COUNTS = 20_000, 10_000
#: The floor of parallel efficiency where none is named. On processors alike the knee of execution time and efficiency
#: is never below one half (Eager, Zahorjan and Lazowska 1989, IEEE Transactions on Computers 38(3), 408-423). A set
#: runs at the pace of its least available CPU, and nodes that are shared have about half of theirs to spare.
LEAST_EFFICIENCY = 0.25


@lru_cache(maxsize=8)
def unfold_names(text: str, where: str) -> frozenset[str]:
    """The nodes that a folded name stands for, each once; none for an empty text.

    Raises
    ------
    InputError : when they are no node names, or more than :data:`MOST_NAMED`.

    Examples
    --------
    >>> sorted(unfold_names("n[1-2],n1", "exclude"))
    ['n1', 'n2']
    """
    return frozenset(unfold(text, where=where, most=MOST_NAMED)) if text else frozenset()


def parse_counts(text: str) -> tuple[int, ...]:
    """Numbers of processors written as 1,2,4-8, ascending.

    Raises
    ------
    InputError : when they are no numbers, or more than :data:`MOST_COUNTS`.

    Examples
    --------
    >>> parse_counts("1,2,4-6")
    (1, 2, 4, 5, 6)
    """
    ranges: list[range] = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        first, dash, last = part.partition("-")
        if not (first.isascii() and first.isdecimal()) or (dash and not (last.isascii() and last.isdecimal())):
            raise InputError(f"{part!r} is not a number of processors, expected such as 1,2,4-8")
        low, high = int(first[:9]), int((last or first)[:9])
        if not 1 <= low <= high <= 10_000_000:
            raise InputError(f"{part!r} is not a range of whole numbers from 1 to 10000000")
        ranges.append(range(low, high + 1))
        if sum(map(len, ranges)) > MOST_COUNTS:
            raise InputError(f"processors names more than {MOST_COUNTS} numbers, expected at most that many")
    return tuple(sorted({number for each in ranges for number in each}))


def _counts(value: Any) -> Any:
    return parse_counts(value) if isinstance(value, str) else value


def check_known(nodes: Collection[str], clusters: Iterable[ClusterState]) -> None:
    """Refuse names of nodes that none of some clusters has.

    Raises
    ------
    InputError : with the first such name.

    Examples
    --------
    >>> check_known({"e1"}, [ClusterState.make("east", ["e1", "e2"])])
    """
    # Most questions name none, and need not look at the nodes of all clusters.
    if nodes and (unknown := set(nodes).difference(*(cluster.nodes for cluster in clusters))):
        raise InputError(f"node {min(unknown)} is in none of the clusters")


def _exclude(value: Any) -> Any:
    return fold(sorted(value)) if isinstance(value, (set, frozenset)) and value else value or ""


def _sorted(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(set(values)))


Name = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f]+$")]
#: A name that may be empty. None holds a control character, which nobody types and PostgreSQL cannot hold in JSON.
Text = Annotated[str, Field(max_length=255, pattern=r"^[^\x00-\x1f\x7f]*$")]
Count = Annotated[int, Field(ge=1, le=10_000_000)]


class Constraints(StrictFields, BaseModel):
    """Demands of one application; a description file, a request and the command line give the same fields.

    Parameters
    ----------
    processors : numbers of processors allowed, any where empty; or a text such as ``"1,2,4-8"``.
    min_processors, max_processors : the least and the largest number allowed.
    per_node : the most processors it may take on one node.
    memory : megabytes that each node must have free; a node whose memory is unknown does not count as having it.
    memory_per_processor : megabytes that a node must have free for each of its processors that the job takes.
    features : words that each node must have.
    exclusive : take only nodes without any job.
    clusters : names of the clusters it may run on, all where empty.
    exclude : names of nodes that it must not take, folded; of :data:`MOST_NAMED` nodes at most.
    least_efficiency : the floor of parallel efficiency, see :mod:`metasched.placement.ranking.efficiency`; none at 0.

    Examples
    --------
    >>> Constraints(min_processors=3, max_processors=6).counts(4).tolist()
    [3, 4]
    >>> Constraints(processors=(2, 8), min_processors=3).counts(64).tolist()
    [8]
    """

    processors: Annotated[tuple[Count, ...], Field(max_length=MOST_COUNTS), BeforeValidator(_counts)] = ()
    min_processors: Count = 1
    max_processors: Count | None = None
    per_node: Count | None = None
    memory: Positive | None = None
    memory_per_processor: Positive | None = None
    features: Annotated[tuple[Name, ...], Field(max_length=100), AfterValidator(_sorted)] = ()
    exclusive: bool = False
    clusters: Annotated[tuple[Name, ...], Field(max_length=1000), AfterValidator(_sorted)] = ()
    exclude: Annotated[Text, Field(max_length=65_536), BeforeValidator(_exclude)] = ""
    least_efficiency: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = LEAST_EFFICIENCY

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.max_processors is not None and self.max_processors < self.min_processors:
            raise InputError(
                f"max_processors is {self.max_processors}, expected at least min_processors, {self.min_processors}"
            )
        if self.exclude:
            unfold_names(self.exclude, "exclude")
        return self

    def with_demands(self, demands: Mapping[str, Any]) -> Constraints:
        """These constraints, with those of some other demands in their place that are set, see :func:`made`.

        Raises
        ------
        InputError : when a demand is wrong, or they contradict each other.

        Examples
        --------
        >>> described = Constraints(max_processors=8, features=("gpu",))
        >>> described.with_demands({"max_processors": 4, "features": (), "least_efficiency": 0.0}).features
        ('gpu',)
        """
        given = made(demands)
        if not given:
            return self
        own = {name: getattr(self, name) for name in Constraints.model_fields}
        try:
            return Constraints(**own | given)
        except ValidationError as error:
            raise InputError(first_error(error)) from None

    @property
    def most(self) -> int | None:
        """The largest number of processors that is allowed; None if any is.

        >>> Constraints(processors=(2, 8), max_processors=16).most, Constraints().most
        (8, None)
        """
        limits = [limit for limit in (self.max_processors, max(self.processors, default=None)) if limit is not None]
        return min(limits, default=None)

    def counts(self, available: int) -> Ints:
        """Numbers of processors allowed, ascending, when ``available`` processors are available."""
        most = available if self.max_processors is None else min(available, self.max_processors)
        if not self.processors:
            return np.arange(self.min_processors, most + 1, dtype=np.int64)
        counts = np.unique(np.array(self.processors, dtype=np.int64))
        return counts[(counts >= self.min_processors) & (counts <= most)]

    def excluded(self, cluster: ClusterState) -> dict[str, Flags]:
        """For each demand that is set, the nodes of a cluster that it excludes: arrays of shape (n,)."""
        size = len(cluster.nodes)
        ruled_out: dict[str, Flags] = {
            "down, drained or reserved": ~cluster.up,
            "no free processor": cluster.processors < 1,
        }
        if self.clusters:
            ruled_out[f"cluster {' or '.join(self.clusters)} only"] = np.full(size, cluster.name not in self.clusters)
        if self.exclude:
            gone = unfold_names(self.exclude, "exclude")
            ruled_out["excluded nodes"] = np.fromiter((name in gone for name in cluster.nodes), bool, size)
        if self.memory is not None:
            ruled_out[f"memory of {self.memory:g} MB"] = ~(cluster.memory >= self.memory)
        if self.memory_per_processor is not None:
            what = f"memory of {self.memory_per_processor:g} MB for each processor"
            ruled_out[what] = ~(cluster.memory >= self.memory_per_processor)
        for feature in self.features:
            ruled_out[f"feature {feature}"] = np.fromiter((feature not in has for has in cluster.features), bool, size)
        if self.exclusive:
            ruled_out["exclusive nodes"] = cluster.jobs > 0
        return ruled_out

    def admitted(self, cluster: ClusterState) -> Flags:
        """Which nodes of a cluster satisfy all demands, shape (n,)."""
        kept: Flags = ~np.logical_or.reduce(list(self.excluded(cluster).values()), axis=0)
        return kept

    def offered(self, cluster: ClusterState) -> Ints:
        """The processors of each node of a cluster that the job may take, shape (n,); 0 where it is ruled out."""
        return np.where(self.admitted(cluster), self.laid_out(cluster).processors, 0)

    def laid_out(self, cluster: ClusterState, settings: Settings = DEFAULT_SETTINGS) -> ClusterState:
        """A cluster for a job with a layout that takes no more than it may of a node."""
        most = self._most_of_each_node(cluster)
        return cluster if most is None and settings == DEFAULT_SETTINGS else cluster.laid_out(settings, most)

    def _most_of_each_node(self, cluster: ClusterState) -> int | Ints | None:
        """The most processors that the job may take of any node, or where memory limits them of each, shape (n,)."""
        if self.memory_per_processor is None:
            return self.per_node
        room = np.nan_to_num(cluster.memory // self.memory_per_processor)
        return np.clip(room, 0, cluster.processors if self.per_node is None else self.per_node).astype(np.int64)


#: Of a job that demands nothing; it is compared with what others demand for each placement.
NO_DEMANDS = Constraints()


def made(demands: Mapping[str, Any]) -> dict[str, Any]:
    """The demands that are set: those that are not None, False or empty.

    >>> made({"exclusive": False, "memory": None, "features": (), "least_efficiency": 0.0})
    {'least_efficiency': 0.0}
    """
    return {
        name: value
        for name, value in demands.items()
        if not (value is None or value is False or (isinstance(value, Sized) and not value))
    }


@dataclass(frozen=True, slots=True)
class Admitted:
    """A cluster restricted to the nodes that satisfy the constraints.

    Parameters
    ----------
    cluster : the cluster with the nodes that are left.
    ruled_out : for each demand the number of nodes that it rules out; a node may fail several.
    """

    cluster: ClusterState
    ruled_out: dict[str, int]


def admit(cluster: ClusterState, constraints: Constraints) -> Admitted:
    """Select the nodes that satisfy the constraints."""
    ruled_out = constraints.excluded(cluster)
    kept = ~np.logical_or.reduce(list(ruled_out.values()), axis=0)
    left = cluster if kept.all() else cluster.select(np.flatnonzero(kept))
    return Admitted(left, {demand: int(flags.sum()) for demand, flags in ruled_out.items() if flags.any()})
