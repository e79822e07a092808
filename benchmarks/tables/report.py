"""What the rows say, as a page and as pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from benchmarks.tables import table6
from benchmarks.tables.judged import CONTENDERS, LOADS, PEERS, Judged, Row
from benchmarks.tables.paper import MEAN_PPE, OVERHEADS, SCHEDULING_LOSS
from benchmarks.tables.table6 import Ported
from benchmarks.testbed.catalogue import DESIGN, JUDGED
from benchmarks.verdicts import Target, table
from metasched.cli.figures import COLOURS, LINES

#: Targets: mean PPE of a row and over all rows, by loads.
TARGETS = {"observed": (10.0, 6.0), "forecast": (20.0, 11.0)}
#: Share of all 90 % intervals that shall hold.
HELD = (0.88, 0.92)
#: The published method's two ways, in the order of the paper's tables.
WAYS = ("single", "multiple")


#: Mean and deviation of Extra-P's PPE (%) by row; empty where it is not installed.
ExtraP = Mapping[Row, tuple[float, float]]


def page(
    judged: Sequence[Judged],
    missing: Sequence[str],
    ported: Sequence[Ported],
    extra_p: ExtraP,
    *,
    seed: int = JUDGED.seed,
    took: str = "",
) -> str:
    """docs/results.md."""
    chose = (
        f"All campaigns have seed {seed}; the models were designed on seed {DESIGN.seed}, and nothing was chosen here."
        if seed != DESIGN.seed
        else f"**All campaigns have seed {seed}, on which the models were chosen: no figure here is a claim.**"
    )
    parts = [
        "# The paper's tables on the simulated testbed",
        "Written by `make tables` from campaigns of the testbed: real MPI programs on simulated clusters ([testbed]"
        f"(testbed.md)). {chose}",
        "Each contender is fitted to the 60 training runs, then predicts and learns "
        "run by run. PPE is the percentage prediction error; *paper* is the mean PPE that Sanjay & Vadhiyar 2008 "
        "report for the real cluster that the row imitates (single model / multiple models), on other hardware and "
        "therefore for orientation only. *True form* knows the program's terms from its source, and how many processes "
        "share a link, and fits their coefficients to the training runs: what it misses cannot be seen from the two "
        "minima.",
        "Extra-P knows P and N, but no loads, so its column is the same in both tables. Its models were made once, "
        "from the training runs moved to the grid of sizes that it requires (`benchmarks/tables/extra_p.py`)."
        if extra_p
        else "Extra-P was not installed (`pip install 'metasched[peers]'`), so its column is empty.",
    ]
    if took:
        parts.append(took)
    if missing:
        parts.append("Campaigns that are not there: " + ", ".join(missing) + ".")
    for loads in LOADS:
        parts += [f"## Tables 3 and 4, {loads} loads", _errors(judged, loads, extra_p)]
    parts += ["## Targets", table(_targets(judged, ported, extra_p))]
    parts += ["## Findings of the paper, with the published method", _published(judged)]
    parts += ["## Fig. 4", "![Error over time](pictures/fig4-eigen-intel-random.png)"]
    parts += ["## Table 5: loss of a scheduler that trusts the predictions", _losses(judged)]
    if ported:
        parts += ["## Table 6: porting between clusters", table6.section(ported)]
    parts += ["## Section 4.3: what a model costs", _overhead(judged)]
    return "\n\n".join(parts) + "\n"


def _errors(judged: Sequence[Judged], loads: str, extra_p: ExtraP) -> str:
    lines = [
        "| row | " + " | ".join(CONTENDERS) + " | Extra-P | true form | paper | robust / best peer | 90 % coverage |",
        "|---|" + "---:|" * (len(CONTENDERS) + 5),
    ]
    for one in judged:
        summary = one.summaries[loads]
        cells = [f"{summary[name]['ppe_mean']:.2f} ± {summary[name]['ppe_std']:.2f}" for name in CONTENDERS]
        cells.append("{:.2f} ± {:.2f}".format(*extra_p[one.row]) if one.row in extra_p else "")
        single, multiple = MEAN_PPE[one.row]
        known = f"{one.true_form.ppe:.2f}" if loads == "observed" else ""
        held = summary["robust"]["interval_coverage"]
        lines.append(
            f"| {' '.join(one.row)} | {' | '.join(cells)} | {known} | {single:g} / {multiple:g} "
            f"| {_against_best_peer(one, loads, extra_p):.2f} | {held:.0%} |"
        )
    means = [f"**{np.mean([one.summaries[loads][name]['ppe_mean'] for one in judged]):.2f}**" for name in CONTENDERS]
    means.append(f"**{np.mean([mean for mean, _ in extra_p.values()]):.2f}**" if extra_p else "")
    known = f"**{np.mean([one.true_form.ppe for one in judged]):.2f}**" if loads == "observed" else ""
    lines.append("| **mean** | " + " | ".join(means) + f" | {known} | | | |")
    return "\n".join(lines)


def _against_best_peer(one: Judged, loads: str, extra_p: ExtraP) -> float:
    summary = one.summaries[loads]
    peers = [summary[peer]["ppe_mean"] for peer in PEERS]
    if one.row in extra_p:
        peers.append(extra_p[one.row][0])
    return summary["robust"]["ppe_mean"] / min(peers)


def _targets(judged: Sequence[Judged], ported: Sequence[Ported], extra_p: ExtraP) -> list[Target]:
    found = []
    for loads in LOADS:
        row_target, mean_target = TARGETS[loads]
        errors = np.array([one.summaries[loads]["robust"]["ppe_mean"] for one in judged])
        worst = judged[int(errors.argmax())].row
        found.append(
            Target(
                f"robust, {loads} loads",
                f"every row <= {row_target:g} %, mean <= {mean_target:g} %",
                f"{(errors <= row_target).sum()} of {len(errors)} rows, worst {errors.max():.2f} % "
                f"({' '.join(worst)}), mean {errors.mean():.2f} %",
                bool((errors <= row_target).all() and errors.mean() <= mean_target),
            )
        )
        ratio = np.array([_against_best_peer(one, loads, extra_p) for one in judged])
        not_worse, better = int((ratio <= 1.0).sum()), int((ratio <= 0.9).sum())
        found.append(
            Target(
                f"against the best of {len(PEERS) + bool(extra_p)} peers on the row, {loads} loads",
                "not worse on any row, 10 % better on two in three",
                f"not worse on {not_worse} of {len(ratio)} rows, 10 % better on {better}",
                not_worse == len(ratio) and 3 * better >= 2 * len(ratio),
            )
        )
        held, all_ = (sum(one.held[loads][part] for one in judged) for part in (0, 1))
        least, most = HELD
        found.append(
            Target(
                f"90 % intervals, {loads} loads",
                f"{least:.0%} to {most:.0%} over all rows",
                f"{held / all_:.1%}",
                least <= held / all_ <= most,
            )
        )
        losses = np.array([loss for one in judged for loss in one.losses[loads]])
        found.append(
            Target(
                f"scheduling loss, {loads} loads",
                "0 in eight groups of ten, never above 5 %",
                _lost(losses),
                bool((losses < 1e-9).mean() >= 0.8 and losses.max() <= 5.0),
            )
        )
    return found + (table6.targets(ported) if ported else [])


def _published(judged: Sequence[Judged]) -> str:
    """Which of the paper's findings the published method shows here."""
    ours = {one.row: tuple(one.summaries["observed"][way]["ppe_mean"] for way in WAYS) for one in judged}
    paper = {row: MEAN_PPE[row] for row in ours}
    holds = [row for row, (one, several) in ours.items() if several < one]
    fails = [row for row in ours if row not in holds]
    in_paper = sum(several < one for one, several in paper.values())
    means = [np.mean([*values.values()], axis=0) for values in (paper, ours)]
    claims = [
        (
            "several models predict better than the best one after training (Tables 3 and 4)",
            f"{in_paper} of {len(ours)} rows, mean {means[0][0]:.2f} to {means[0][1]:.2f} %",
            f"{len(holds)} of {len(ours)} rows, mean {means[1][0]:.2f} to {means[1][1]:.2f} %",
            len(holds) >= in_paper and means[1][1] < means[1][0],
        ),
        (
            "mean PPE of several models below 30 % on every row",
            f"{sum(several < 30.0 for _, several in paper.values())} of {len(ours)} rows",
            f"{sum(several < 30.0 for _, several in ours.values())} of {len(ours)} rows",
            all(several < 30.0 for _, several in ours.values()),
        ),
    ]
    lines = ["| finding | paper | here | |", "|---|---|---|---|"]
    lines += [
        f"| {what} | {theirs} | {found} | {'reproduced' if shown else '**not reproduced**'} |"
        for what, theirs, found, shown in claims
    ]
    where = (
        f"Several models beat one on: {_rows(holds)}. They do not on: {_rows(fails)}. "
        "[Models](models.md#which-results-of-the-paper-are-reproduced) says why."
    )
    return "\n".join(lines) + "\n\n" + where


def _rows(rows: Sequence[Row]) -> str:
    return ", ".join(" ".join(row) for row in rows) or "no row"


def _lost(losses: Sequence[float]) -> str:
    lost = np.array(losses)
    return (
        f"0 in {(lost < 1e-9).mean():.0%} of groups, above 5 % in {(lost > 5.0).mean():.0%}, largest {lost.max():.1f} %"
    )


def _losses(judged: Sequence[Judged]) -> str:
    text = (
        "The runs of a row form ten groups of neighbouring problem sizes. In each group the run with the least "
        "predicted time (robust) is chosen; the loss is how much longer it took than the shortest run of the group. In "
        f"the paper the losses for molecular dynamics are {', '.join(f'{loss:g}' for loss in SCHEDULING_LOSS)} %. A "
        f"scheduler that trusts the true form loses {_lost([loss for one in judged for loss in one.true_form.losses])}."
    )
    lines = [
        "| row | " + " | ".join(f"losses (%), {loads} loads" for loads in LOADS) + " | true form, observed |",
        "|---|---|---|---|",
    ]
    for one in judged:
        cells = (
            ", ".join(f"{loss:.1f}" for loss in losses)
            for losses in (*(one.losses[loads] for loads in LOADS), one.true_form.losses)
        )
        lines.append(f"| {' '.join(one.row)} | {' | '.join(cells)} |")
    return text + "\n\n" + "\n".join(lines)


def _overhead(judged: Sequence[Judged]) -> str:
    text = (
        "The paper's list, with the robust method. For both that and the paper's own, loads have to be monitored while "
        "the experiments run, a port costs twenty short idle runs on each cluster, and each learned run a refit."
    )
    runs = int(np.median([one.training[0] for one in judged]))
    seconds = float(np.median([one.training[1] for one in judged]))
    lines = ["| way | beside experiments | experiments |", "|---|---|---|"]
    lines += [
        f"| {way} | {beside or 'none'} | {experiments or 'none named'} |" for way, beside, experiments in OVERHEADS
    ]
    lines.append(f"| robust | {seconds:.2g} s from the runs to a model (median of the rows) | {runs} |")
    return text + "\n\n" + "\n".join(lines)


def pictures(judged: Sequence[Judged], folder: Path) -> None:
    """The paper's Fig. 4 for its row: error over time of the published method's two ways and of the robust method."""
    for one in judged:
        if one.row != ("eigen", "intel", "random"):
            continue
        figure = Figure(figsize=(7, 4.5), layout="constrained")
        axes = figure.add_subplot()
        for position, name in enumerate(("single", "multiple", "robust")):
            ppe = np.array(one.ppe[name])
            median = [np.median(ppe[max(0, end - 15) : end]) for end in range(1, len(ppe) + 1)]
            colour = COLOURS[position]
            axes.plot(np.arange(1, len(ppe) + 1), ppe, ".", color=colour, alpha=0.35)
            axes.plot(np.arange(1, len(ppe) + 1), median, LINES[position], color=colour, label=name)
        axes.set(xlabel="run, in order of time", ylabel="percentage prediction error (%)", title=" ".join(one.row))
        axes.set_ylim(bottom=0)
        axes.legend(title="points, and median of 15")
        folder.mkdir(parents=True, exist_ok=True)
        figure.savefig(folder / "fig4-eigen-intel-random.png", dpi=120)
