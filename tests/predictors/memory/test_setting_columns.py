"""What of the settings of runs is learned as a column, what is a constant, and what a prediction warns about."""

from __future__ import annotations

import math

import numpy as np
import pytest

from metasched.predictors.memory.setting_columns import NO_COLUMNS, SettingColumns
from metasched.records import InputError, Settings

LOG_P = np.log([4.0, 8.0])


def columns(*settings: Settings) -> SettingColumns:
    return SettingColumns.of(settings, LOG_P[: len(settings)])


@pytest.mark.parametrize(
    ("one", "other", "names", "constant"),
    [
        (Settings(), Settings(), (), {}),
        (Settings(threads=2), Settings(threads=2), (), {"threads": "2"}),
        (Settings(threads=1), Settings(threads=2), ("threads",), {}),
        (Settings(4), Settings(4), (), {"processes_per_node": "4"}),
        (Settings(4), Settings(), (), {"processes_per_node": "4"}),
        (Settings(4), Settings(2), ("processes_per_node",), {}),
        (Settings(frequency=2e3), Settings(), (), {"frequency": "2000"}),
        (Settings(frequency=2e3), Settings(frequency=1e3), ("frequency",), {}),
        (Settings.of(parameters={"k": 3}), Settings.of(parameters={"k": 3}), (), {"k": "3"}),
        (Settings.of(parameters={"k": 3}), Settings.of(parameters={"k": 0}), ("k",), {}),
        (Settings.of(parameters={"s": "amg"}), Settings.of(parameters={"s": "cg"}), ("s=cg",), {}),
    ],
)
def test_what_varies_is_a_column_and_what_does_not_is_noted(
    one: Settings, other: Settings, names: tuple[str, ...], constant: dict[str, str]
) -> None:
    found = columns(one, other)
    assert (found.names, dict(found.constant)) == (names, constant)


def test_runs_without_settings_have_no_columns() -> None:
    assert columns(Settings(), Settings()) is NO_COLUMNS
    assert NO_COLUMNS.rows([Settings(), Settings()]).shape == (2, 0)
    with pytest.raises(InputError, match="expected none, since the runs learned had none"):
        NO_COLUMNS.rows([Settings.of(parameters={"k": 3})])


def test_cells_are_logarithms_around_the_middle_or_parts_of_the_range() -> None:
    settings = [Settings.of(parameters={"k": k, "shift": shift}) for k, shift in ((1.0, -1.0), (100.0, 3.0))]
    found = columns(*settings)
    assert found.names == ("k", "shift")
    np.testing.assert_allclose(found.rows(settings), [[-np.log(10.0), -1.0], [np.log(10.0), 1.0]])
    np.testing.assert_allclose(found.filled(found.rows([Settings()])[0], LOG_P), np.zeros((2, 2)))
    for never in (0.0, -1.0):
        assert found.rows([Settings.of(parameters={"k": never})]).tolist()[0][0] == -np.inf
    with pytest.raises(InputError, match="parameter k is 'x', expected a number"):
        found.rows([Settings.of(parameters={"k": "x"})])


def test_the_usual_processes_per_node_depend_on_the_processors() -> None:
    found = columns(Settings(2), Settings(8))
    asked, usual = [1.0, 2.0, 4.0, 8.0, 64.0], [1, 2, 2, 8, 8]
    np.testing.assert_allclose(np.exp(found.filled(np.array([np.nan]), np.log(asked))[:, 0]), usual)


def test_a_prediction_warns_of_settings_that_were_not_learned() -> None:
    found = columns(Settings(threads=2), Settings(threads=2))
    assert found.doubts(Settings(threads=2)) == ()
    [note] = found.doubts(Settings(threads=4))
    assert note == "threads 4 was never learned (it was always 2), so its effect is unknown"
    [note] = columns(Settings(4), Settings(8)).doubts(Settings(4, threads=3))
    assert note == "threads 3 was never learned (it was always 1), so its effect is unknown"
    [note] = found.doubts(Settings(threads=2, frequency=2e3))
    assert note == "frequency 2000: no learned run states it, so its effect is unknown"
    [note] = found.doubts(Settings(4, threads=2))
    assert note == "processes_per_node 4: no learned run states it, so its effect is unknown"
    solvers = [Settings.of(parameters={"solver": name}) for name in ("amg", "amg", "cg")]
    words = SettingColumns.of(solvers, np.log([4.0, 8.0, 8.0]))
    assert words.doubts(Settings()) == ("solver is not given, the usual value is assumed",)
    [note] = words.doubts(Settings.of(parameters={"solver": "jacobi"}))
    assert note == "solver jacobi was never learned, amg is assumed"
    assert words.doubts(solvers[2]) == ()


def test_settings_depart_from_what_never_varied_by_the_ratio_of_numbers_and_by_one_for_words() -> None:
    learned = Settings.of(4, 2, {"steps": 100, "k": 0, "solver": "amg"}, 2000.0)
    found = columns(learned, learned)
    assert found.departures(learned) == []
    other = Settings.of(2, 8, {"steps": 1e-300, "k": 3, "solver": "7"}, 1000.0)
    assert found.departures(other) == [
        ("threads", pytest.approx(math.log(4))),
        ("per_node", pytest.approx(math.log(2))),
        ("clock", pytest.approx(math.log(2))),
        ("word", 1.0),
        ("word", 1.0),
        ("power", pytest.approx(math.log(1e302))),
    ]
    assert found.departures(Settings.of(threads=2, parameters={"steps": -1})) == [("word", 1.0)]


def test_a_word_that_was_never_learned_is_told_from_none_and_counts_as_the_usual_one() -> None:
    solvers = [Settings.of(parameters={"solver": name, "pre": "ilu"}) for name in ("amg", "amg", "cg", "mg")]
    found = SettingColumns.of([*solvers, Settings.of(parameters={"solver": "amg", "pre": "ssor"})], np.zeros(5))
    strange, none = (Settings.of(parameters={"pre": "ilu"} | more) for more in ({"solver": "jacobi"}, {}))
    of_solver = [name.startswith("solver") for name in found.names]
    assert np.isinf(found.rows([strange])[0]).tolist() == np.isnan(found.rows([none])[0]).tolist() == of_solver
    assert np.isfinite(found.rows(solvers)).all()
    filled = [found.filled(found.rows([each])[0], np.zeros(1)) for each in (strange, none, solvers[0])]
    np.testing.assert_array_equal(filled[0], filled[2])
    np.testing.assert_array_equal(filled[1], filled[2])


def test_many_words_are_told_from_the_usual_one_the_rare_ones_together() -> None:
    solvers = [f"s{k:02}" for k in range(12) for _ in range(15 - k)]
    found = SettingColumns.of([on(solver=name) for name in solvers], np.zeros(len(solvers)))
    rows = found.rows([on(solver=f"s{k:02}") for k in range(12)])
    np.testing.assert_array_equal(rows, np.vstack([np.zeros(8), np.eye(8), *[np.eye(8)[7:]] * 3]))
    assert found.doubts(on(solver="s07")) == ()
    for name in ("s08", "s11"):
        assert found.doubts(on(solver=name)) == (f"solver {name} is one of 4 rare words, which count as one",)


def test_a_word_among_numbers_counts_as_not_given_where_it_was_learned_and_is_refused_where_it_is_asked_for() -> None:
    runs = [Settings.of(parameters={"steps": steps}) for steps in (100, 200, "many")]
    found = SettingColumns.of(runs, np.log([4.0, 4.0, 4.0]))
    assert found.names == ("steps",)
    assert np.isnan(found.rows(runs, learned=True)[:, 0]).tolist() == [False, False, True]
    with pytest.raises(InputError, match="parameter steps is 'many', expected a number"):
        found.rows(runs)


@pytest.mark.parametrize(
    ("asked", "note"),
    [
        (Settings(4, 2, (("k", 0.0), ("steps", 300.0))), ""),
        (Settings(4, 1000, (("k", 0.0), ("steps", 300.0))), "threads 1000 is far above the 1 to 4 learned"),
        (Settings(4, 2, (("k", 0.0), ("steps", 2.0))), "steps 2 is far below the 100 to 400 learned"),
        (Settings(4, 2, (("k", 11.0), ("steps", 300.0))), "k 11 is far above the -1 to 3 learned"),
    ],
)
def test_a_number_far_outside_what_was_learned_is_noted(asked: Settings, note: str) -> None:
    found = columns(Settings(2, 1, (("k", -1.0), ("steps", 100.0))), Settings(4, 4, (("k", 3.0), ("steps", 400.0))))
    assert found.doubts(asked) == ((note,) if note else ())


@pytest.mark.parametrize("steps", [5e-324, 1e-30, 1.7e308])
def test_a_number_far_from_those_learned_has_a_finite_cell(steps: float) -> None:
    found = columns(*(Settings.of(parameters={"steps": value}) for value in (1e-30, 1e30)))
    (cell,) = found.rows([Settings.of(parameters={"steps": steps})])[0]
    assert cell == pytest.approx(math.log(steps))


def test_a_number_that_is_too_far_in_ranges_to_be_computed_with_is_refused() -> None:
    found = columns(*(Settings.of(parameters={"k": value}) for value in (-1e-30, 3e-30)))
    with pytest.raises(InputError, match=r"parameter k is 1e\+308, which is too far from those of the runs learned"):
        found.rows([Settings.of(parameters={"k": 1e308})])


def on(**parameters: float | str) -> Settings:
    return Settings.of(parameters=parameters)


def test_a_run_that_names_no_gpus_had_none() -> None:
    found = SettingColumns.of([on(gpu="a100", gpus=2), on(gpu="a100", gpus=1), on()], np.log([4.0, 8.0, 8.0]))
    assert found.names == ("gpu=none", "gpus")
    np.testing.assert_array_equal(found.rows([on(gpu="a100"), on(), on(gpu="none")])[:, 0], [0.0, 1.0, 1.0])
    assert found.doubts(on()) == ()
    assert found.doubts(on(gpu="a100")) == ("gpus is not given, the usual value is assumed",)


def test_where_all_runs_had_gpus_a_request_without_is_doubted() -> None:
    found = columns(on(gpu="a100"), on(gpu="a100"))
    assert (found.names, dict(found.constant)) == ((), {"gpu": "a100"})
    assert found.doubts(on()) == ("gpu none was never learned (it was always a100), so its effect is unknown",)
    assert found.doubts(on(gpu="a100")) == ()


def test_where_no_run_had_gpus_none_can_be_asked_for_and_others_cannot() -> None:
    assert NO_COLUMNS.rows([on(gpu="none")]).shape == (1, 0)
    with pytest.raises(InputError, match="parameter 'gpu' is unknown"):
        NO_COLUMNS.rows([on(gpu="a100")])


def test_parameters_beyond_the_most_columns_are_noted_and_their_words_count_as_one() -> None:
    names = [f"p{number:02}" for number in range(14)]
    stated = [
        Settings.of(
            parameters={name: float(value + 1) for name in names} | {"scheme": f"s{value}", "tail": float(value)}
        )
        for value in range(6)
    ]
    found = SettingColumns.of(stated, np.zeros(len(stated)))
    assert found.names == (*names, "scheme=s1", "scheme=s2")
    assert found.rows(stated[5:])[0, -2:].tolist() == [0.0, 1.0]
    notes = found.doubts(Settings.of(parameters=dict.fromkeys(names, 3.0) | {"scheme": "s5", "tail": 3.0}))
    assert notes == (
        "scheme s5 is one of 4 rare words, which count as one",
        "the effect of tail is not learned: there are too many parameters",
    )
