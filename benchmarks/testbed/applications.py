"""The applications that run on the testbed, and the problem sizes each is trained and asked for.

The programs themselves are in ``apps/``, one C file each, named as here. Training sizes keep one-processor runs between
some ten seconds and a few minutes; predictions go from two thirds of the smallest to twice the largest.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ApplicationModel:
    """An application and its range of problem sizes.

    Parameters
    ----------
    name : its program is ``apps/<name>.c``.
    problem : what N counts.
    smallest, largest : ends of the training range of N.
    """

    name: str
    problem: str
    smallest: int
    largest: int


APPLICATIONS = {
    application.name: application
    for application in (
        ApplicationModel("eigen", "order of the matrix", 1_000, 2_400),
        ApplicationModel("fft", "points", 3_000_000, 12_000_000),
        ApplicationModel("cg", "unknowns", 4_000, 9_000),
        ApplicationModel("md", "particles", 4_000, 9_000),
        ApplicationModel("poisson", "points along a side", 2_500, 6_000),
        ApplicationModel("is", "keys", 8_000_000, 30_000_000),
        ApplicationModel("ssor", "points along a side", 3_000, 7_000),
        ApplicationModel("twophase", "items", 15_000, 45_000),
    )
}
#: Programs of the campaigns that only :data:`benchmarks.testbed.catalogue.OTHER` and ``NEW`` hold.
MORE_APPLICATIONS = {
    application.name: application
    for application in (
        ApplicationModel("apsp", "vertices", 1_500, 3_500),
        ApplicationModel("lu", "order of the matrix", 2_500, 5_500),
        ApplicationModel("mg", "points along a side", 150, 340),
        ApplicationModel("sweep", "points along a side", 3_000, 7_000),
        ApplicationModel("summa", "order of the matrices", 1_800, 4_000),
    )
}
