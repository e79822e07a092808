"""The page of signatures states how far their times may err; a change of one changes the other."""

from __future__ import annotations

import pytest
from stated import page

from metasched.cli.signatures import synthetic
from metasched.signature.times import clocks
from metasched.signature.times.prediction import CORRECTION, DOUBT, STRANGE, UNKNOWN

BLOCKS, SYNTHETIC = DOUBT["blocks"], DOUBT["synthetic"]


def percent(*parts: float) -> str:
    return " and ".join(f"{100 * part:g}" for part in parts) + " %"


@pytest.mark.parametrize(
    "said",
    [
        f"by one factor between {CORRECTION[0]} and {CORRECTION[1]:g}",
        f"expected to miss {percent(BLOCKS.whole)} of the whole time, and {percent(BLOCKS.messages)} of the time of "
        f"messages by blocks, {percent(SYNTHETIC.messages)} of what is spent in calls by synthetic signatures",
        f"by blocks {BLOCKS.grown} (1 + d)^{BLOCKS.power} times where that is more than 1",
        f"more than {'twice' if STRANGE == 2 else STRANGE} as long as predicted, or less than half as long",
        f"by blocks {percent(UNKNOWN['blocks'].whole)} and {percent(UNKNOWN['blocks'].messages)} of the time of "
        f"messages, by replays {percent(UNKNOWN['replay'].whole)}, "
        f"by synthetic signatures {percent(UNKNOWN['synthetic'].whole, UNKNOWN['synthetic'].messages)}",
        f"a blocking send of less than {clocks.RENDEZVOUS / 1024:g} KiB does not wait",
        f"Above {percent(synthetic.CHEAP)} a warning says so",
    ],
)
def test_the_page_of_signatures_states_it(said: str) -> None:
    assert said in page("signature")
