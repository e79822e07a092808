"""Turns a placement into an answer: the message for users, the time limit, and the fields for the scheduler."""

from __future__ import annotations

import math
from collections.abc import Sequence

from metasched.advised_placements import Answer, Ask
from metasched.node_names import fold
from metasched.placement.clusters.partition import Holder, Partition
from metasched.placement.clusters.state import ClusterState, nodes_with, places
from metasched.placement.explaining.energy_words import energy_words
from metasched.plain_numbers import processes, span
from metasched.predictors.abilities import clocks_of
from metasched.predictors.contract import Predictor
from metasched.predictors.load_doubt import predict_one
from metasched.records import Placement
from metasched.service.configuration import Configuration

#: The answer mentions slowdowns by running jobs from this factor on.
WORTH_SAYING = 1.01


def nothing(uid: str, why: str, configuration: Configuration) -> Answer:
    """The answer if there is no advice."""
    return Answer(id=uid, mode=configuration.mode, steer=configuration.steer, placed=False, message=why)


def holder_of(ask: Ask) -> Holder:
    """The owner of a job, to whom limits apply."""
    return Holder(ask.qos, ask.login, ask.account)


def answer(
    uid: str,
    ask: Ask,
    best: Placement,
    chosen: Partition,
    counted: ClusterState,
    predictor: Predictor,
    warnings: tuple[str, ...],
    configuration: Configuration,
    ties: Sequence[str] = (),
    refused: Sequence[str] = (),
) -> Answer:
    """The answer that advises a placement.

    Parameters
    ----------
    uid, ask : the question, and the identifier of its answer.
    best : the placement, in the partition ``chosen``.
    counted : the cluster, laid out as the job is, with the loads that the placement counts with.
    predictor : the model on it, with the layout and the clock of the placement.
    warnings : what the user should know.
    configuration : of the daemon.
    ties : names of further partitions that may complete the job first, of which Slurm chooses then.
    refused : why parameters of the job do not count: what they change is not known, so no time limit is suggested.
    """
    sets, slowdown = best.resource_set, best.slowdown
    shared = f", {slowdown:.2f} times as long as alone" if slowdown >= WORTH_SAYING else ""
    interval, nodes = best.prediction.interval, fold(sets.nodes)
    return Answer(
        id=uid,
        mode=configuration.mode,
        # Names of nodes of one partition would exclude the others.
        steer="partition" if ties else _steer(chosen, configuration),
        placed=True,
        message=f"{ask.application} n={ask.problem_size:g} on {processes(sets.processors, sets.threads)} of "
        f"{chosen.name or chosen.state.name} ({nodes}): "
        f"{span(slowdown * best.prediction.execution_time)} expected{shared}, "
        f"{span(slowdown * interval.low)} to {span(slowdown * interval.high)} at {interval.level:.0%}"
        + ("" if sets.frequency is None else f"; {energy_words(best)}")
        + (f"; Slurm chooses among {', '.join([chosen.name, *ties])}, which are near ties" if ties else "")
        + "".join(f"; {why}" for why in refused),
        scheduler=chosen.scheduler,
        partition=chosen.name,
        partitions=[chosen.name, *ties] if ties else [],
        nodes=nodes,
        node_count=len(sets.nodes),
        processors=sets.processors,
        prefer=_common_feature(chosen.state, sets.nodes),
        frequency=sets.frequency if configuration.energy.set_frequency else None,
        time_limit=None if refused else _time_limit(ask, best, chosen, counted, predictor, configuration),
        placement=best,
        warnings=[*warnings, *refused],
    )


def _steer(chosen: Partition, configuration: Configuration) -> str:
    """The fields for the scheduler: a job is only bound to nodes if it can be released when these are not available."""
    return "features" if configuration.steer == "nodes" and not chosen.releases else configuration.steer


def _time_limit(
    ask: Ask,
    best: Placement,
    chosen: Partition,
    counted: ClusterState,
    predictor: Predictor,
    configuration: Configuration,
) -> float | None:
    """A time limit that the run will hardly reach: the interval's upper end, at most the present limit.

    None for a job at a clock of its own whose effect no run has shown: how long it may take there is not known.
    """
    if ask.keeps_clock or (ask.frequency is not None and clocks_of(predictor) is None):
        return None
    p, cpu, bandwidth = (
        best.resource_set.processors,
        best.resource_set.available_cpu,
        best.resource_set.available_bandwidth,
    )
    level = configuration.time_limit_level
    found = predict_one(predictor, ask.problem_size, p, cpu, bandwidth, level, counted.doubt(p, level))
    high = found.interval.high * best.slowdown * configuration.time_limit_margin
    wanted = 60.0 * math.ceil(high / 60.0) if math.isfinite(high) else math.inf
    limit = min(wanted, math.inf if ask.time_limit is None else ask.time_limit, chosen.longest(holder_of(ask)))
    return limit if math.isfinite(limit) else None


def _common_feature(state: ClusterState, nodes: tuple[str, ...]) -> str:
    """The feature that all these nodes have and the fewest others; empty if there is none."""
    place = places(state.nodes)
    common = frozenset.intersection(*(state.features[place[node]] for node in nodes))
    if not common:
        return ""
    known = nodes_with(state.features)
    return min(common, key=lambda feature: (known[feature], feature))
