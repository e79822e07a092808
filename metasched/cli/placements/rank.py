"""``metasched rank``: where, and on how many processors, an application should run next."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from metasched.cli import options, output
from metasched.cli.placements import rankings
from metasched.cli.placements.given import Given
from metasched.described_placements import ranked
from metasched.placement.clusters.constraints import Constraints, check_known, made, unfold_names
from metasched.placement.loads.counted import Loads
from metasched.placement.loads.staleness import STALE_AFTER
from metasched.placement.ranking.objective import TERMS
from metasched.placement.ranking.query import Question
from metasched.records import InputError

#: Placements that are shown at most.
MOST_SHOWN = 1_000_000


@options.grouped
def rank_verb(
    *,
    application: rankings.ApplicationOption,
    problem_size: rankings.SizeOption,
    given: Given,
    forecast: Annotated[
        bool | None,
        typer.Option(help="Forecast the loads over the run; the daemon does so by default."),
    ] = None,
    processors: rankings.ProcessorsOption = "",
    min_processors: Annotated[int | None, typer.Option(min=1, help="Least number of processors.")] = None,
    max_processors: Annotated[int | None, typer.Option(min=1, help="Largest number of processors.")] = None,
    most_per_node: Annotated[int | None, typer.Option("--per-node", min=1, help="Most processors on one node.")] = None,
    policy: Annotated[
        rankings.Policy | None,
        typer.Option(help="min-time, or min-energy within --max-slowdown; in place of --weight."),
    ] = None,
    max_slowdown: Annotated[
        float | None,
        typer.Option(help="Largest delay of a placement relative to the earliest completion, as a fraction."),
    ] = None,
    power_cap: Annotated[
        float | None, typer.Option(help="Most that a cluster may draw, with its other jobs and idle nodes (W).")
    ] = None,
    frequencies: Annotated[
        str, typer.Option(help="Clocks that processors may be given (MHz), such as 1800,2400.")
    ] = "",
    per_node: options.PerNodeOption = None,
    threads: Annotated[
        int | None,
        typer.Option(min=1, help="Threads of each process; by default the best of those it has run with."),
    ] = None,
    parameter: options.ParameterOption = None,
    memory: Annotated[float | None, typer.Option(help="Memory that each node must have (MB).")] = None,
    feature: Annotated[list[str] | None, typer.Option(help="Feature that each node must have; repeatable.")] = None,
    exclusive: Annotated[bool, typer.Option("--exclusive", help="Only nodes without any job.")] = False,
    only: Annotated[list[str] | None, typer.Option("--cluster", help="Only this cluster; repeatable.")] = None,
    exclude: Annotated[str, typer.Option(help="Nodes to exclude, such as n[1-3].")] = "",
    weight: Annotated[
        list[str] | None,
        typer.Option(help="TERM=PRICE in seconds: time, core_hours, energy, risk, harm; repeatable."),
    ] = None,
    pareto: Annotated[bool, typer.Option("--pareto", help="Show only the Pareto front of the weighted terms.")] = False,
    least_efficiency: rankings.EfficiencyOption = None,
    saving: Annotated[
        float, typer.Option(help="Smallest fraction of the time that doubling the processors must save.")
    ] = 0.0,
    near_tie: Annotated[float, typer.Option(help="Relative difference up to which scores count as equal.")] = 0.0,
    rotate: Annotated[
        str | None, typer.Option(help="Seed (any word) that shuffles equal placements and nodes.")
    ] = None,
    stale_after: Annotated[float, typer.Option(min=0, help="Age from which loads are stale (s).")] = (STALE_AFTER),
    top: Annotated[int, typer.Option(min=1, max=MOST_SHOWN, help="Number of placements to show.")] = 10,
    level: options.LevelOption = 0.9,
    as_json: options.JsonOption = False,
) -> None:
    """Rank resource sets by predicted completion: those of described clusters, or without --clusters the daemon's.

    The daemon's Unix socket needs no token; by URL one with the role reader is taken from $METASCHED_TOKEN.
    """
    options.check_level(level)
    settings = options.SettingsOptions(per_node, threads or 1, parameter).settings()
    demands: dict[str, Any] = {
        "processors": rankings.counts(processors, where="--processors"),
        "min_processors": min_processors,
        "max_processors": max_processors,
        "per_node": per_node if most_per_node is None and (threads or 1) == 1 else most_per_node,
        "memory": memory,
        "features": tuple(feature or ()),
        "exclusive": exclusive,
        "exclude": exclude,
        "clusters": tuple(only or ()),
        "least_efficiency": least_efficiency,
    }
    Constraints().with_demands(demands)
    if policy is not None and weight:
        raise InputError("both --policy and --weight are given, expected one of them")
    wanted = rankings.objective(rankings.weights_of(policy) if policy else weight, saving)
    clocks = rankings.clocks(frequencies)
    if given.clusters is not None:
        scene = given.scene(application, settings)
        if forecast and scene.recorded is None:
            raise InputError("--forecast is given without --loads")
        known = [cluster.name for cluster in scene.clusters]
        for name in only or ():
            if name not in known:
                raise InputError(
                    f"--cluster {name} is not described in {given.clusters}, expected one of {', '.join(known)}"
                )
        check_known(unfold_names(exclude, "--exclude"), scene.clusters)
        contention, running = scene.sharing(problem_size)
        question = Question(
            problem_size,
            scene.constraints.with_demands(demands),
            wanted,
            contention,
            top=top,
            level=level,
            pareto=pareto,
            tolerance=near_tie,
            rotation=rotate,
            loads=Loads(scene.recorded if forecast else None, stale_after=stale_after),
            max_slowdown=max_slowdown,
            power_cap=power_cap,
            running=running,
        )
        document = ranked(application, scene, question, settings, any_threads=threads is None, frequencies=clocks)
    else:
        asked = {
            "application": application,
            "problem_size": problem_size,
            **made(demands),
            **{name: value for name, value in settings.as_dict().items() if name != "threads" or threads is not None},
            "weights": {name: getattr(wanted, name) for name in TERMS},
            "saving": saving,
            "near_tie": near_tie,
            "rotate": rotate,
            "pareto": pareto,
            "stale_after": stale_after,
            "forecast": forecast is not False,
            "top": top,
            "level": level,
        }
        energy = {"frequencies": list(clocks), "max_slowdown": max_slowdown, "power_cap": power_cap}
        asked |= {name: value for name, value in energy.items() if value}
        document = given.consult("POST", "/v1/rankings", asked)
    answer = rankings.read(document, where=given.url or "the daemon")
    if as_json:
        output.print_json(document)
    output.warn(answer.warnings)
    if not answer.placements:
        rankings.leave(answer)
    if not as_json:
        rankings.show(answer)
