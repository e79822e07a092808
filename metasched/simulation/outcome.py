"""Results of a simulated run: time, energy, power and probability of completion, in all and by label."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from metasched.arrays import Floats
from metasched.blocks.failures import from_scratch
from metasched.simulation.application import Application
from metasched.simulation.engine import Simulation
from metasched.simulation.groups import Group
from metasched.simulation.system import Placement, System


@dataclass(frozen=True)
class LabelOutcome:
    """Results of a label: number of processes, end time of the last (s), and energy (J; nan if unknown)."""

    processes: int
    finished: float
    energy: float


@dataclass(frozen=True)
class Outcome:
    """A simulated run.

    Parameters
    ----------
    execution_time : until the last process has ended (s).
    energy : of all nodes that take part (J); nan where a device gives no power.
    mean_power, peak_power : of the same (W).
    success : probability that no node that takes part fails meanwhile; nan where lambda is not known.
    expected_completion : with restarts from scratch (s); nan where lambda is not known.
    labels : by label.
    warnings : what is not known.
    times, power : arrays of shape (k,), the power from each moment on (s, W).
    groups : as they ended, with what they did, for a picture.
    """

    execution_time: float
    energy: float
    mean_power: float
    peak_power: float
    success: float
    expected_completion: float
    labels: Mapping[str, LabelOutcome]
    warnings: tuple[str, ...]
    times: Floats
    power: Floats
    groups: tuple[Group, ...]


def simulate(
    system: System, application: Application, processes: Mapping[str, int], variables: Mapping[str, float] | None = None
) -> Outcome:
    """Simulate an application on a system.

    Parameters
    ----------
    processes : how many of each label.
    variables : values that differ from the application's own.

    Raises
    ------
    InputError : when a label has no slots, or the application cannot run to its end.
    """
    placement = Placement(system, processes)
    groups = Simulation(application, placement, variables).run()
    finished = {label: np.zeros(count) for label, count in processes.items()}
    busy = {label: np.zeros(count) for label, count in processes.items()}
    for group in groups:
        chosen = slice(group.ranks.start, group.ranks[-1] + 1, group.ranks.step)
        finished[group.label][chosen], busy[group.label][chosen] = group.clock, group.busy
    return concluded(system, placement, finished, busy, tuple(groups))


def concluded(
    system: System,
    placement: Placement,
    finished: Mapping[str, Floats],
    busy: Mapping[str, Floats],
    groups: tuple[Group, ...] = (),
) -> Outcome:
    """The results of a run from the end times of its processes.

    Parameters
    ----------
    finished, busy : of each label arrays of shape (n,), when each process ended and how long it computed (s).
    groups : what they did, for a picture.
    """
    time = max(float(each.max()) for each in finished.values())
    shares, energy, times, power = _energy(system, placement, finished, busy, time)
    warnings = []
    used = np.unique(placement.kind[placement.loads > 0]).tolist()
    if math.isnan(energy):
        names = {
            system.nodes[kind].device.name for kind in used if np.isnan(system.nodes[kind].power(np.array([1]))).any()
        }
        warnings.append(f"no power is known of {', '.join(sorted(names))}")
    rates = {kind: system.nodes[kind].rate for kind in used}
    if unknown := [system.nodes[kind].name for kind, rate in rates.items() if rate is None]:
        warnings.append(f"no failure rate is known of {', '.join(unknown)}")
    counted = {kind: int(((placement.kind == kind) & (placement.loads > 0)).sum()) for kind in used}
    rate = sum(counted[kind] * (math.nan if each is None else each) for kind, each in rates.items())
    return Outcome(
        time,
        energy,
        energy / time if time else math.nan,
        float(power.max(initial=0.0)),
        math.exp(-rate * time),
        float(from_scratch(time, rate)),
        {
            label: LabelOutcome(ends.size, float(ends.max()), float(shares[label].sum()))
            for label, ends in finished.items()
        },
        tuple(warnings),
        times,
        power,
        groups,
    )


def _energy(
    system: System, placement: Placement, finished: Mapping[str, Floats], busy: Mapping[str, Floats], time: float
) -> tuple[dict[str, Floats], float, Floats, Floats]:
    """Energy of each process and of all nodes (J), and the power over time.

    Between two of its processes' ends a node draws what it draws with that many active ones, each an equal share; after
    the last end, what it draws idle, which is nobody's. Where waiting draws nothing, a process counts as active while
    it computes, wherever that falls.
    """
    labels = [*finished]
    node = np.concatenate([placement.node[label] for label in labels])
    ends = np.concatenate([finished[label] for label in labels])
    order = np.lexsort((ends, node))
    node, sorted_ends = node[order], ends[order]
    first = np.concatenate([[True], node[1:] != node[:-1]])
    begin = np.flatnonzero(first)
    place = np.arange(node.size) - np.repeat(begin, np.diff(np.append(begin, node.size)))
    active = placement.loads[node] - place
    length = sorted_ends - np.where(first, 0.0, np.concatenate([[0.0], sorted_ends[:-1]]))
    kinds = placement.kind[node]
    now, after, idle, full = (np.zeros(node.size) for _ in range(4))
    for kind in np.unique(kinds).tolist():
        chosen = kinds == kind
        draws = system.nodes[kind].power
        now[chosen], after[chosen] = draws(active[chosen]), draws(active[chosen] - 1)
        idle[chosen], full[chosen] = draws(np.zeros(1, np.int64)), draws(placement.loads[node][chosen])
    last = np.concatenate([first[1:], [True]])
    if not system.waiting:
        worked = np.concatenate([busy[label] for label in labels])[order]
        share = (full - idle) / placement.loads[node] * worked
        energy = float(share.sum() + (idle[last] * time).sum())
        times, power = np.array([0.0, time]), np.array([energy / time if time else 0.0] * 2)
        # When each process computes is not kept: at most all do at once.
        power[0] = float(full[last].sum())
    else:
        # Each of the active ones has the same part of a stretch: what those before the last have is a running sum.
        running = np.cumsum(now * length / active)
        share = running - np.repeat(np.concatenate([[0.0], running])[begin], np.diff(np.append(begin, node.size)))
        energy = float((now * length).sum() + (idle[last] * (time - sorted_ends[last])).sum())
        drop = np.argsort(sorted_ends, kind="stable")
        whole = float(full[last].sum())
        times = np.concatenate([[0.0], sorted_ends[drop]])
        power = np.concatenate([[whole], whole - np.cumsum((now - after)[drop])])
    shares = np.zeros(ends.size)
    shares[order] = share
    cuts = np.cumsum([finished[label].size for label in labels])[:-1]
    return dict(zip(labels, np.split(shares, cuts), strict=True)), energy, times, power
