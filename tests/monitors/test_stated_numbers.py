"""The page of the sensors states the numbers by which they work; a change of one changes the other."""

from __future__ import annotations

import pytest
from stated import page, word

from monitors.agent import agent, sender, server, spool
from monitors.agent.settings import Settings
from monitors.few_callers import MOST, MOST_OF_ONE
from monitors.sensors import cpu, cpu_views, schedule
from monitors.sensors.network import corrected, probe
from monitors.sources import bounded_json, screening


@pytest.mark.parametrize(
    "said",
    [
        f"m^2/(m^2 + {cpu._NOISE}^2) of m",
        f"({schedule.ProbeSchedule().shortest:g} s to {schedule.ProbeSchedule().longest / 60:g} min)",
        f"halves if they find a change of {schedule._LARGE} or more, and doubles if it is {schedule._SMALL} or less",
        f"averaged with {1000 * cpu_views._LITTLE:g} ms of another view",
        f"starts at {probe.SMALLEST / 1024:g} KB",
        f"until it takes at least {probe.TOO_SHORT:g} s and eight round trips",
        f"should take {'a quarter' if probe.AIM == 0.25 else probe.AIM} of a second",
        f"one round in each period (`probe_period`, {Settings.model_validate({}).probe_period:g} s)",
        f"loopback interface it is {corrected.LOOPBACK_SPEED:,.0f} Mbit/s, "
        f"for a virtual interface without a reported speed {corrected.UNKNOWN_SPEED:,.0f} Mbit/s",
        f"a body may have {bounded_json.LARGEST / 2**20:g} MB",
        f"(the newest {word(spool.KEPT_ASIDE)} are kept)",
        f"up to {agent.MOST_IN_MEMORY:,} samples wait in memory",
        f"the agent waits {sender.FIRST_WAIT:g} s, then up to twice as long each time, "
        f"at most {sender.LONGEST_WAIT / 60:g} min",
        f"{word(MOST)} callers at a time; a question that takes longer than {server.PATIENCE:g} s to come is dropped",
        f"At most {word(MOST_OF_ONE)} of them, and of those who probe, are of one address",
        f"up to {100 * screening.Rules().slack:g} % outside its range: moved to the end",
    ],
)
def test_the_page_of_the_sensors_states_it(said: str) -> None:
    assert said in page("sensors")
