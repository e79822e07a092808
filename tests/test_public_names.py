"""``import metasched``: its names, data frames, and the estimator of scikit-learn."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import cross_val_predict
from sklearn.utils.estimator_checks import parametrize_with_checks

import metasched
from metasched import ExecutionTimeRegressor, InputError, Run
from tests import pages
from tests.predictors.laid_out import laid_out

pd = pytest.importorskip("pandas")
CAMPAIGN = Path(__file__).resolve().parents[1] / "benchmarks" / "testbed" / "campaigns" / "cg-intel-random"


def runs(count: int = 24) -> list[Run]:
    grid = [(100.0 * (1 + k % 8), (1, 2, 4)[k // 8 % 3], 1.0 - 0.1 * (k % 3)) for k in range(count)]
    return [Run("cg", "c8", n, p, cpu, 90.0 + n / 100, 1e-3 * n / (p * cpu)) for n, p, cpu in grid]


def table(made: list[Run]) -> tuple[np.ndarray, np.ndarray]:
    X = [(run.problem_size, run.processors, run.min_avg_avail_cpu, run.min_avg_avail_bw) for run in made]
    return np.array(X), np.array([run.execution_time for run in made])


def test_every_public_name_is_there_and_comes_from_its_home() -> None:
    assert set(metasched.__all__) == {*metasched._HOMES, "__version__"}
    homes = {name: importlib.import_module(f"metasched.{home}") for name, home in metasched._HOMES.items()}
    assert {name for name, home in homes.items() if getattr(home, name) is not getattr(metasched, name)} == set()
    assert set(dir(metasched)) == set(metasched.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = metasched.nothing


def test_the_import_alone_loads_nothing_heavy() -> None:
    answer = "import sys, metasched; print(sorted({'numpy', 'scipy', 'sklearn', 'pandas'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", answer], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_fit_answers_as_the_predictor_of_its_method() -> None:
    made = runs()
    asked = metasched.Request(1000, 4, 0.5, 95.0)
    own = metasched.PublishedPredictor("cg", "c8")
    own.fit(made)
    assert metasched.fit(made, method="published").predict(asked) == own.predict(asked)


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"runs": []}, "there are no runs"),
        ({"runs": [*runs(), Run("lu", "c8", 1, 1, 1, 1, 1)]}, "cg on c8, lu on c8, expected one application"),
        ({"runs": runs(), "method": "magic"}, "method is 'magic', expected one of robust"),
    ],
)
def test_fit_says_what_it_expected(wrong: dict, expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        metasched.fit(**wrong)


def test_a_frame_of_runs_turns_back_into_the_same_runs() -> None:
    recorded = metasched.read_runs(CAMPAIGN / "runs.csv")
    frame = metasched.frame_from_runs(recorded)
    assert metasched.runs_from_frame(frame) == recorded
    assert (len(frame), str(frame["problem_size"].dtype), str(frame["processors"].dtype)) == (220, "float64", "int64")
    assert frame["execution_time"].sum() == pytest.approx(sum(run.execution_time for run in recorded))


def test_a_frame_as_pandas_reads_it_gives_the_runs_of_the_file() -> None:
    assert metasched.runs_from_frame(pd.read_csv(CAMPAIGN / "runs.csv")) == metasched.read_runs(CAMPAIGN / "runs.csv")


def test_further_columns_are_kept_and_empty_ones_are_not() -> None:
    one = Run("cg", "c8", 1400, 4, 0.8, 93.5, 12.25, extra={"user": "ann"})
    other = Run("cg", "c8", 700, 4, 0.8, 93.5, 6.25, start_time=5.0, nodes=("n1", "n2"), phase="train")
    again = metasched.runs_from_frame(metasched.frame_from_runs([one, other]))
    assert again == (one, other)
    assert [dict(run.extra) for run in again] == [{"user": "ann"}, {}]


def test_a_frame_that_holds_no_runs_is_refused_in_one_line() -> None:
    frame = metasched.frame_from_runs(runs())
    with pytest.raises(InputError, match="the frame has no column processors"):
        metasched.runs_from_frame(frame.drop(columns="processors"))
    frame.loc[3, "min_avg_avail_cpu"] = 1.5
    with pytest.raises(InputError, match=r"row 3: min_avg_avail_cpu is 1\.5, expected a fraction"):
        metasched.runs_from_frame(frame)


def test_a_frame_needs_no_more_columns_than_a_file_of_runs(tmp_path: Path) -> None:
    frame = metasched.frame_from_runs(runs())[["execution_time", "processors", "problem_size"]]
    frame.to_csv(tmp_path / "application.csv", index=False)
    read, made = metasched.read_runs(tmp_path / "application.csv"), metasched.runs_from_frame(frame)
    assert [*map(repr, made)] == [*map(repr, read)]  # their loads are NaN
    with pytest.raises(InputError, match="column cluster missing"):
        metasched.runs_from_frame(frame.assign(application="cg"))


def test_a_model_is_fitted_to_the_runs_of_a_frame() -> None:
    asked = metasched.Request(1000, 4, 0.5, 95.0)
    frame = metasched.frame_from_runs(runs())
    assert metasched.fit(frame).predict(asked) == metasched.fit(runs()).predict(asked)


def test_predictions_come_as_a_frame_with_the_index_of_the_questions() -> None:
    predictor = metasched.fit(runs(), method="published")
    frame = metasched.frame_from_runs(runs())[["problem_size", "processors", "min_avg_avail_cpu", "min_avg_avail_bw"]]
    asked = frame.iloc[5:9]
    answer = metasched.predictions_frame(predictor, asked, level=0.8)
    one = predictor.predict(metasched.Request(*asked.iloc[0]), 0.8)
    assert list(answer.index) == [5, 6, 7, 8]
    assert answer.iloc[0].tolist() == pytest.approx([one.execution_time, one.interval.low, one.interval.high, 0.8])
    assert metasched.frame_from_predictions([one]).iloc[0].tolist() == pytest.approx(answer.iloc[0].tolist())
    with pytest.raises(InputError, match="no column processors"):
        metasched.predictions_frame(predictor, asked.drop(columns="processors"))


def test_predictions_of_a_frame_are_for_the_layout_and_the_parameters_of_each_row() -> None:
    made = laid_out(30)
    predictor = metasched.fit(made)
    frame = metasched.frame_from_runs(made).drop(columns="execution_time").sample(frac=1.0, random_state=1)
    answer = metasched.predictions_frame(predictor, frame)
    own = [predictor.predict(made[row].request) for row in frame.index]
    frame["parameter:steps"] = [
        f"{float(steps):.1f}" if k % 2 else steps for k, steps in enumerate(frame["parameter:steps"])
    ]
    assert metasched.predictions_frame(predictor, frame).equals(answer)
    assert answer.execution_time.tolist() == pytest.approx([each.execution_time for each in own])
    assert answer.high.tolist() == pytest.approx([each.interval.high for each in own])
    assert list(answer.index) == list(frame.index)
    never_met, all_of_them = frame.assign(processes_per_node=64), frame.assign(processes_per_node=frame.processors)
    assert metasched.predictions_frame(predictor, never_met).equals(metasched.predictions_frame(predictor, all_of_them))
    with pytest.raises(InputError, match="parameter 'stpes' is unknown, expected one of solver, steps"):
        metasched.predictions_frame(predictor, frame.assign(**{"parameter:stpes": 3.0}))


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("problem_size", float("nan"), "row 7: problem_size is nan"),
        ("problem_size", -1.0, "row 7: problem_size is -1"),
        ("processors", 0.0, "row 7: processors is 0"),
        ("processors", 2.5, "row 7: processors is 2.5"),
        ("min_avg_avail_cpu", 90.0, "row 7: available_cpu is 90"),
        ("min_avg_avail_bw", 0.0, "row 7: available_bandwidth is 0"),
    ],
)
def test_a_frame_of_what_no_run_can_have_is_refused_with_its_row(column: str, value: float, said: str) -> None:
    frame = metasched.frame_from_runs(runs()).astype({"processors": "float64"})
    frame.loc[7, column] = value
    with pytest.raises(InputError, match=said):
        metasched.predictions_frame(metasched.fit(runs(), method="published"), frame)


@parametrize_with_checks([ExecutionTimeRegressor(method="published", outside="clip")])
def test_the_estimator_keeps_the_rules_of_scikit_learn(estimator, check) -> None:
    check(estimator)


def test_the_estimator_predicts_as_the_predictor_it_holds() -> None:
    X, y = table(runs())
    model = ExecutionTimeRegressor(method="published").fit(X, y)
    asked = metasched.Request(1000, 4, 0.5, 95.0)
    own = model.predictor_.predict(asked, 0.8)
    question = [[1000, 4, 0.5, 95.0]]
    assert model.predict(question) == pytest.approx([own.execution_time])
    assert model.predict_interval(question, 0.8)[0] == pytest.approx([own.interval.low, own.interval.high])
    assert own.execution_time == pytest.approx(0.5, rel=0.05)
    assert pickle.loads(pickle.dumps(model)).predict(question) == pytest.approx(model.predict(question))


def test_the_estimator_takes_a_frame_of_runs_and_works_in_cross_validation() -> None:
    frame = metasched.frame_from_runs(runs())
    model = ExecutionTimeRegressor(method="published")
    whole = model.fit(frame, frame["execution_time"]).predict(frame)
    assert whole == pytest.approx(model.fit(*table(runs())).predict(table(runs())[0]))
    answer = cross_val_predict(model, frame, frame["execution_time"], cv=4)
    assert np.mean(np.abs(answer / frame["execution_time"] - 1)) < 0.05


def test_the_estimator_reads_the_columns_of_a_frame_by_name_also_where_loads_are_missing() -> None:
    frame = metasched.frame_from_runs(runs()).assign(min_avg_avail_cpu=1.0, min_avg_avail_bw=1000.0)
    times, asked = frame["execution_time"], frame[["min_avg_avail_bw", "processors", "problem_size"]]
    whole = ExecutionTimeRegressor(method="published").fit(frame, times).predict(frame)
    short = ExecutionTimeRegressor(method="published").fit(asked, times)
    assert short.predict(asked).tolist() == short.predict(frame).tolist() == whole.tolist()


@pytest.mark.parametrize("missing", ["problem_size", "processors"])
def test_the_estimator_refuses_a_frame_without_a_size_or_processors(missing: str) -> None:
    frame = metasched.frame_from_runs(runs())
    with pytest.raises(ValueError, match=f"X has no column {missing}, found "):
        ExecutionTimeRegressor().fit(frame.rename(columns={missing: "other"}), frame["execution_time"])


def test_the_estimator_learns_the_layout_and_the_parameters_of_a_frame() -> None:
    made = laid_out(40)
    frame = metasched.frame_from_runs(made).astype({"problem_size": float})
    model = ExecutionTimeRegressor().fit(frame, frame["execution_time"])
    asked = frame.drop(columns="execution_time").sample(frac=1.0, random_state=2)
    own = metasched.predictions_frame(metasched.fit(made), asked, 0.8)
    assert model.predict(asked) == pytest.approx(own.execution_time.to_numpy())
    assert model.predict_interval(asked, 0.8) == pytest.approx(own[["low", "high"]].to_numpy())
    again = pickle.loads(pickle.dumps(model))
    assert again.predict(asked) == pytest.approx(own.execution_time.to_numpy())
    with pytest.raises(ValueError, match="parameter 'stpes' is unknown"):
        model.predict(asked.assign(**{"parameter:stpes": 3.0}))
    with pytest.raises(ValueError, match="row 0: threads is 0"):
        ExecutionTimeRegressor().fit(frame.assign(threads=0), frame["execution_time"])


def test_an_estimator_that_clips_learns_short_times_as_they_are() -> None:
    X, y = table(runs())
    short, clipped = 1e-3 * y, ExecutionTimeRegressor(method="published", outside="clip")
    assert clipped.fit(X, short).predict(X) == pytest.approx(
        ExecutionTimeRegressor("published").fit(X, short).predict(X)
    )
    assert clipped.predict(X) == pytest.approx(short, rel=0.1)
    assert clipped.fit([*X, X[0]], [*short, -1.0]).predict(X).max() < 1.0


@pytest.mark.parametrize(
    ("row", "time", "expected"),
    [
        ([100, 0, 1, 90], 1.0, "processors is 0, expected a whole number"),
        ([100, 1.5, 1, 90], 1.0, "processors is 1.5"),
        ([100, 1, 1.2, 90], 1.0, "min_avg_avail_cpu is 1.2, expected a fraction"),
        ([100, 1, 1, -1], 1.0, "min_avg_avail_bw is -1"),
        ([100, 1, 1, 90], 0.0, "execution_time is 0.0"),
    ],
)
def test_the_estimator_refuses_what_no_run_can_have(row: list[float], time: float, expected: str) -> None:
    X, y = table(runs())
    with pytest.raises(ValueError, match=expected):
        ExecutionTimeRegressor(method="published").fit([*X, row], [*y, time])


@pytest.mark.parametrize("wrong", [{"method": "magic"}, {"outside": "ignore"}])
def test_the_estimator_refuses_parameters_that_there_are_not(wrong: dict) -> None:
    with pytest.raises(ValueError, match="expected"):
        ExecutionTimeRegressor(**wrong).fit(*table(runs()))


def readme_lines() -> str:
    """The block of Python in the README."""
    (block,) = [each for each in pages.blocks((pages.ROOT / "README.md").read_text()) if each.kind == "python"]
    return block.body


@pytest.mark.slow
def test_the_lines_of_the_readme_run_in_a_notebook(tmp_path: Path) -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(readme_lines())])
    done = nbclient.NotebookClient(notebook, resources={"metadata": {"path": str(pages.ROOT)}}).execute()
    assert "Interval(low=" in done.cells[0].outputs[0]["text"]
