"""``python -m benchmarks.signature``: the paper's numbers (``tables``), expanded traces (``structure``), ``time``."""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from benchmarks.signature import coverage, design, phase_times, points, real, speed, times, without_rule
from benchmarks.signature.structure import structure
from benchmarks.signature.tables import tables
from benchmarks.signature.truth import record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    answer = verbs.add_parser("tables", help="the paper's numbers, computed again")
    answer.add_argument("--json", action="store_true")
    judged = verbs.add_parser("structure", help="expanded traces beside true ones")
    judged.add_argument("--processes", default="256,1024", help="numbers of processes to expand to")
    judged.add_argument("--only", default="", help="only applications whose name holds this")
    judged.add_argument("--json", action="store_true")
    unseen = verbs.add_parser("judged-structure", help="the same of programs that the rules were not designed on")
    unseen.add_argument("--most", type=int, default=1024, help="largest number of processes")
    unseen.add_argument("--only", default="", help="only programs whose name holds this")
    unseen.add_argument("--json", action="store_true")
    timed = verbs.add_parser("time", help="predicted times beside the truth, and beside regressions of the small runs")
    timed.add_argument("--only", default="", help="only programs whose name holds this")
    timed.add_argument("--no-replay", action="store_true", help="by blocks only: replays take as long as the truth did")
    timed.add_argument("--json", action="store_true")
    cached = verbs.add_parser("points", help="an application that leaves its cache, with measurable points and without")
    cached.add_argument("--json", action="store_true")
    parts = verbs.add_parser("phases", help="the time of each phase beside that of a replay of the same actions")
    parts.add_argument("--only", default="", help="only programs whose name holds this")
    parts.add_argument("--place", type=int, default=0, help="which of the judged numbers of processes: 0 is about 128")
    parts.add_argument("--json", action="store_true")
    programs = verbs.add_parser(
        "real", help="LAMMPS, HPCC and Meep under Open MPI: coverage, and calls right at 32 and 64"
    )
    programs.add_argument("--program", default="", help="only the program of this name")
    programs.add_argument("--runs", default="", help="folder to keep the runs in, and to take them from")
    quick = verbs.add_parser("speed", help="processor seconds of extract, fit, expand and predict")
    quick.add_argument("--only", default="", help="only programs whose name holds this")
    recorded = verbs.add_parser("truth", help="run what is missing in truth.csv under SMPI")
    recorded.add_argument("--most", type=int, default=1024, help="largest number of processes")
    covered = verbs.add_parser("coverage", help="how many intervals by blocks are right, also learned from larger runs")
    covered.add_argument("--most", type=int, default=128, help="largest number of processes that is traced")
    covered.add_argument("--only", default="", help="only programs whose name holds this")
    calibrated = verbs.add_parser("intervals", help="what intervals are calibrated on: programs that are not judged")
    calibrated.add_argument("--synthetic", action="store_true", help="run synthetic signatures, too")
    calibrated.add_argument("--record", action="store_true", help="replay what is missing in design.csv")
    unruled = verbs.add_parser("without-rule", help="how many intervals are right of programs that follow no rule")
    unruled.add_argument("--seed", type=int, default=without_rule.JUDGED, help="that draws the programs")
    arguments = parser.parse_args()
    if arguments.verb == "without-rule":
        print("\n".join(without_rule.table(without_rule.held(without_rule.drawn(arguments.seed)))))
        return
    if arguments.verb == "intervals":
        if arguments.record:
            design.record()
        print("\n".join(design.intervals_table(design.intervals(arguments.synthetic))))
        return
    if arguments.verb == "coverage":
        print("\n".join(coverage.table(coverage.judged(arguments.most, arguments.only))))
        return
    if arguments.verb == "speed":
        print("\n".join(speed.table(speed.measured(arguments.only))))
        return
    if arguments.verb == "truth":
        with tempfile.TemporaryDirectory() as folder:
            record(Path(folder), arguments.most)
        return
    if arguments.verb == "real":
        with tempfile.TemporaryDirectory() as folder:
            for line in real.judged(arguments.program, Path(arguments.runs or folder)):
                print(line, flush=True)
        return
    if arguments.verb == "phases":
        rows = phase_times.judged(arguments.only, arguments.place)
        print(json.dumps(rows, indent=1) if arguments.json else "\n".join(phase_times.table(rows)))
        return
    if arguments.verb == "points":
        rows = points.judged()
        print(json.dumps(rows, indent=1) if arguments.json else "\n".join(points.table(rows)))
        return
    if arguments.verb == "time":
        rows = times.judged(arguments.only, not arguments.no_replay)
        if arguments.json:
            whole = {"rows": rows, "summary": times.summary(rows), "curves": times.curves(rows)}
            print(json.dumps(whole, indent=1))
            return
        print("\n".join([*times.table(rows), "", *times.curves_table(times.curves(rows))]))
        return
    if arguments.verb in ("structure", "judged-structure"):
        if arguments.verb == "structure":
            rows = structure([int(each) for each in arguments.processes.split(",")], arguments.only)
        else:
            rows = times.judged_structure(arguments.most, arguments.only)
        if arguments.json:
            print(json.dumps(rows, indent=1))
            return
        print(f"{'application':24} {'learned':>12} {'processes':>9} {'calls':>9} {'right':>10} {'computed':>10}")
        for row in rows:
            learned = ",".join(map(str, row["learned"]))
            computed = "-" if row["flops"] is None else f"{100 * row['flops']:.3f} %"
            shares = f"{100 * row['right']:8.3f} % {computed:>10}"
            print(f"{row['application']:24} {learned:>12} {row['processes']:9} {row['calls']:9} {shares} {row['note']}")
        return
    document = tables()
    if arguments.json:
        print(json.dumps(document, indent=1))
        return
    for name, each in document.items():
        print(name)
        for key, value in each.items():
            print(f"  {key}: {json.dumps(value)}")


if __name__ == "__main__":
    main()
