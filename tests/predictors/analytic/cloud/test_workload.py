"""Laws of workloads by the profiles that they were made of, and the profiles that can be."""

from __future__ import annotations

import math

import pytest

from metasched.predictors.analytic.cloud.locality import Locality, neighbours
from metasched.predictors.analytic.cloud.profile import Profile
from metasched.predictors.analytic.cloud.workload import GridLaw, Law, Workload, fit_law
from metasched.records import InputError


def test_a_law_that_is_no_longer_positive_far_away_is_not_taken() -> None:
    falling = [100.0, 90.0, 70.0]
    assert fit_law([2, 4, 8], falling, ["n"]) == Law("n", 0.0, pytest.approx((100.0 * 90.0 * 70.0) ** (1 / 3)))
    assert fit_law([2, 4, 8], falling, ["n", "1/n"]).form == "1/n"
    constant = fit_law([2, 4, 8], [7.0, 7.0, 7.0], ["ln n", "1/n"])
    assert (constant.form, constant.slope, str(constant)) == ("ln n", 0.0, "7")
    # Of equals the first.
    assert fit_law([2, 4, 8], [7.0, 7.0, 7.0], ["1/n", "ln n"]).form == "1/n"
    assert str(Law("n", 2.0, 0.0)) == "2 n"
    assert str(Law("n", 2.0, -3.0)) == "2 n -3"


def profile(n: int, **more: float | int | None) -> Profile:
    own = {
        "sends": 40.0 * math.log(n) + 8.0,
        "message_size": 8000.0 / n + 16.0,
        "waiting_time": 1.0,
        "execution_time": 4.0,
    }
    return Profile(n, **(own | more))  # type: ignore[arg-type]


def test_the_laws_of_a_workload_are_those_of_its_profiles() -> None:
    profiles = [profile(n, exchanges=2.0 * n, waiting_time=share * 4.0) for n, share in ((2, 0.1), (4, 0.2), (16, 0.6))]
    for found in (Workload.of(profiles), Workload.published(profiles)):
        assert (found.message_size.form, found.message_size.slope) == ("1/n", pytest.approx(8000.0))
        assert isinstance(found.sends, Law)
        assert (found.sends.form, found.sends.slope, found.sends.constant) == (
            "ln n", pytest.approx(40.0), pytest.approx(8.0),
        )  # fmt: skip
        assert found.waiting_share == pytest.approx(0.3)
        assert found.locality == Locality()
    assert Workload.of(profiles).exchanges([10]).tolist() == pytest.approx([20.0])
    assert Workload.published(profiles).exchanges == Workload.published(profiles).sends
    assert (
        Workload.of([profile(n) for n in (2, 4, 16)]).exchanges == Workload.of([profile(n) for n in (2, 4, 16)]).sends
    )


def test_profiles_of_a_grid_send_the_same_to_each_neighbour_and_others_tell_how_near_partners_are() -> None:
    grid = [profile(n, dimensions=2, sends=15.0 * neighbours(n, 2)) for n in (2, 8, 64)]
    found = Workload.of(grid)
    assert isinstance(found.sends, GridLaw)
    assert found.sends([2, 4, 64]).tolist() == pytest.approx([30.0, 60.0, 60.0])
    assert str(found.sends) == "(15) for each neighbour in 2 dimensions"
    assert found.locality.dimensions == 2
    near = [profile(2, mean_distance=1.0), profile(8, mean_distance=1.0), profile(16, mean_distance=8.0)]
    assert Workload.of(near).locality == Locality((20.0 + 0.0) / 2.0)
    with pytest.raises(InputError, match=r"^profiles that differ in dimensions, expected the same in all$"):
        Workload.of([*grid, profile(32)])


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ((2, 4), "2 profiles, expected at least 3"),
        ((2, 4, 4), "profiles with 2 different numbers of processes, expected at least 3"),
    ],
)
def test_fewer_than_three_numbers_of_processes_fit_no_law(counts: tuple[int, ...], said: str) -> None:
    for fit in (Workload.of, Workload.published):
        with pytest.raises(InputError, match=f"^{said}$"):
            fit([profile(n) for n in counts])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"sends": 1e-100}, ""), ({"sends": 1e100}, ""), ({"sends": 9e-101}, "sends is"),
        ({"sends": 2e100}, "sends is"), ({"message_size": 0.0}, "message_size is"),
        ({"exchanges": 0.0}, "exchanges is"),
        ({"exchanges": None}, ""),
        ({"waiting_time": 0.0}, ""), ({"waiting_time": 3.999}, ""), ({"waiting_time": 4.0}, "waiting_time is"),
        ({"waiting_time": -1e-9}, "waiting_time is"), ({"mean_distance": 1.0}, ""), ({"mean_distance": 4.0}, ""),
        ({"mean_distance": 0.99}, "mean_distance is 0.99, expected a number from 1 to 4"),
        ({"mean_distance": 4.01}, "mean_distance is"), ({"dimensions": 1}, ""), ({"dimensions": 6}, ""),
        ({"dimensions": 0}, "dimensions is"), ({"dimensions": 7}, "dimensions is"),
    ],
)  # fmt: skip
def test_a_profile_is_what_can_be(change: dict[str, float | None], said: str) -> None:
    if said:
        with pytest.raises(InputError, match=f"^{said}"):
            profile(8, **change)
    else:
        assert profile(8, **change).computation_time == 4.0 - (change.get("waiting_time", 1.0) or 0.0)
