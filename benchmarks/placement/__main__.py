"""Runs all measurements of placement: ``python -m benchmarks.placement [regret|speed|herd|completion|law ...]``."""

from __future__ import annotations

import sys
import warnings

from rich.console import Console
from sklearn.exceptions import ConvergenceWarning

from benchmarks.placement import completion, herd, law, regret, speed

PARTS = {"regret": regret.main, "speed": speed.main, "herd": herd.main, "completion": completion.main, "law": law.main}


def main(names: list[str]) -> None:
    """Run the parts named, or all of them."""
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        sys.exit(f"no part {unknown[0]}, expected some of {', '.join(PARTS)}")
    warnings.simplefilter("ignore", ConvergenceWarning)
    for name in names or PARTS:
        PARTS[name](Console(width=120))


if __name__ == "__main__":
    main(sys.argv[1:])
