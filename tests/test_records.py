"""What each record refuses, word for word, and the last values that it takes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from metasched.records import (
    InputError,
    Interval,
    Load,
    PhaseMark,
    Prediction,
    Request,
    ResourceSet,
    Run,
    Settings,
    check_count,
    has_words,
)  # fmt: skip

INF, NAN = math.inf, math.nan
RUN: dict[str, Any] = {
    "application": "a", "cluster": "c", "problem_size": 9.0, "processors": 4, "min_avg_avail_cpu": 0.5,
    "min_avg_avail_bw": 9.0, "execution_time": 2.0,
}  # fmt: skip
REQUEST: dict[str, Any] = {"problem_size": 9.0, "processors": 4, "available_cpu": 0.5, "available_bandwidth": 9.0}
MARK: dict[str, Any] = {
    "phase": "1", "process": 0, "avg_avail_cpu": 0.5, "avg_avail_bw": 9.0, "execution_time": 2.0,
}  # fmt: skip
LOAD: dict[str, Any] = {"time": 0.0, "node": "n", "available_cpu": 0.5, "available_bandwidth": 9.0}
ABOVE, SHARE = "expected a finite number above 0", "expected a fraction in (0, 1]"
COUNT, CLOCK = "expected a whole number of at least 1", "expected MHz from 10 to 100000"


def message(make: Callable[..., object], **values: Any) -> str:
    """What a record says that refuses the values, empty where it takes them."""
    try:
        make(**values)
    except InputError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("make", "known", "changed", "refused"),
    [
        (Run, RUN, {"problem_size": 0.0}, f"problem_size is 0.0, {ABOVE}"),
        (Run, RUN, {"problem_size": INF}, f"problem_size is inf, {ABOVE}"),
        (Run, RUN, {"problem_size": NAN}, f"problem_size is nan, {ABOVE}"),
        (Run, RUN, {"problem_size": 5e-324}, ""),
        (Run, RUN, {"processors": 0}, f"processors is 0, {COUNT}"),
        (Run, RUN, {"processors": 1.5}, f"processors is 1.5, {COUNT}"),
        (Run, RUN, {"processors": True}, f"processors is True, {COUNT}"),
        (Run, RUN, {"processors": 1}, ""),
        (Run, RUN, {"min_avg_avail_cpu": 0.0}, f"min_avg_avail_cpu is 0.0, {SHARE}"),
        (Run, RUN, {"min_avg_avail_cpu": 1.0001}, f"min_avg_avail_cpu is 1.0001, {SHARE}"),
        (Run, RUN, {"min_avg_avail_cpu": 1.0}, ""),
        (Run, RUN, {"min_avg_avail_cpu": NAN}, ""),
        (Run, RUN, {"min_avg_avail_bw": -1.0}, f"min_avg_avail_bw is -1.0, {ABOVE}"),
        (Run, RUN, {"min_avg_avail_bw": NAN}, ""),
        (Run, RUN, {"execution_time": 0.0}, f"execution_time is 0.0, {ABOVE}"),
        (Run, RUN, {"start_time": NAN}, "start_time is nan, expected a finite number of seconds"),
        (Run, RUN, {"start_time": -INF}, "start_time is -inf, expected a finite number of seconds"),
        (Run, RUN, {"start_time": -1.0}, ""),
        (Run, RUN, {"phase": ""}, "phase is '', expected train or predict"),
        (Run, RUN, {"phase": "predict"}, ""),
        (Run, RUN, {"extra": {"energy": "0"}}, f"energy is 0.0, {ABOVE}"),
        (Run, RUN, {"extra": {"energy": "much"}}, "energy is 'much', expected a number"),
        (Run, RUN, {"extra": {"energy": ""}}, ""),
        (Run, RUN, {"extra": {"energy_covers": "e" * 64}}, ""),
        (Run, RUN, {"extra": {"energy_covers": "e" * 65}},
         f"energy_covers is '{'e' * 65}', expected a word such as node or package"),
        (Run, RUN, {"extra": {"energy_covers": "a\nb"}},
         "energy_covers is 'a\\nb', expected a word such as node or package"),
        (Run, RUN, {"extra": {"threads": "0"}}, f"threads is 0.0, {COUNT}"),
        (Run, RUN, {"extra": {"threads": "two"}}, "threads is 'two', expected a number"),
        (Request, REQUEST, {"available_cpu": 0.0}, f"available_cpu is 0.0, {SHARE}"),
        (Request, REQUEST, {"available_bandwidth": INF}, f"available_bandwidth is inf, {ABOVE}"),
        (Request, REQUEST, {"settings": Settings(processes_per_node=5)},
         "processes_per_node is 5, expected at most the number of processors, 4"),
        (Request, REQUEST, {"settings": Settings(processes_per_node=4)}, ""),
        (PhaseMark, MARK, {"phase": ""}, "phase is empty, expected a name"),
        (PhaseMark, MARK, {"process": -1}, "process is -1, expected a whole number of at least 0"),
        (PhaseMark, MARK, {"process": 0}, ""),
        (PhaseMark, MARK, {"avg_avail_cpu": 2.0}, f"avg_avail_cpu is 2.0, {SHARE}"),
        (PhaseMark, MARK, {"avg_avail_bw": 0.0}, f"avg_avail_bw is 0.0, {ABOVE}"),
        (PhaseMark, MARK, {"execution_time": 0.0}, f"execution_time is 0.0, {ABOVE}"),
        (Load, LOAD, {"time": NAN}, "time is nan, expected a finite number of seconds"),
        (Load, LOAD, {"node": ""}, "node is empty, expected a name"),
        (Load, LOAD, {"available_cpu": -0.1}, "available_cpu is -0.1, expected a fraction in [0, 1]"),
        (Load, LOAD, {"available_cpu": 1.1}, "available_cpu is 1.1, expected a fraction in [0, 1]"),
        (Load, LOAD, {"available_cpu": 0.0}, ""),
        (Load, LOAD, {"available_cpu": 1.0}, ""),
        (Load, LOAD, {"available_bandwidth": -0.5},
         "available_bandwidth is -0.5, expected a number of Mbit/s of at least 0"),
        (Load, LOAD, {"available_bandwidth": INF},
         "available_bandwidth is inf, expected a number of Mbit/s of at least 0"),
        (Load, LOAD, {"available_bandwidth": 0.0}, ""),
        (Run, RUN, {"nodes": ("n0", "n 1")}, "nodes are ('n0', 'n 1'), expected names without spaces"),
        (Run, RUN, {"nodes": ("n0", "")}, "nodes are ('n0', ''), expected names without spaces"),
        (Run, RUN, {"nodes": ("n0", "n\u3000\u00fc")}, "nodes are ('n0', 'n\\u3000ü'), expected names without spaces"),
        (Run, RUN, {"nodes": ("n0", "n-\u00fc")}, ""),
        (Run, RUN, {"extra": {"user": "a\0"}}, "user is 'a\\x00', expected a name"),
        (Run, RUN, {"extra": {"user": "\udcff"}}, "user is '\\udcff', expected a name"),
        (Run, RUN, {"extra": {"user": "ada lo@x"}}, ""),
        (Settings, {}, {"frequency": 9.9}, f"frequency is 9.9, {CLOCK}"),
        (Settings, {}, {"frequency": 100_001.0}, f"frequency is 100001, {CLOCK}"),
        (Settings, {}, {"frequency": 10.0}, ""),
        (Settings, {}, {"frequency": 100_000.0}, ""),
        (Settings, {}, {"processes_per_node": 0}, f"processes_per_node is 0, {COUNT}"),
        (Settings, {}, {"threads": 1.5}, f"threads is 1.5, {COUNT}"),
        (Settings, {}, {"parameters": tuple((f"p{at}", 1.0) for at in range(32))}, ""),
        (Settings, {}, {"parameters": tuple((f"p{at}", 1.0) for at in range(33))},
         "there are 33 parameters, expected at most 32"),
        (Settings, {}, {"parameters": (("n" * 64, 1.0),)}, ""),
        (Settings, {}, {"parameters": (("n" * 90, 1.0),)},
         f"a parameter is called '{'n' * 80}', expected at most 64 characters, no space, = or ,"),
        (Settings, {}, {"parameters": (("a b", 1.0),)},
         "a parameter is called 'a b', expected at most 64 characters, no space, = or ,"),
        (Settings, {}, {"parameters": (("p", INF),)}, "parameter:p is inf, expected a finite number or a word"),
        (Settings, {}, {"parameters": (("p", ""),)}, "parameter:p is '', expected a finite number or a word"),
        (Settings, {}, {"parameters": (("p", "a\x07"),)},
         "parameter:p is 'a\\x07', expected a finite number or a word"),
        (Settings, {}, {"parameters": (("p", "w" * 64),)}, ""),
        (Settings, {}, {"parameters": (("p", "w" * 65),)},
         f"parameter:p is '{'w' * 65}', expected a finite number or a word"),
        (check_count, {"name": "c", "least": 2, "most": 4}, {"value": 1},
         "c is 1, expected a whole number from 2 to 4"),
        (check_count, {"name": "c", "least": 2, "most": 4}, {"value": 5},
         "c is 5, expected a whole number from 2 to 4"),
        (check_count, {"name": "c", "least": 2, "most": 4}, {"value": 2}, ""),
        (check_count, {"name": "c", "least": 2, "most": 4}, {"value": 4.0}, ""),
        (check_count, {"name": "c"}, {"value": NAN}, f"c is nan, {COUNT}"),
        (check_count, {"name": "c"}, {"value": INF}, f"c is inf, {COUNT}"),
    ],
)  # fmt: skip
def test_a_record_takes_what_it_can_hold_and_refuses_the_next_in_one_line(
    make: Callable[..., object], known: dict[str, Any], changed: dict[str, Any], refused: str
) -> None:
    assert message(make, **known | changed) == refused


@pytest.mark.parametrize(
    ("time", "low", "sound"),
    [(1.0, 0.5, True), (0.0, 0.0, False), (-1.0, 0.0, False), (INF, 0.5, False), (NAN, 0.5, False), (1.0, INF, False),
     (5e-324, 0.0, True), (1.0, NAN, False)],
)  # fmt: skip
def test_a_prediction_is_a_finite_time_above_0(time: float, low: float, sound: bool) -> None:
    said = message(Prediction, execution_time=time, interval=Interval(low, 2.0, 0.9), model="m")
    line = f"the model predicts {time:g}, expected a number above 0: it is asked too far from all runs"
    assert said == ("" if sound else line)


def test_settings_are_read_from_cells_and_written_to_the_same() -> None:
    cells = {"processes_per_node": "2", "threads": "4", "frequency": "1200.5", "parameter:b": "x", "parameter:a": "1e3"}
    found = Settings.of_cells(cells | {"user": "ada", "parameter:empty": ""})
    assert found == Settings(2, 4, (("a", 1000.0), ("b", "x")), 1200.5)
    assert found.cells == {**cells, "parameter:a": "1000"}
    assert found.text == "processes_per_node 2, threads 4, frequency 1200.5, a 1000, b x"
    assert found.as_dict() == {
        "processes_per_node": 2, "threads": 4, "parameters": {"a": 1000.0, "b": "x"}, "frequency": 1200.5,
    }  # fmt: skip
    assert Settings.of(2, 4, {"b": "x", "a": "1e3"}, 1200.5) == found
    assert Settings.of(parameters={"grid": "1_12"}).cells == {"parameter:grid": "1_12"}
    assert Settings.of_cells({"user": "ada", "threads": ""}) == Settings() == Settings.of()
    assert (Settings().cells, Settings().text) == ({}, "")
    assert Settings().as_dict() == {"processes_per_node": None, "threads": 1, "parameters": {}}


def test_a_run_has_the_settings_user_and_energy_of_its_columns() -> None:
    run = Run(**RUN, extra={"processes_per_node": "9", "user": "ada", "energy": "1e3", "energy_covers": "node"})
    assert (run.settings.processes_per_node, run.user, run.energy, run.energy_covers) == (4, "ada", 1000.0, "node")
    assert Run(**RUN, extra={"processes_per_node": "4"}).settings.processes_per_node == 4
    assert (Run(**RUN).settings, Run(**RUN).user, Run(**RUN).energy) == (Settings(), "", None)
    for unmeasured in ("min_avg_avail_cpu", "min_avg_avail_bw"):
        run = Run(**RUN | {unmeasured: NAN})
        assert not run.measured
        cpu, bandwidth = (1.0, 9.0) if unmeasured == "min_avg_avail_cpu" else (0.5, 1000.0)
        assert run.request == Request(9.0, 4, cpu, bandwidth)
    assert Run(**RUN).measured


@pytest.mark.parametrize(
    ("per_node", "threads", "frequency", "layout"),
    [
        (None, 1, None, {}),
        (None, 2, None, {"threads": 2}),
        (None, 1, 1200.0, {"frequency": 1200.0}),
        (3, 1, None, {"processes_per_node": 3, "threads": 1}),
        (9, 2, 1200.0, {"processes_per_node": 4, "threads": 2, "frequency": 1200.0}),
    ],
)
def test_a_set_tells_the_layout_that_makes_a_difference(
    per_node: int | None, threads: int, frequency: float | None, layout: dict[str, float]
) -> None:
    chosen = ResourceSet("c", ("n1", "n2"), 4, 0.5, 9.0, per_node, threads, frequency)
    assert chosen.layout == layout
    assert chosen.place == ("c", per_node, threads, frequency)
    assert chosen.same_place(["n2", "n1"], 4)
    assert not chosen.same_place(["n1"], 4)
    assert not chosen.same_place(["n1", "n2"], 3)


@pytest.mark.parametrize(
    ("values", "words"), [([], False), (["a"], True), (["a", 1.0], True), ([1.0, 2.0, "a"], False), ([1.0], False)]
)
def test_a_parameter_has_words_where_at_least_half_of_its_values_are(values: list[float | str], words: bool) -> None:
    assert has_words(values) is words


@pytest.mark.parametrize(("outcome", "inside"), [(0.9, False), (1.0, True), (2.0, True), (2.1, False)])
def test_an_interval_holds_its_ends(outcome: float, inside: bool) -> None:
    assert Interval(1.0, 2.0, 0.9).holds(outcome) is inside


@pytest.mark.parametrize("name", ["problem_size", "processors", "available_cpu", "available_bandwidth"])
@pytest.mark.parametrize("digits", [400, 5000])
def test_whole_numbers_beyond_double_precision_are_refused_in_a_line(name: str, digits: int) -> None:
    asked = {"problem_size": 500.0, "processors": 4, "available_cpu": 0.9, "available_bandwidth": 90.0}
    with pytest.raises(InputError, match=f"^{name} is too large a number, expected a "):
        Request(**(asked | {name: 10**digits}))
