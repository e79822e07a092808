"""The pages of the store and of privacy state for how long things are kept; a change of one changes the other."""

from __future__ import annotations

import pytest
from stated import page, word

from metasched.service import simulations
from metasched.service.configuration import Keep
from metasched.service.learning import accounting
from metasched.sites import sent_jobs
from metasched.store.database import load_blocks, model_records, retention

keep = Keep()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("store", f"the newest {model_records.HISTORY} versions are kept"),
        ("privacy", f"| the newest {model_records.HISTORY} versions; files until they are deleted |"),
        ("privacy", f"| `keep.placements`, {keep.placements:g} days |"),
        ("privacy", f"| `keep.past_jobs`, {keep.past_jobs:g} days |"),
        ("privacy", f"| `keep.loads`, {keep.loads:g} days; means over five minutes "
                    f"{word(1 + retention.MEANS_KEEP)} times as long, hourly means without limit |"),
        ("privacy", f"| until that is known, {accounting.REACH / 86_400:g} days at most |"),
        ("privacy", f"| the last {sent_jobs.MOST:,} |"),
        ("privacy", f"| the last {simulations.KEPT} of all users, until the daemon ends |"),
        ("sensors", f"Five-minute means are stored {word(1 + retention.MEANS_KEEP)} times as long as samples"),
        ("sensors", f"Blocks are stored for {word(load_blocks.KEPT / 3600)} hours"),
    ],
)  # fmt: skip
def test_the_pages_of_the_store_state_it(name: str, said: str) -> None:
    assert said in page(name)
