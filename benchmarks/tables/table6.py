"""Table 6 of the paper as a part of the page: the twelve ports, judged by the same code as ``benchmarks.porting``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import porting
from benchmarks.verdicts import Target

#: Mean PPE (%) that every port must reach before any run of the target, and after some.
BEFORE, AFTER = 20.0, 10.0

Pair = tuple[str, str, str, str, str, float]


@dataclass(frozen=True)
class Ported:
    """What one port reached.

    Parameters
    ----------
    title : application, reference and target.
    rcpu, rbw : scale factors.
    before, after : see ``Evaluation.summary``, before any run of the target is learned and after some.
    paper : the paper's average PPE (%).
    """

    title: str
    rcpu: float
    rbw: float
    before: dict[str, float]
    after: dict[str, float]
    paper: float


def judge(pair: Pair, campaigns: Path) -> Ported:
    """Port one model and let it follow the target's runs."""
    with threadpool_limits(limits=1):
        row = porting.judge(campaigns, *pair)
    return Ported(
        row.title, row.ported.rcpu.value, row.ported.rbw.value, row.before.summary(), row.after.summary(), row.paper
    )


def section(ported: Sequence[Ported]) -> str:
    """The table."""
    text = (
        "A model is learned from all runs of the reference campaign, ported with five idle runs on one and fifteen on "
        "two processors of both clusters and with their numbers of nodes, and predicts with observed loads ([porting]"
        "(porting.md)). *Before* is the mean PPE over all runs to predict, none of them learned; *after* that from run "
        f"{porting.LEARNED + 1} on, each learned once it was predicted; *coverage* is that of the 90 % intervals. The "
        "paper's column is its average PPE, without learning on the target."
    )
    lines = [
        f"| port | Rcpu | Rbw | before | coverage | after {porting.LEARNED} | coverage | paper |",
        "|---|" + "---:|" * 7,
    ]
    for one in ported:
        lines.append(
            f"| {one.title} | {one.rcpu:.3f} | {one.rbw:.2f} | {one.before['ppe_mean']:.1f} "
            f"| {one.before['interval_coverage']:.0%} | {one.after['ppe_mean']:.1f} "
            f"| {one.after['interval_coverage']:.0%} | {one.paper:.1f} |"
        )
    before, after = _errors(ported)
    held = [np.mean([part["interval_coverage"] for part in parts]) for parts in _parts(ported)]
    lines.append(
        f"| **mean** | | | **{before.mean():.1f}** | {held[0]:.0%} | **{after.mean():.1f}** | {held[1]:.0%} "
        f"| {np.mean([one.paper for one in ported]):.1f} |"
    )
    return text + "\n\n" + "\n".join(lines)


def targets(ported: Sequence[Ported]) -> list[Target]:
    """What every port must reach."""
    found = []
    limits = (("before any run of the target", BEFORE), (f"after {porting.LEARNED} runs", AFTER))
    for (when, limit), errors in zip(limits, _errors(ported), strict=True):
        worst = ported[int(errors.argmax())].title
        measured = (
            f"{(errors <= limit).sum()} of {len(errors)} pairs, worst {errors.max():.1f} % ({worst}), "
            f"mean {errors.mean():.1f} %"
        )
        reached = bool((errors <= limit).all())
        found.append(Target(f"porting (Table 6), {when}", f"every pair <= {limit:g} %", measured, reached))
    return found


def _parts(ported: Sequence[Ported]) -> tuple[list[dict[str, float]], list[dict[str, float]]]:
    return [one.before for one in ported], [one.after for one in ported]


def _errors(ported: Sequence[Ported]) -> list[np.ndarray]:
    return [np.array([part["ppe_mean"] for part in parts]) for parts in _parts(ported)]
