"""``python -m benchmarks.signature``: the numbers of the paper (``tables``), expanded traces (``structure``)."""

from __future__ import annotations

import argparse
import json

from benchmarks.signature.structure import structure
from benchmarks.signature.tables import tables


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    answer = verbs.add_parser("tables", help="the paper's numbers, computed anew")
    answer.add_argument("--json", action="store_true")
    judged = verbs.add_parser("structure", help="expanded traces beside true ones")
    judged.add_argument("--processes", default="256,1024", help="numbers of processes to expand to")
    judged.add_argument("--only", default="", help="only applications whose name holds this")
    judged.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if arguments.verb == "structure":
        rows = structure([int(each) for each in arguments.processes.split(",")], arguments.only)
        if arguments.json:
            print(json.dumps(rows, indent=1))
            return
        print(f"{'application':24} {'learned':>12} {'processes':>9} {'calls':>9} {'right':>10} {'computed':>10}")
        for row in rows:
            learned = ",".join(map(str, row["learned"]))
            shares = f"{100 * row['right']:8.3f} % {100 * row['flops']:8.3f} %"
            print(f"{row['application']:24} {learned:>12} {row['processes']:9} {row['calls']:9} {shares} {row['told']}")
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
