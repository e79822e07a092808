"""What the documents of all methods are made of: the header, runs, sorted lists, domains, and how they are checked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from candidate_functions.terms import names, positions
from metasched.predictors.domain import Domain
from metasched.predictors.sorted_list import SortedList
from metasched.predictors.window import RunWindow
from metasched.records import InputError, Run

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
#: N, P, available CPU, available bandwidth, execution time.
Row = tuple[Positive, Count, Annotated[float, Field(gt=0, le=1)], Positive, Positive]
Scores = list[Annotated[float, Field(ge=0, allow_inf_nan=False)]]
_Names = tuple[str, str, str, str, str]


class Part(BaseModel):
    """A piece of a document: nothing missing, nothing unknown."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ListPart(Part):
    """A sorted list by its square-root sums."""

    combinations: list[_Names] = Field(min_length=1)
    factors: Annotated[list[list[FiniteFloat]], Field(min_length=6, max_length=6)]
    in_last: list[Annotated[int, Field(ge=0)]]
    samples: Count
    relative: bool
    nonnegative: bool

    @classmethod
    def of(cls, models: SortedList) -> ListPart:
        """What a list is kept as."""
        return cls(
            combinations=[_five(names(combination)) for combination in models.combinations],
            factors=models.factors.tolist(),
            in_last=models.in_last.tolist(),
            samples=models.samples,
            relative=models.relative,
            nonnegative=models.nonnegative,
        )

    def build(self) -> SortedList:
        """The list, sorted and solved again."""
        k = len(self.combinations)
        if any(len(row) != k for row in self.factors) or len(self.in_last) != k:
            raise InputError(f"factors and in_last must hold {k} numbers each, one for each combination")
        return SortedList.from_factors(
            np.stack([positions(combination) for combination in self.combinations]),
            np.array(self.factors),
            samples=self.samples,
            relative=self.relative,
            nonnegative=self.nonnegative,
            in_last=np.array(self.in_last, dtype=np.intp),
        )


class DomainPart(Part):
    """What was learned from."""

    smallest_size: Positive
    largest_size: Positive
    fewest_processors: Count
    most_processors: Count

    @classmethod
    def of(cls, domain: Domain) -> DomainPart:
        """What a domain is kept as."""
        return cls(
            smallest_size=domain.smallest_size,
            largest_size=domain.largest_size,
            fewest_processors=domain.fewest_processors,
            most_processors=domain.most_processors,
        )

    def build(self) -> Domain:
        """The domain."""
        return Domain(**self.model_dump())


def rows(runs: Iterable[Run]) -> list[Row]:
    """What runs are kept as."""
    return [
        (run.problem_size, run.processors, run.min_avg_avail_cpu, run.min_avg_avail_bw, run.execution_time)
        for run in runs
    ]


def window(kept: Sequence[Row], application: str, cluster: str, seen: int, capacity: int) -> RunWindow:
    """The window that rows were kept of."""
    found = RunWindow((Run(application, cluster, *row) for row in kept), capacity)
    found.seen = max(seen, found.seen)
    return found


Document = TypeVar("Document", bound=BaseModel)


def checked(kind: type[Document], text: str, where: str) -> Document:
    """Read a document of one kind.

    Raises
    ------
    InputError : it is no whole JSON document, or the named field is not as expected.
    """
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        if first["type"] == "json_invalid":
            raise InputError(f"not a whole JSON document ({first['ctx']['error']})", where=where) from None
        place = ".".join(str(step) for step in first["loc"])
        raise InputError(f"{place}: {first['msg']}", where=where) from None


def _five(found: tuple[str, ...]) -> _Names:
    comp, comm, bw, pcomp, pcomm = found
    return comp, comm, bw, pcomp, pcomm
