"""``python -m benchmarks.tables`` (``make tables``): judge every row and write docs/results.md and its pictures."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track

from benchmarks.porting import TABLE_6
from benchmarks.tables import extra_p, table6
from benchmarks.tables.judged import judge
from benchmarks.tables.report import page, pictures
from benchmarks.testbed.catalogue import JUDGED, TABLE_3, TABLE_4

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--campaigns", type=Path, default=JUDGED.folder, help="folder with the campaigns")
    parser.add_argument("--output", type=Path, default=ROOT / "docs", help="folder for results.md and its pictures")
    parser.add_argument("--only", default="", help="only rows and ports whose application holds this")
    parser.add_argument("--workers", type=int, default=multiprocessing.cpu_count())
    arguments = parser.parse_args()
    begin = time.monotonic()
    asked = [row for row in [*TABLE_3, *TABLE_4] if arguments.only in row[0]]
    rows = [row for row in asked if (arguments.campaigns / "-".join(row)).is_dir()]
    arguments.output.mkdir(parents=True, exist_ok=True)
    missing = ["-".join(row) for row in asked if row not in rows]
    ported_pairs = [
        pair
        for pair in TABLE_6
        if arguments.only in pair[0]
        and all((arguments.campaigns / "-".join((pair[0], *side))).is_dir() for side in (pair[1:3], pair[3:5]))
        and all((arguments.campaigns / "porting" / f"{pair[0]}-{cluster}.csv").is_file() for cluster in pair[1:4:2])
    ]
    with ProcessPoolExecutor(arguments.workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        waiting = [pool.submit(judge, row, arguments.campaigns / "-".join(row)) for row in rows]
        pairs = [pool.submit(table6.judge, pair, arguments.campaigns) for pair in ported_pairs]
        others = [
            pool.submit(extra_p.judge, arguments.campaigns / "-".join(row)) for row in rows if extra_p.installed()
        ]
        console = Console(stderr=True)
        everything: list[Future[Any]] = [*waiting, *pairs, *others]
        for future in track(everything, console=console, disable=not console.is_terminal):
            future.result()
    judged = [future.result() for future in waiting]
    seconds = time.monotonic() - begin
    text = page(
        judged,
        missing,
        [future.result() for future in pairs],
        dict(zip(rows, (future.result() for future in others), strict=False)),
        seed=json.loads((arguments.campaigns / "-".join(rows[0]) / "campaign.json").read_text())["seed"],
        took=f"All of this took {seconds / 60.0:.1f} minutes with {arguments.workers} workers.",
    )
    (arguments.output / "results.md").write_text(text, encoding="utf-8")
    pictures(judged, arguments.output / "pictures")
    print(text)
    print(json.dumps({"rows": len(judged), "missing": missing, "ports": len(pairs), "seconds": round(seconds)}))


if __name__ == "__main__":
    main()
