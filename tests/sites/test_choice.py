"""How sites rank: completion with the data brought, jobs not visible yet, trust, and turns among equal ones."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasched.sites.choice import Known, ranked_sites
from metasched.sites.data import transfers
from metasched.sites.links import SiteLink
from metasched.sites.offer import Offer
from metasched.sites.pending import RESERVED, UNSEEN, PendingJob, pending_wait
from metasched.sites.trust import LARGEST, PRIOR, trust
from tests.sites.answers import offer

SECONDS = st.floats(0.0, 1e6)
OFFERS = st.builds(
    lambda site, wait, time, processors, free, capacity: offer(
        site, wait, time, processors=processors, free=min(free, capacity), capacity=max(capacity, processors)
    ),
    st.sampled_from(["east", "west", "north"]), SECONDS, st.floats(1.0, 1e6), st.integers(1, 64), st.integers(0, 64),
    st.integers(1, 64),
)  # fmt: skip


def sites(*offers: Offer, data: float | None = 0.0, bandwidths: dict[str, float] | None = None, **known: Known) -> list:
    names = [each.site for each in offers]
    return ranked_sites(
        offers, known, transfers(names, data, {name: SiteLink(width) for name, width in (bandwidths or {}).items()})
    )


def names(found: list) -> list[str]:
    return [each.offer.site for each in found]


def test_completion_is_wait_run_and_bringing_the_data() -> None:
    widths = {"east": 800.0, "west": 8000.0}
    found = sites(offer("east", 0.0, 100.0), offer("west", 60.0, 100.0), data=10.0, bandwidths=widths)
    assert [(each.offer.site, each.completion) for each in found] == [("west", 170.0), ("east", 200.0)]
    assert "10.0 s to transfer 10 GB at 8000 Mbit/s" in found[0].reason


def test_of_a_site_its_best_offer_counts() -> None:
    assert [each.completion for each in sites(offer("east", 50.0), offer("east", 0.0, 120.0))] == [120.0]


def test_an_unknown_size_or_bandwidth_is_said() -> None:
    unknown = sites(offer("east"), data=None)[0]
    assert (unknown.transfer.seconds, unknown.completion) == (None, 100.0)
    assert "size of the data is unknown" in unknown.reason
    found = sites(offer("east"), offer("west"), data=1.0, bandwidths={"west": 100.0})
    assert [(each.transfer.seconds, each.transfer.counted) for each in found] == [(None, 80.0), (80.0, 80.0)]
    assert "the lowest of the others is assumed" in found[0].reason
    assert "no bandwidth is known" in sites(offer("east"), data=1.0)[0].reason


def test_jobs_sent_just_now_count_until_the_site_shows_them() -> None:
    busy = Known(sent=(PendingJob("c", 16, 500.0, 0.0, sent=3.0, submitted=3.0),))
    assert names(sites(offer("east", time=100.0), offer("west", time=150.0), east=busy)) == ["west", "east"]
    shown = Known(sent=(PendingJob("c", 16, 500.0, 0.0, sent=9.0, submitted=9.0),))
    assert names(sites(offer("east", time=100.0), offer("west", time=150.0), east=shown)) == ["east", "west"]


def test_hundred_jobs_at_once_are_spread_over_equal_sites() -> None:
    sent: dict[str, list[PendingJob]] = {"east": [], "west": [], "north": []}
    last: dict[str, float] = {}
    for number in range(99):
        known = {
            name: Known(sent=tuple(jobs), last=number - last[name] if name in last else None)
            for name, jobs in sent.items()
        }
        chosen = sites(*(offer(name, free=16) for name in sent), **known)[0].offer.site
        sent[chosen].append(PendingJob("c", 4, 100.0, 0.0, sent=0.0))
        last[chosen] = number
    assert [len(jobs) for jobs in sent.values()] == [33, 33, 33]


def test_equal_sites_take_turns() -> None:
    equal = offer("east", time=100.0), offer("west", time=101.0)
    assert names(sites(*equal)) == ["east", "west"]
    assert names(sites(*equal, east=Known(last=5.0))) == ["west", "east"]
    assert names(sites(*equal, east=Known(last=50.0), west=Known(last=5.0))) == ["east", "west"]
    assert names(sites(offer("east"), offer("west", time=110.0), east=Known(last=5.0))) == ["east", "west"]


def test_who_misses_is_believed_less_and_it_is_said() -> None:
    liar = Known(trust=trust(10 * [20.0]))
    found = sites(offer("east", time=10.0), offer("west", time=60.0), east=liar)
    assert names(found) == ["west", "east"]
    assert "by its last 10 jobs, it takes" in found[1].reason
    assert found[1].interval[1] > 2.0 * found[1].offer.high


def test_who_misses_at_random_is_believed_less_than_who_is_right() -> None:
    wild, exact = trust(10 * [0.2, 5.0]), trust(20 * [1.0])
    assert exact.multiplier == pytest.approx(1.0)
    assert wild.multiplier > 1.5
    assert wild.high / wild.low > exact.high / exact.low


@given(st.lists(st.floats(min_value=0.0, allow_nan=False), max_size=150))
def test_trust_is_bounded_whatever_jobs_took(ratios: list[float]) -> None:
    found = trust(ratios)
    assert 1.0 / LARGEST <= found.multiplier <= LARGEST * (1 + 1e-9)
    assert 0.0 < found.low <= found.high < math.inf


@given(st.floats(1.1, 1e5), st.integers(1, 60))
def test_trust_approaches_the_miss_and_never_passes_it(ratio: float, count: int) -> None:
    fewer, more = trust(count * [ratio]).multiplier, trust((count + 1) * [ratio]).multiplier
    assert 1.0 < fewer <= more * (1 + 1e-9) <= ratio * (1 + 1e-6)


@given(st.lists(OFFERS, min_size=1, max_size=8), st.floats(1.01, 100.0))
def test_the_order_follows_completion_but_for_ties_and_does_not_depend_on_the_unit(
    offers: list[Offer], factor: float
) -> None:
    found = sites(*offers)
    assert len(found) == len({each.site for each in offers})
    soonest = min(each.completion for each in found)
    assert found[0].completion <= 1.02 * soonest * (1 + 1e-12)
    rest = [each.completion for each in found if each.completion > 1.02 * soonest]
    assert rest == sorted(rest)


@given(OFFERS, st.lists(st.integers(1, 64), max_size=8), st.integers(1, 64))
def test_more_jobs_sent_never_shorten_the_wait(found: Offer, widths: list[int], more: int) -> None:
    sent = [PendingJob(found.cluster, width, 100.0, 0.0, sent=0.0) for width in widths]
    fewer = pending_wait(found, sent)
    assert (
        0.0 <= fewer <= pending_wait(found, [*sent, PendingJob(found.cluster, more, 100.0, 0.0, sent=0.0)]) < math.inf
    )


def test_a_job_never_submitted_and_one_at_a_site_without_ages_stop_counting() -> None:
    assert PendingJob("c", 1, 1.0, 60.0, sent=RESERVED + 59.0).hidden(0.0)
    assert not PendingJob("c", 1, 1.0, 60.0, sent=RESERVED + 61.0).hidden(0.0)
    assert PendingJob("c", 1, 1.0, 0.0, sent=1.0, submitted=UNSEEN - 1.0).hidden(None)
    assert not PendingJob("c", 1, 1.0, 0.0, sent=1.0, submitted=UNSEEN + 1.0).hidden(None)


@pytest.mark.parametrize(
    ("job", "age", "hidden"),
    [
        ({"sent": 120.0}, 5.0, True), ({"sent": 120.5}, 5.0, False),
        ({"sent": 180.0, "transfer": 60.0}, 5.0, True), ({"sent": 180.5, "transfer": 60.0}, 5.0, False),
        ({"sent": 900.0, "submitted": 300.0}, None, True), ({"sent": 900.0, "submitted": 300.5}, None, False),
        ({"sent": 900.0, "submitted": 6.0}, 5.0, True), ({"sent": 900.0, "submitted": 6.5}, 5.0, False),
    ],
)  # fmt: skip
def test_until_when_an_answer_does_not_show_a_job(job: dict[str, float], age: float | None, hidden: bool) -> None:
    assert PendingJob("c", 1, 1.0, **({"transfer": 0.0} | job)).hidden(age) is hidden  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("jobs", "fields", "wait"),
    [
        ([("c", 4, 100.0)], {}, 0.0),
        ([("c", 4, 100.0), ("c", 4, 60.0)], {}, 60.0),
        ([("c", 4, 100.0), ("d", 4, 60.0)], {}, 0.0),
        ([("c", 99, 100.0)], {"free": 16}, 100.0),  # no job takes more than there is
        ([("c", 4, 0.0)] * 2, {}, 1.0),
        ([("c", 4, 160.0), ("c", 8, 40.0)], {"wait": 10.0}, (4 * 160.0 + 8 * 40.0) / 16),
        ([("c", 99, 160.0)], {"wait": 10.0}, 160.0),
    ],
)
def test_jobs_that_a_site_does_not_show_yet_take_their_turn(
    jobs: list[tuple[str, int, float]], fields: dict[str, Any], wait: float
) -> None:
    sent = [PendingJob(*each, 0.0, sent=0.0) for each in jobs]
    assert pending_wait(offer("east", **fields), sent) == pytest.approx(wait)


def test_the_prior_is_worth_its_number_of_outcomes() -> None:
    assert math.log(trust([math.e]).multiplier) == pytest.approx(1.0 / (PRIOR + 1.0), rel=0.1)


@pytest.mark.parametrize("ratios", [[], [2.0] * 40, [1e6, 1e-6] * 20, [1e6, *[1.0] * 5], [0.5, 3.0, 1e4] * 9])
@pytest.mark.parametrize("fields", [{}, {"low": 150.0, "high": 160.0}, {"low": 1.0, "high": 2.0}])
def test_a_completion_is_between_the_ends_of_its_interval(ratios: list[float], fields: dict[str, float]) -> None:
    (place,) = sites(replace(offer("east", 0.0, 100.0), **fields), east=Known(trust(ratios)))
    low, high = place.interval
    assert low <= place.completion <= high
