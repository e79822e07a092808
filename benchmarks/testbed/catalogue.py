"""The campaigns behind the paper's tables: which application ran on which cluster under which loading.

Each was made twice, with two seeds. Models, their constants and their priors were and are chosen on the campaigns of
the first seed, the design; those of the second seed chose nothing, and figures that claim accuracy are judged on them.
Campaigns of a third seed run other programs; how far intervals grow beyond the learned P was chosen on them and, on
these and the design, how wide intervals are with few runs. Those of a fourth run a program that none of these has, and
chose nothing.

Rows stand in the order of the paper. Table 6 ports models between platforms, so it also needs campaigns on the
dedicated cluster and, for every application and platform, idle runs on one and on two processors (section 3.5).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.testbed import campaign as campaigns
from benchmarks.testbed import coscheduled, plan
from benchmarks.testbed.applications import APPLICATIONS, MORE_APPLICATIONS, ApplicationModel
from benchmarks.testbed.clusters import CLUSTERS, MULTICORE, ClusterModel
from benchmarks.testbed.loading import LOADINGS


@dataclass(frozen=True)
class Collection:
    """Campaigns made with one seed.

    Parameters
    ----------
    folder : where they are committed.
    seed : decides everything that is drawn.
    predictions : runs after the training ones of each campaign.
    """

    folder: Path
    seed: int
    predictions: int = plan.PREDICTIONS


_CAMPAIGNS = Path(__file__).resolve().parent / "campaigns"
#: What models may be chosen on, and what only judges them.
DESIGN = Collection(_CAMPAIGNS, 1)
JUDGED = Collection(_CAMPAIGNS / "judged", 4159, predictions=60)
OTHER = Collection(_CAMPAIGNS / "other-programs", 8111, predictions=60)
NEW = Collection(_CAMPAIGNS / "judged" / "new-programs", 5227, predictions=60)

TABLE_3 = [
    ("eigen", "intel", "random"),
    ("eigen", "intel", "grid"),
    ("fft", "intel", "random"),
    ("cg", "intel", "random"),
    ("md", "intel", "random"),
    ("md", "intel", "grid"),
    ("poisson", "intel", "random"),
    ("is", "intel", "random"),
    ("is", "intel", "grid"),
    ("ssor", "intel", "random"),
    ("ssor", "intel", "grid"),
]
TABLE_4 = [
    ("eigen", "amd", "random"),
    ("eigen", "amd", "grid"),
    ("md", "amd", "random"),
    ("md", "amd", "grid"),
    ("poisson", "amd", "grid"),
    ("ssor", "amd", "grid"),
    ("is", "amd", "grid"),
    ("poisson", "woodcrest", "random"),
    ("is", "woodcrest", "random"),
]
#: Table 6: application, reference cluster and loading, target cluster and loading.
TABLE_6 = [
    ("eigen", ("intel", "random"), ("ibm", "dedicated")),
    ("eigen", ("amd", "grid"), ("ibm", "dedicated")),
    ("eigen", ("intel", "random"), ("amd", "grid")),
    ("md", ("intel", "grid"), ("ibm", "dedicated")),
    ("md", ("amd", "grid"), ("ibm", "dedicated")),
    ("md", ("intel", "grid"), ("amd", "random")),
    ("md", ("amd", "grid"), ("intel", "grid")),
    ("ssor", ("intel", "grid"), ("amd", "grid")),
    ("ssor", ("amd", "grid"), ("intel", "grid")),
    ("is", ("intel", "random"), ("ibm", "dedicated")),
    ("is", ("intel", "random"), ("amd", "grid")),
    ("is", ("amd", "grid"), ("intel", "grid")),
]
DEDICATED = [(application, "ibm", "dedicated") for application in ("eigen", "md", "is", "ssor")]
#: Section 5: phases of different complexity, the second one unbalanced.
PHASES = [("twophase", "intel", "random")]

#: Programs that the tables do not have: of the design, and those that only judge.
OTHER_PROGRAMS = [
    ("apsp", "intel", "random"),
    ("apsp", "amd", "grid"),
    ("lu", "intel", "grid"),
    ("lu", "woodcrest", "random"),
    ("mg", "amd", "random"),
    ("mg", "intel", "grid"),
    ("sweep", "intel", "random"),
    ("sweep", "amd", "grid"),
]
NEW_PROGRAMS = [
    ("summa", "intel", "random"),
    ("summa", "amd", "grid"),
    ("summa", "woodcrest", "random"),
]

#: Layouts drawn at random on nodes of 4 and of 16 cores, whose processes share memory and link.
LAYOUTS = [("is", "quad", "grid"), ("fft", "wide", "random"), ("ssor", "quad", "random")]

#: Two jobs at a time, where links are fast, where they are slow, and under the load of others.
COSCHEDULED = [("amd", "dedicated"), ("woodcrest", "dedicated"), ("amd", "random")]

PORTING = {1: 5, 2: 15}  # idle runs for section 3.5 on each number of processors


def scenario(application: str, cluster: str, loading: str, collection: Collection = DESIGN) -> campaigns.Scenario:
    """The scenario of one row.

    Examples
    --------
    >>> scenario("cg", "intel", "random").name
    'cg-intel-random'
    """
    return campaigns.Scenario(
        (APPLICATIONS | MORE_APPLICATIONS)[application],
        CLUSTERS[cluster],
        loading,
        LOADINGS[loading],
        collection.seed,
        collection.predictions,
    )


def scenarios(collection: Collection = DESIGN) -> list[campaigns.Scenario]:
    """Every campaign of a collection, each once; those with phases are part of the design only."""
    if collection in (OTHER, NEW):
        return [scenario(*row, collection) for row in (OTHER_PROGRAMS if collection == OTHER else NEW_PROGRAMS)]
    phases = PHASES if collection == DESIGN else []
    return [scenario(*row, collection) for row in dict.fromkeys([*TABLE_3, *TABLE_4, *DEDICATED, *phases])]


def laid_out(collection: Collection = DESIGN) -> list[campaigns.Scenario]:
    """Every campaign whose layouts are drawn."""
    return [
        campaigns.Scenario(
            APPLICATIONS[application],
            MULTICORE[cluster],
            loading,
            LOADINGS[loading],
            collection.seed,
            JUDGED.predictions,
        )
        for application, cluster, loading in LAYOUTS
    ]


def layouts_drawn(application: ApplicationModel, cluster: ClusterModel, rng: np.random.Generator) -> list[plan.Request]:
    """The runs of such a campaign."""
    return plan.laid_out_requests(application, cluster, rng, JUDGED.predictions)


def pairings() -> list[coscheduled.Scenario]:
    """Every co-scheduled campaign of the catalogue, all of them of the design."""
    return [
        coscheduled.Scenario(CLUSTERS[cluster], loading, LOADINGS[loading], DESIGN.seed)
        for cluster, loading in COSCHEDULED
    ]


def porting_requests(
    application: ApplicationModel, cluster: ClusterModel, rng: np.random.Generator
) -> list[plan.Request]:
    """Runs on one and two processors, sizes evenly over the training range in the logarithm."""
    return [
        plan.Request("train", round(float(size)), plan.place(cluster, count, rng))
        for count, times in PORTING.items()
        for size in np.geomspace(application.smallest, application.largest, times)
    ]


def portings(collection: Collection = DESIGN) -> list[campaigns.Scenario]:
    """For every application of the paper and cluster, the dedicated runs that porting needs."""
    return [
        scenario(application, cluster, "dedicated", collection)
        for application in APPLICATIONS
        if application != "twophase"
        for cluster in CLUSTERS
    ]
