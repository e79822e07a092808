"""The pages of the models state the numbers that were chosen for them; a change of one changes the other."""

from __future__ import annotations

import pytest
from stated import page, word

from metasched.predictors import gaussian_process, tournament
from metasched.predictors.energy import metered_runs
from metasched.predictors.formulas import published, sorted_list
from metasched.predictors.memory import calibration
from metasched.predictors.porting import factors
from metasched.predictors.robust import far_off, known_runs, learning, model, shared_scaling


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("models", f"at most {published.LONGEST:,} candidate models"),
        ("models", f"in the last {'tenth' if sorted_list.LAST_SHARE == 0.1 else sorted_list.LAST_SHARE} for "
                   f"{word(sorted_list.PATIENCE)} runs in a row is dropped"),
        ("models", f"After every {published.REVISIT} runs the search is repeated"),
        ("models", f"length scales of {model.LENGTH:g}"),
        ("models", f"More than {'a factor e' if model.BEYOND == 1.0 else model.BEYOND} outside the range of the runs"),
        ("models", f"grows by {model.OUTSIDE} for every factor e in N or P, or by {model.OUTSIDE_UNDIVIDED} if no"),
        ("models", f"grows by another {model.SPREADING_OUTSIDE} for every factor e"),
        ("models", f"its prior median is {model.SCALES.medians.alone}"),
        ("models", f"If no load varied, the median is {model.ALONE_UNVARIED:g}"),
        ("models", f"Student t distribution with {word(gaussian_process.DEGREES)} degrees of freedom"),
        ("models", f"times {model.TAILS} for the tails"),
        ("models", f"at most one in {word(far_off.SET_ASIDE)}, the one that the others predict worst"),
        ("models", f"if its weight is below {far_off.FAR_OFF:g} of that of the median run"),
        ("models", f"Where runs differ in settings it is {far_off.FAR_OFF_IF_UNLIKE:g}"),
        ("models", f"estimated in turn, {word(model.ROUNDS)} times"),
        ("models", f"from {word(learning.AT_ONCE)} runs on, the scales only after every "
                   f"{'tenth' if learning.REVISIT == 10 else learning.REVISIT}"),
        ("models", f"At most {gaussian_process.NEWEST + gaussian_process.COVERING} runs are used"),
        ("models", f"of the last n scores, at most {calibration.WINDOW}"),
        ("models", f"the window of runs (at most {tournament.CAPACITY})"),
        ("porting", f"between {min(shared_scaling.TRIED)} and {max(shared_scaling.TRIED)} for a factor e in P"),
        ("porting", f"Fewer than {word(model.FEWEST_WEIGHED)} own runs"),
        ("porting", f"full weight unless it would be below {far_off.FAR_OFF_IF_UNLIKE:g}"),
        ("porting", f"At most {known_runs.BORROWED} runs of the others are used"),
        ("porting", f"at least {factors.DEDICATED} of each processor was available"),
        ("energy", f"more than {metered_runs.MISREAD:g} times off that of the median run"),
        ("signature", f"From {tournament.WINDOW} runs on the signature competes with the model"),
        ("signature", f"over the last {tournament.WINDOW} answers"),
        ("signature", f"the last {'quarter' if tournament._TRIAL == 0.25 else tournament._TRIAL} of the runs"),
    ],
)  # fmt: skip
def test_the_pages_of_the_models_state_it(name: str, said: str) -> None:
    assert said in page(name)
