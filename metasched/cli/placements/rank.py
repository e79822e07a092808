"""``metasched rank``: where, and on how many processors, an application should run next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from metasched.cli import options, output
from metasched.cli.placements import rankings
from metasched.cli.placements.given import Given
from metasched.described_placements import ranked
from metasched.placement.clusters.constraints import Constraints, check_known, made, unfold_names
from metasched.placement.loads.counted import Loads
from metasched.placement.loads.staleness import STALE_AFTER
from metasched.placement.ranking.objective import TERMS, Objective
from metasched.placement.ranking.query import Question
from metasched.records import InputError, check_level

#: Placements that are shown at most.
MOST_SHOWN = 1_000_000


@dataclass(frozen=True, slots=True)
class Demanded:
    """The options that demand something of nodes and of the number of processors."""

    processors: rankings.ProcessorsOption = None
    min_processors: Annotated[int | None, typer.Option(min=1, help="Least number of processors.")] = None
    max_processors: Annotated[int | None, typer.Option(min=1, help="Largest number of processors.")] = None
    most_per_node: Annotated[int | None, typer.Option("--per-node", min=1, help="Most processors on one node.")] = None
    memory: Annotated[float | None, typer.Option(help="Memory that each node must have (MB).")] = None
    memory_per_processor: Annotated[
        float | None, typer.Option(help="Memory that a node must have for each processor that the job takes (MB).")
    ] = None
    feature: Annotated[list[str] | None, typer.Option(help="Feature that each node must have; repeatable.")] = None
    exclusive: Annotated[bool, typer.Option("--exclusive", help="Only nodes without any job.")] = False
    only: Annotated[list[str] | None, typer.Option("--cluster", help="Only this cluster; repeatable.")] = None
    exclude: Annotated[str, typer.Option(help="Nodes to exclude, such as n[1-3].")] = ""
    least_efficiency: rankings.EfficiencyOption = None

    def demands(self) -> dict[str, Any]:
        """The demands by the fields of :class:`Constraints`.

        Raises
        ------
        InputError : when one is wrong, or they contradict each other.
        """
        found: dict[str, Any] = {
            "processors": options.counts("--processors", self.processors),
            "min_processors": self.min_processors,
            "max_processors": self.max_processors,
            "per_node": self.most_per_node,
            "memory": self.memory,
            "memory_per_processor": self.memory_per_processor,
            "features": tuple(self.feature or ()),
            "exclusive": self.exclusive,
            "exclude": self.exclude,
            "clusters": tuple(self.only or ()),
            "least_efficiency": self.least_efficiency,
        }
        Constraints().with_demands(found)
        return found


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options that say what is best, and how much of the answer is shown."""

    policy: Annotated[
        rankings.Policy | None,
        typer.Option(help="min-time, or min-energy within --max-slowdown; in place of --weight."),
    ] = None
    weight: Annotated[
        list[str] | None, typer.Option(help="TERM=PRICE in seconds: time, core_hours, energy, risk, harm; repeatable.")
    ] = None
    max_slowdown: Annotated[
        float | None,
        typer.Option(help="Largest delay of a placement relative to the earliest completion, as a fraction."),
    ] = None
    power_cap: Annotated[
        float | None, typer.Option(help="Most that a cluster may draw, with its other jobs and idle nodes (W).")
    ] = None
    frequencies: Annotated[
        str | None, typer.Option(help="Clocks that processors may be given (MHz), such as 1800,2400.")
    ] = None
    pareto: Annotated[bool, typer.Option("--pareto", help="Show only the Pareto front of the weighted terms.")] = False
    saving: Annotated[
        float, typer.Option(help="Smallest fraction of the time that doubling the processors must save.")
    ] = 0.0
    near_tie: Annotated[float, typer.Option(help="Relative difference up to which scores count as equal.")] = 0.0
    rotate: Annotated[str | None, typer.Option(help="Seed (any word) that shuffles equal placements and nodes.")] = None
    stale_after: Annotated[float, typer.Option(min=0, help="Age from which loads are stale (s).")] = STALE_AFTER
    top: Annotated[int, typer.Option(min=1, max=MOST_SHOWN, help="Number of placements to show.")] = 10
    level: options.LevelOption = 0.9

    def objective(self) -> Objective:
        """What is best.

        Raises
        ------
        InputError : when weights are wrong, or a policy is named as well.
        """
        check_level("--level", self.level)
        if self.policy is not None and self.weight:
            raise InputError("both --policy and --weight are given, expected one of them")
        return rankings.objective(rankings.weights_of(self.policy) if self.policy else self.weight, self.saving)


@options.grouped
def rank_verb(
    *,
    application: rankings.ApplicationOption,
    problem_size: rankings.SizeOption,
    given: Given,
    forecast: Annotated[
        bool | None, typer.Option(help="Forecast the loads over the run; the daemon does so by default.")
    ] = None,
    demanded: Demanded,
    wanted: Wanted,
    stated: rankings.LayoutOptions,
    as_json: options.JsonOption = False,
) -> None:
    """Rank resource sets by predicted completion: those of described clusters, or without --clusters the daemon's.

    The daemon's Unix socket needs no token; by URL one with the role reader is taken from $METASCHED_TOKEN.
    """
    asked = Asked(application, problem_size, demanded.demands(), wanted, stated, forecast)
    document = asked.described(given) if given.clusters is not None else asked.of_daemon(given)
    answer = rankings.read(document, where=given.url or "the daemon")
    if as_json:
        output.print_json(document)
    output.warn(answer.warnings)
    if not answer.placements:
        rankings.leave(answer)
    if not as_json:
        rankings.show(answer)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question for a ranking.

    Parameters
    ----------
    application, problem_size : what is to run.
    demands : see :meth:`Demanded.demands`.
    wanted : what is best.
    stated : the settings of the run.
    forecast : whether loads are forecast; None for the default of whoever answers.
    """

    application: str
    problem_size: float
    demands: dict[str, Any]
    wanted: Wanted
    stated: rankings.LayoutOptions
    forecast: bool | None

    def described(self, given: Given) -> dict[str, Any]:
        """The ranking of described clusters, as a document."""
        wanted, objective, settings = self.wanted, self.wanted.objective(), self.stated.settings()
        scene = given.scene(self.application, forecast=bool(self.forecast))
        if self.forecast and scene.recorded is None:
            raise InputError("--forecast is given without --loads")
        known = [cluster.name for cluster in scene.clusters]
        for name in self.demands["clusters"]:
            if name not in known:
                raise InputError(
                    f"--cluster {name} is not described in {given.clusters}, expected one of {', '.join(known)}"
                )
        check_known(unfold_names(self.demands["exclude"], "--exclude"), scene.clusters)
        contention, running = scene.sharing(self.problem_size, wanted.stale_after)
        question = Question(
            self.problem_size,
            scene.constraints.with_demands(self.demands),
            objective,
            contention,
            top=wanted.top,
            level=wanted.level,
            pareto=wanted.pareto,
            tolerance=wanted.near_tie,
            rotation=wanted.rotate,
            loads=Loads(scene.recorded, stale_after=wanted.stale_after),
            max_slowdown=wanted.max_slowdown,
            power_cap=wanted.power_cap,
            running=running,
        )
        clocks = rankings.clocks(wanted.frequencies)
        any_threads = self.stated.threads is None
        return ranked(self.application, scene, question, settings, any_threads=any_threads, frequencies=clocks)

    def of_daemon(self, given: Given) -> Any:
        """The daemon's ranking of its partitions, as a document."""
        wanted, objective = self.wanted, self.wanted.objective()
        energy = {
            "frequencies": list(rankings.clocks(wanted.frequencies)),
            "max_slowdown": wanted.max_slowdown,
            "power_cap": wanted.power_cap,
        }
        return given.consult(
            "POST",
            "/v1/rankings",
            {
                "application": self.application,
                "problem_size": self.problem_size,
                **made(self.demands),
                **self.stated.for_daemon(),
                "weights": {name: getattr(objective, name) for name in TERMS},
                "saving": objective.saving,
                "near_tie": wanted.near_tie,
                "rotate": wanted.rotate,
                "pareto": wanted.pareto,
                "stale_after": wanted.stale_after,
                "forecast": self.forecast is not False,
                "top": wanted.top,
                "level": wanted.level,
                **{name: value for name, value in energy.items() if value},
            },
        )
