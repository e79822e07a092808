"""``metasched whatif``: how many processors pay, and what changes with a node drained, another N or another P."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box

from metasched.blocks.failures import FailureRate
from metasched.cli import figures, options, output
from metasched.cli.placements import rankings
from metasched.cli.placements.given import Given
from metasched.cli.written_files import WRITTEN
from metasched.described_placements import ranked
from metasched.placement.clusters.constraints import Constraints, made, unfold_names
from metasched.placement.explaining.documents import RankingTable, placement_document
from metasched.placement.explaining.reliability import Reliability, check_failure_times, under_failures
from metasched.placement.explaining.what_if import Scaling, drained, impossible_gain, scaling
from metasched.placement.ranking.query import Question
from metasched.placement.ranking.rendering import with_success
from metasched.plain_numbers import number_of, plain
from metasched.predictors.contract import Predictions
from metasched.records import InputError, check_level


@options.grouped
def whatif(
    *,
    application: rankings.ApplicationOption,
    problem_size: rankings.SizeOption,
    given: Given,
    drain: Annotated[str, typer.Option(help="Nodes to exclude, such as n[1-3].")] = "",
    times: Annotated[float, typer.Option(help="Factor on the problem size.")] = 1.0,
    processors: rankings.ProcessorsOption = None,
    least_efficiency: rankings.EfficiencyOption = None,
    checkpoint: Annotated[
        float | None, typer.Option(help="Seconds that a checkpoint takes; adds the effect of failures.")
    ] = None,
    node_mttf: Annotated[
        float | None, typer.Option(help="Mean seconds until a node fails; by default from Slurm's records.")
    ] = None,
    picture: Annotated[
        Path | None, WRITTEN, typer.Option(help="PNG of time and efficiency against P to write.")
    ] = None,
    stated: rankings.LayoutOptions,
    frequency: options.FrequencyOption = None,
    level: options.LevelOption = 0.9,
    as_json: options.JsonOption = False,
) -> None:
    """Show how many processors are worthwhile, and the effect of drained nodes, a larger N, or a given P.

    Without --clusters the daemon is asked.
    """
    check_level("--level", level)
    check_failure_times(node_mttf, checkpoint)
    rate = _failure_rate(node_mttf) if node_mttf is not None or checkpoint is not None else None
    if not 0.0 < times < math.inf:
        raise InputError(f"--times is {times:g}, expected a number above 0")
    size, settings = problem_size * times, stated.settings(frequency)
    gone = unfold_names(drain, "--drain")
    demands = {"least_efficiency": least_efficiency}
    changes = demands | {"processors": options.counts("--processors", processors)}
    Constraints().with_demands(changes)
    if given.clusters is not None:
        scene = given.scene(application)
        now, then = (
            Question(
                each, scene.constraints.with_demands(wanted), contention=scene.sharing(each)[0], top=2, level=level
            )
            for each, wanted in ((problem_size, demands), (size, changes))
        )
        without = replace(scene, clusters=drained(scene.clusters, gone))
        any_threads = stated.threads is None
        answers = tuple(
            ranked(application, each, question, settings, any_threads=any_threads)
            for each, question in ((scene, now), (without, then))
        )
        floor = now.constraints.least_efficiency > 0.0
    else:
        common = {"application": application, "top": 2, "level": level, **stated.for_daemon(frequency)}
        asked = {**common, "problem_size": problem_size, **made(demands)}
        changed = asked | {"problem_size": size, "drain": drain, **made(changes)}
        answers = tuple(given.consult("POST", "/v1/rankings", question) for question in (asked, changed))
        floor = least_efficiency != 0.0
    before, after = (rankings.read(each, where=given.url or "the daemon") for each in answers)
    lacking = next((each for each in (before, after) if not each.placements), None)
    if lacking is not None:
        if as_json:
            output.print_json({"before": None, "after": None, "why": lacking.why})
        rankings.leave(lacking)
    if gone and times == 1.0 and not processors:
        completions = [each.placements[0].record().completion for each in (before, after)]
        note = impossible_gain(*completions, same_loads=given.clusters is not None, floor=floor)
        after = after.model_copy(update={"warnings": [*after.warnings, *[note] * bool(note)]})
    curve = after.curve()
    found = scaling(curve, after.placements[0].processors)
    struck = None
    if rate is not None:
        best = after.placements[0]
        struck = under_failures(
            curve, best.processors, len({*best.nodes}), rate, checkpoint, level, slowdown=best.slowdown
        )
    if picture is not None:
        figures.save(
            figures.time_and_efficiency(
                curve.processors.tolist(),
                Predictions(curve.execution_time, curve.low, curve.high, level),
                f"{application}, N = {size:g}: the best placement for each P",
            ),
            picture,
        )
    if as_json:
        output.print_json(_answered(before, after, found, rate) | ({"failures": _failures(struck)} if struck else {}))
    else:
        _show_change(before, after, found)
        if struck is not None:
            _show_failures(struck)


def _failure_rate(node_mttf: float | None) -> FailureRate:
    """What is given, or what Slurm's records tell."""
    if node_mttf is None:
        from metasched.schedulers.slurm.commands import SlurmCommands
        from metasched.schedulers.slurm.node_failures import failure_rate

        try:
            return failure_rate(SlurmCommands.of())
        except RuntimeError as error:
            raise InputError(
                f"--node-mttf is not given, and Slurm does not report how often nodes fail: {error}"
            ) from None
    return FailureRate(1.0 / node_mttf)


def _answered(before: RankingTable, after: RankingTable, found: Scaling, rate: FailureRate | None) -> dict[str, Any]:
    columns = (found.processors, found.execution_time, found.speedup, found.efficiency)
    best = [each.placements[0] for each in (before, after)]
    # The rate that was asked for counts, whatever else is known of the nodes.
    was, will_be = (each.record() if rate is None else with_success(each.record(), rate) for each in best)
    return {
        "before": placement_document(was, best[0].costs),
        "after": placement_document(will_be, best[1].costs),
        "change": will_be.completion / was.completion - 1.0,
        "fastest": found.fastest,
        "enough": will_be.resource_set.processors,
        "by_processors": [
            {"processors": p, "execution_time": time, "speedup": speedup, "efficiency": efficiency}
            for p, time, speedup, efficiency in zip(*(column.tolist() for column in columns), strict=True)
        ],
        "warnings": list(after.warnings),
    }


def _failures(struck: Reliability) -> dict[str, Any]:
    low, high = (struck.rate.quantile(0.5 + half * struck.interval.level / 2) for half in (-1, 1))
    return {
        "rate": {"value": struck.rate.mean, "interval": {"low": low, "high": high, "level": struck.interval.level}},
        "node_mttf": 1.0 / struck.rate.mean,
        "nodes": struck.nodes,
        "success": {"value": struck.success, "interval": asdict(struck.interval)},
        "expected_completion": struck.expected_completion,
        "checkpoint": None if struck.checkpoints is None else asdict(struck.checkpoints),
        "fastest": struck.fastest,
        "by_processors": [
            {"processors": p, "expected_completion": time}
            for p, time in zip(struck.processors.tolist(), struck.completion.tolist(), strict=True)
        ],
    }


def _show_failures(struck: Reliability) -> None:
    ends = f"{struck.interval.level:.0%} interval {struck.interval.low:.4g} to {struck.interval.high:.4g}"
    doubt = "" if struck.interval.low == struck.interval.high else f", {ends}"
    output.say(f"probability that none of {struck.nodes} nodes fails during the run: {struck.success:.4g}{doubt}")
    output.say(f"expected completion with restarts from scratch: {_when(struck.expected_completion)}")
    if (made := struck.checkpoints) is not None:
        long = f"of a long job every {made.exact:.4g} s, by Young {made.young:.4g} s"
        if made.interval is None:
            output.say(f"no checkpoint of {made.cost:g} s makes it end sooner ({long})")
        else:
            output.say(
                f"expected completion with {number_of(made.number, 'checkpoint')} of {made.cost:g} s, one after every "
                f"{made.interval:.4g} s of work: {_when(made.expected_completion)} ({long})"
            )
    first = "none" if struck.fastest is None else number_of(struck.fastest, "processor")
    output.say(f"first to finish: {first}")


def _when(seconds: float) -> str:
    return "never" if math.isinf(seconds) else f"{seconds:.4g} s"


def _show_change(before: RankingTable, after: RankingTable, found: Scaling) -> None:
    for name, ranking in (("now", before), ("then", after)):
        best = ranking.placements[0].record()
        output.say(f"{name}: {plain(best.completion)} s with {rankings.where(best.resource_set)}")
    advised = after.placements[0].processors
    headings, title = ("P", "time s", "speedup", "efficiency", ""), "how many processors"
    shown = output.table(*headings, left=("",), title=title, title_justify="left", box=box.SIMPLE)
    for p, time, speedup, efficiency in zip(
        found.processors, found.execution_time, found.speedup, found.efficiency, strict=True
    ):
        notes = ["advised"] * bool(p == advised) + ["fastest"] * bool(p == found.fastest)
        shown.add_row(str(p), plain(time), f"{speedup:.3g}", f"{efficiency:.0%}", ", ".join(notes))
    output.show(shown)
    output.warn(after.warnings)
