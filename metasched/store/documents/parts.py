"""What the documents of all methods are made of: the header, runs, sorted lists, domains, and how they are checked."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from types import MappingProxyType
from typing import Annotated, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from candidate_functions.terms import names, positions
from metasched.predictors.formulas.sorted_list import SortedList
from metasched.predictors.memory.domain import Domain
from metasched.predictors.memory.window import RunWindow
from metasched.records import DEFAULT_SETTINGS, MOST_PARAMETERS, InputError, Run, Settings

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
#: N, P, available CPU, available bandwidth (None where not measured), execution time.
Row = tuple[Positive, Count, Annotated[float, Field(gt=0, le=1)] | None, Positive | None, Positive]
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
    """The ranges of problem sizes and processors that were learned."""

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
        """The domain as the record that predictors use."""
        return Domain(**self.model_dump())


class SettingPart(Part):
    """The settings of a run as JSON: layout, parameters, and clock."""

    processes_per_node: Count | None = None
    threads: Count = 1
    parameters: Annotated[dict[str, FiniteFloat | str], Field(max_length=MOST_PARAMETERS)] = Field(default_factory=dict)
    frequency: FiniteFloat | None = None

    @classmethod
    def of(cls, settings: Settings) -> SettingPart:
        """The part that keeps the settings of a run."""
        return cls(
            processes_per_node=settings.processes_per_node,
            threads=settings.threads,
            parameters=dict(settings.parameters),
            frequency=settings.frequency,
        )

    def build(self) -> Settings:
        """The settings as the record that requests and runs use."""
        return Settings.of(self.processes_per_node, self.threads, self.parameters, self.frequency)


def settings_of(runs: Iterable[Run]) -> list[SettingPart]:
    """The settings of runs, as they are kept; none where no run has any."""
    found = [run.settings for run in runs]
    return [] if all(each == DEFAULT_SETTINGS for each in found) else [SettingPart.of(each) for each in found]


def rows(runs: Iterable[Run]) -> list[Row]:
    """Runs as rows of numbers: what varies from run to run; loads not measured are null."""
    return [
        (
            run.problem_size,
            run.processors,
            None if math.isnan(run.min_avg_avail_cpu) else run.min_avg_avail_cpu,
            None if math.isnan(run.min_avg_avail_bw) else run.min_avg_avail_bw,
            run.execution_time,
        )
        for run in runs
    ]


def runs_of(kept: Sequence[Row], application: str, cluster: str, settings: Sequence[SettingPart] = ()) -> list[Run]:
    """The runs that rows were kept of, with their settings where there are any."""
    if settings and len(settings) != len(kept):
        raise InputError(f"there are settings of {len(settings)} runs, expected those of {len(kept)}")
    cells = [each.build().cells for each in settings] or [{}] * len(kept)
    return [
        Run(
            *(application, cluster, n, p),
            *(math.nan if cpu is None else cpu, math.nan if bw is None else bw, time),
            extra=MappingProxyType(extra),
        )
        for (n, p, cpu, bw, time), extra in zip(kept, cells, strict=True)
    ]


def window(
    kept: Sequence[Row],
    application: str,
    cluster: str,
    seen: int,
    capacity: int,
    settings: Sequence[SettingPart] = (),
) -> RunWindow:
    """The window that rows were kept of."""
    return RunWindow(runs_of(kept, application, cluster, settings), capacity, seen)


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
