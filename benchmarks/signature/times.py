"""Predicted times beside the truth, and beside what regressions of the same three small runs expect."""

from __future__ import annotations

import itertools
import math
import signal
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.signature.machine import built, run, write_machine
from benchmarks.signature.structure import right
from benchmarks.signature.truth import DIGESTED, JUDGED, LEARNED, digest, digests, truth
from metasched.fitting import fit as fit_runs
from metasched.predictors.analytic.cloud.scaling import Scaling
from metasched.predictors.judging.peers import Amdahl, GaussianProcess, RidgeQuadratic
from metasched.records import InputError, Request, Run
from metasched.signature.rules.application import Application
from metasched.signature.rules.expanding import expanded
from metasched.signature.rules.fitting import fit
from metasched.signature.rules.open_choices import other_applications
from metasched.signature.synthetic.result import Result, by_synthetic
from metasched.signature.times.by_blocks import by_blocks
from metasched.signature.times.hardware import Hardware
from metasched.signature.times.prediction import Prediction, predictions
from metasched.store.files.hardware import read_entry
from metasched.store.files.ti_traces import read_ti_trace
from metasched.tracing.smpi import by_replay
from metasched.tracing.synthetic import run_synthetic

MACHINE = Path(__file__).with_name("machine.toml")
#: What predicts from the small runs' signatures; hosts of the synthetic signature.
ENGINES, SYNTHETIC_HOSTS = ("replay", "synthetic", "blocks"), 32
#: Exponents of n, and of its logarithm, that Extra-P tries for a term.
EXPONENTS = (-1, -0.75, -2 / 3, -0.5, -1 / 3, -0.25, 0, 0.25, 1 / 3, 0.5, 2 / 3, 0.75, 1, 1.5, 2)
LOGARITHMS = (0, 1, 2)

Times = Mapping[int, float]
Expected = dict[int, float]


def extra_p_form(measured: Times, counts: list[int]) -> Expected:
    """Times by the best a + b n^i log2(n)^j, each left out in turn (Extra-P's normal form with one term)."""
    n, times = np.array([*measured], dtype=float), np.array([*measured.values()])

    def expected(known: np.ndarray, of: np.ndarray, at: np.ndarray, i: float, j: int) -> np.ndarray:
        terms = [np.column_stack([np.ones(each.size), each**i * np.log2(each) ** j]) for each in (known, at)]
        weights = 1.0 / of
        found = np.linalg.lstsq(terms[0] * weights[:, None], of * weights, rcond=None)[0]
        return np.asarray(terms[1] @ found)

    def missed(i: float, j: int) -> float:
        left = [np.arange(n.size) != place for place in range(n.size)]
        predicted = [expected(n[some], times[some], n[~some], i, j)[0] for some in left]
        return float(np.abs(np.array(predicted) / times - 1.0).mean())

    pairs = [(i, j) for i, j in itertools.product(EXPONENTS, LOGARITHMS) if (i, j) != (0, 0)]
    i, j = min(pairs, key=lambda pair: missed(*pair))
    return dict(zip(counts, expected(n, times, np.array(counts, dtype=float), i, j).tolist(), strict=True))


def _regression(make: Callable[[list[Run]], Any]) -> Callable[[Times, list[int]], Expected]:
    def predicted(measured: Times, counts: list[int]) -> Expected:
        runs = [Run("a", "c", 1.0, n, 1.0, 1000.0, seconds) for n, seconds in measured.items()]
        model = make(runs)
        return {n: float(model.predict(Request(1.0, n, 1.0, 1000.0)).execution_time) for n in counts}

    return predicted


PEERS: dict[str, Callable[[Times, list[int]], Expected]] = {
    "robust": _regression(fit_runs),
    "ridge": _regression(lambda runs: RidgeQuadratic().fit(runs)),
    "gaussian process": _regression(lambda runs: GaussianProcess().fit(runs)),
    "Extra-P form": extra_p_form,
    "Amdahl": _regression(lambda runs: Amdahl().fit(runs)),
}


#: Seconds that finding the rules of a program may take.
PATIENCE = 60


def learned(name: str, folder: Path, program: Path, counts: Sequence[int] = ()) -> Application:
    """The rules of a program, from its small runs or others; InputError if there are none, or they take too long."""
    traces = [read_ti_trace(run(folder, program, name, n)[2]).steadied() for n in counts or LEARNED[name]]

    def stop(*_: object) -> None:
        raise InputError(f"no rules within {PATIENCE} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(PATIENCE)
    try:
        return fit(traces).application
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def judged_structure(most: int, only: str = "") -> list[dict[str, Any]]:
    """Expanded traces of the judged programs beside those that SMPI records, up to a number of processes."""
    rows = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        program = built(folder)
        for name in LEARNED:
            if only not in name:
                continue
            note = ""
            try:
                application = learned(name, folder, program)
            except InputError as error:
                note = str(error)
            for n in JUDGED[name]:
                if n > most or (n >= DIGESTED and (name, n) not in digests()):
                    continue
                row = {"application": name, "learned": list(LEARNED[name]), "processes": n, "note": note}
                flops: float | None = 0.0
                calls, many = 0.0, 0
                if not note and (known := digests().get((name, n))) is not None:
                    # Of the truth only a digest is kept: all calls are right, or it is not known how many.
                    many, same = digest(expanded(application, n))
                    calls, flops = float((many, same) == known), None
                    row["note"] = "by its digest"
                elif not note:
                    true = read_ti_trace(run(folder, program, name, n)[2])
                    calls, flops, many = right(expanded(application, n), true)
                rows.append(row | {"right": calls, "flops": flops, "calls": many})
    return rows


def judged(only: str = "", replay: bool = True) -> list[dict[str, Any]]:
    """One row for each program and judged count: the truth, and the times that each way expects."""
    known = truth()
    entry = read_entry(str(MACHINE))
    rows = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        program = built(folder)
        for name in LEARNED:
            if only not in name:
                continue
            measured = {n: known[name][n] for n in LEARNED[name]}
            counts = [n for n in JUDGED[name] if n in known[name]]
            by_peers = {peer: predict(measured, counts) for peer, predict in PEERS.items()}
            application, refused = None, ""
            try:
                application = learned(name, folder, program)
            except InputError as error:
                refused = str(error)
            for n in counts:
                row: dict[str, Any] = {"application": name, "processes": n, "measured": known[name][n]}
                row |= {peer: times[n] for peer, times in by_peers.items()}
                row["refused"] = refused
                if application is not None:
                    row |= _answered(application, n, known[name][n], measured, Hardware(entry, entry), folder, replay)
                rows.append(row)
    return rows


def synthetic_result(application: Application, n: int, folder: Path) -> Result:
    """What the synthetic signature measures on a few hosts of the simulated cluster."""
    platform, hosts = write_machine(folder, SYNTHETIC_HOSTS)
    launcher = ["smpirun", "-np", str(SYNTHETIC_HOSTS), "-platform", str(platform), "-hostfile", str(hosts)]
    launcher += ["--cfg=smpi/simulate-computation:no"]
    return run_synthetic(application, n, SYNTHETIC_HOSTS, launcher, folder / "result.json")


def curves(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of each program with the whole curve: knee and fastest count, true and predicted, and what the curve cost.

    The cost is that of the synthetic signatures, with that of the rehearsal, over that of the judged runs (Eq. 7), and
    the same with the three runs that were traced.
    """
    known = truth()
    found = []
    for name in dict.fromkeys(row["application"] for row in rows):
        some = [row for row in rows if row["application"] == name and not row["refused"]]
        if not some:
            continue
        learned_from = [known[name][n] for n in LEARNED[name]]
        counts = [*LEARNED[name], *(row["processes"] for row in some)]
        one: dict[str, Any] = {"application": name, "processes": counts}
        for way in ("measured", *ENGINES):
            if all(way in row for row in some):
                times = np.array([*learned_from, *(row[way] for row in some)])
                scaling = Scaling(np.array(counts), times, counts[0] * float(times[0]))
                one[way] = {"knee": scaling.pays_until, "fastest": scaling.fastest}
        if all("synthetic core-seconds" in row for row in some):
            runs = sum(row["processes"] * row["measured"] for row in some)
            traced = sum(n * seconds for n, seconds in zip(LEARNED[name], learned_from, strict=True))
            own = sum(row["synthetic core-seconds"] for row in some) + some[0]["rehearsal core-seconds"]
            one |= {"cost": own / runs, "cost with traced runs": (own + traced) / (runs + traced)}
        found.append(one)
    return found


def curves_table(found: list[dict[str, Any]]) -> list[str]:
    """The curves as a table in Markdown."""
    ways = [way for way in ("measured", *ENGINES) if all(way in one for one in found)]
    heads = [f"{what}, {way}" for what in ("knee", "fastest") for way in ways]
    lines = ["| program | " + " | ".join([*heads, "cost (Eq. 7)", "with traced runs"]) + " |"]
    lines.append("|" + "---|" * (len(heads) + 3))
    for one in found:
        places = " | ".join(f"{one[way][what]:,}" for what in ("knee", "fastest") for way in ways)
        costs = " | ".join(
            f"{100.0 * one[key]:.2f} %" if key in one else "" for key in ("cost", "cost with traced runs")
        )
        lines.append(f"| {one['application']} | {places} | {costs} |")
    return lines


def _answered(
    application: Application, n: int, truly: float, measured: Times, hardware: Hardware, folder: Path, replay: bool
) -> dict[str, Any]:
    row: dict[str, Any] = {"measured": truly}

    def ask(way: str, answer: Callable[[], Prediction]) -> None:
        begin = time.monotonic()
        try:
            found = answer()
        except InputError as error:
            row["refused"] = str(error)
            return
        row[way], row[f"{way} interval"] = found.execution_time, found.interval
        row[f"{way} seconds"] = time.monotonic() - begin

    others = [by_blocks(each, hardware) for each in other_applications(application, [n])]
    blocks = by_blocks(application, hardware)
    ask("blocks", lambda: predictions(blocks, "blocks", [n], measured, True, others=others)[0])

    def synthetic() -> Prediction:
        rehearsed = max(measured)
        results = {str(each): synthetic_result(application, each, folder) for each in (rehearsed, n)}
        row["synthetic core-seconds"] = results[str(n)].figures["core_seconds"]
        row["rehearsal core-seconds"] = results[str(rehearsed)].figures["core_seconds"]
        known = {rehearsed: measured[rehearsed]}
        return predictions(by_synthetic(application, results), "synthetic", [n], known, False)[0]

    ask("synthetic", synthetic)
    if replay:
        platform, hosts = write_machine(folder, max(n, max(measured)))
        engine = by_replay(application, platform, hosts, False)
        ask("replay", lambda: predictions(engine, "replay", [n], measured, False)[0])
    return row


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Mean and worst errors (%), coverage of intervals, and on how many programs blocks beat each peer."""
    found: dict[str, Any] = {}
    for way in (*ENGINES, *PEERS):
        errors = {row["application"]: [] for row in rows if way in row}
        for row in rows:
            if way in row:
                errors[row["application"]].append(100.0 * abs(row[way] / row["measured"] - 1.0))
        whole = [each for some in errors.values() for each in some]
        if whole:
            found[way] = {"mean": float(np.mean(whole)), "worst": max(whole), "rows": len(whole)}
            found[way]["programs"] = {name: float(np.mean(some)) for name, some in errors.items()}
        held = [
            row[f"{way} interval"][0] <= row["measured"] <= row[f"{way} interval"][1]
            for row in rows
            if f"{way} interval" in row
        ]
        if held:
            found[way]["held"] = sum(held) / len(held)
    for way in ENGINES:
        if way in found:
            own = found[way]["programs"]
            found[way]["below"] = {
                peer: sum(own[name] < found[peer]["programs"].get(name, math.inf) for name in own) for peer in PEERS
            }
    return found


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Errors (%) of each way on each row, and their means, as a table in Markdown."""
    ways = [way for way in (*ENGINES, *PEERS) if any(way in row for row in rows)]
    found = ["| program | processes | measured s | " + " | ".join(ways) + " | |", "|" + "---|" * (len(ways) + 4)]
    for row in rows:
        errors = [f"{100.0 * (row[way] / row['measured'] - 1.0):+.2f} %" if way in row else "" for way in ways]
        head = f"| {row['application']} | {row['processes']:,} | {row['measured']:.6g} | "
        found.append(head + " | ".join(errors) + f" | {row['refused']} |")
    totals = summary(rows)
    for name, key in (("mean", "mean"), ("worst", "worst")):
        found.append(f"| {name} | | | " + " | ".join(f"{totals[way][key]:.2f} %" for way in ways) + " | |")
    for way in ENGINES:
        if way in totals:
            below = ", ".join(f"{peer} {many}" for peer, many in totals[way]["below"].items())
            programs = len(totals[way]["programs"])
            found.append(
                f"{way}: coverage of the intervals {100.0 * totals[way]['held']:.0f} %; below on {programs}: {below}"
            )
    return found
