"""``python -m benchmarks.signature tables [--json]``: the paper's numbers, computed anew."""

from __future__ import annotations

import argparse
import json

from benchmarks.signature.tables import tables


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    told = verbs.add_parser("tables", help="the paper's numbers, computed anew")
    told.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
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
