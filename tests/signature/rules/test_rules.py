"""Local equations, transforms of n, quotients, workloads: laws beside the paper's own numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.signature.general_equations import completed, distance_form
from metasched.signature.computation.workloads import one_workload
from metasched.signature.equations.expression_search import Rows
from metasched.signature.equations.expressions import Expression
from metasched.signature.equations.local_equations import local_equation
from metasched.signature.equations.topologies import TOPOLOGIES, coordinates
from metasched.signature.equations.transforms import PowerLaw, weight_form
from metasched.signature.rules.attributes import Attribute
from metasched.signature.rules.expanding import expanded
from metasched.signature.rules.fitting import fit
from metasched.signature.rules.number_rules import number
from metasched.signature.rules.samples import Samples
from metasched.signature.traces.actions import NULL
from metasched.signature.traces.folding import Loop, folded, unfolded
from metasched.signature.traces.matching import likened, matched, program_of
from metasched.signature.traces.trace import Trace, trace_of


def test_a_transposition_is_a_permutation_of_bits() -> None:
    transposed = [4 * (rank % 4) + rank // 4 for rank in range(16)]
    assert local_equation(transposed).as_dict() == {"kind": "EC1", "pattern": "permutation", "bits": [2, 3, 0, 1]}


def test_a_line_without_ends_has_null_communications() -> None:
    assert local_equation([1, 2, None]).as_dict() == {"kind": "EC2", "distances": [1, 1, None], "repetitions": 1}


@given(st.lists(st.integers(0, 15), min_size=3, max_size=3))
def test_an_equation_gives_back_the_destinations(destinations: list[int]) -> None:
    equation = local_equation(destinations)
    distances = equation.distances * equation.repetitions
    assert [rank + (each or 0) for rank, each in enumerate(distances)] == destinations


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=30), st.booleans())
def test_one_row_a_place_has_the_values_of_all_or_there_is_none(rows: list[tuple[int, int]], by_step: bool) -> None:
    place, step = np.array(rows, dtype=np.float64).T
    values = 10 * place + by_step * step
    found = Rows({"n": np.full(len(rows), 4.0), "x0": place, "P0": np.full(len(rows), 4.0), "i0": step}, ()).by_place(
        values
    )
    ambiguous = by_step and any(len(set(step[place == each])) > 1 for each in place)
    assert (found is None) == ambiguous
    if found is not None:
        assert sorted(zip(found[0].env["x0"], found[1], strict=True)) == sorted(set(zip(place, values, strict=True)))


def test_a_distance_that_the_fullest_lacks_is_refused() -> None:
    with pytest.raises(ValueError, match=r"distance \+2"):
        completed([2], [1, 4])


@given(st.integers(1, 500), st.integers(0, 1), st.sampled_from(["sqrt", "log2", "n"]))
def test_weights_of_loops_over_steps_are_found(rounds: int, shift: int, steps: str) -> None:
    of = {"sqrt": lambda n: round(n**0.5), "log2": lambda n: n.bit_length() - 1, "n": int}[steps]
    counts = [4, 16, 64]
    form = weight_form(counts, [rounds * (of(n) - shift) for n in counts])
    assert form is not None
    assert form(1024) == rounds * (of(1024) - shift)


def test_no_form_where_none_fits() -> None:
    assert weight_form([4, 16, 64], [3, 17, 18]) is None
    assert distance_form([4, 16, 64], [3, 17, 1800]) is None


@given(st.floats(1.0, 1e9), st.floats(-2.0, 2.0))
def test_a_power_law_is_found_again(factor: float, exponent: float) -> None:
    law = PowerLaw(factor, exponent)
    fitted = PowerLaw.fitted([4, 16, 64], [law(n) for n in (4, 16, 64)])
    assert fitted(256) == pytest.approx(law(256), rel=1e-6)
    assert fitted.r_squared == pytest.approx(1.0, abs=1e-6)


@given(st.floats(1e3, 1e15), st.floats(-1.0, 2.0), st.floats(0.98, 1.02))
def test_totals_that_stay_or_drift_are_of_one_workload(first: float, exponent: float, noise: float) -> None:
    totals = {n: first * n**exponent * (noise if n == 32 else 1.0) for n in (16, 32, 64)}
    assert one_workload(totals)


@pytest.mark.parametrize("totals", [(1e9, 2e9, 8e9), (8e9, 4e9, 1e9), (1e9, 1.4e9, 2.7e9), (0, 0, 0)])
def test_totals_that_drift_faster_and_faster_are_of_one_workload(totals: tuple[float, ...]) -> None:
    assert one_workload(dict(zip((16, 32, 64), totals, strict=True)))


@pytest.mark.parametrize("totals", [(1e9, 1e9, 2e9), (1e9, 2e9, 1e9), (2e9, 1e9, 1e9), (2e9, 1e9, 2e9), (1e9, 0, 1e9)])
def test_totals_that_jump_are_of_several_workloads(totals: tuple[float, ...]) -> None:
    assert not one_workload(dict(zip((16, 32, 64), totals, strict=True)))


@given(st.integers(1, 10**9), st.integers(1, 10**5))
def test_a_quotient_is_rounded_down_as_programs_do(whole: int, processes: int) -> None:
    made = Expression(0.0, ((float(whole), "1/n"),))({"n": np.array([float(processes)])})
    assert made.tolist() == [whole // processes]


@given(st.integers(1, 40), st.integers(1, 16), st.integers(2, 50))
def test_a_block_of_a_square_is_a_product_of_whole_shares(factor: int, multiple: int, side: int) -> None:
    length = 12 * factor
    sides = {f"{axis}{place}": np.array([2.0, 4.0, 6.0]) for axis in "Px" for place in (0, 1)}
    block = Expression(0.0, ((float(multiple * length**2), "1/n"),)).of_shares(sides, squares=True)
    larger = {name: np.array([float(side)]) for name in sides}
    # The multiple may itself hold squares; with none in it there is only one way.
    if multiple in {1, 2, 3, 5, 6, 7, 10, 11, 13, 14, 15}:
        assert block(larger).tolist() == [multiple * (length // side) ** 2]
    assert block({name: np.array([4.0]) for name in sides}).tolist() == [multiple * (length // 4) ** 2]


def test_a_loop_over_a_loop_that_does_not_run_is_left() -> None:
    assert matched(program_of((Loop(2, (Loop(2, (1,)),)), 3)), [2]) is None


@pytest.mark.parametrize("nodes", [(1, 2, 3), (2,), (2, 1), (1, Loop(2, (2, 2)))])
def test_what_is_more_or_less_than_a_program_is_not_like_it(nodes: tuple[Any, ...]) -> None:
    program = program_of((1, Loop(2, (2,))))
    assert likened(program, (1, Loop(5, (2,)))) is not None
    assert likened(program, nodes) is None


def test_a_loop_of_pairs_is_like_one_loop() -> None:
    places = likened(program_of(folded([1, 1, 1, 1, 2])), (Loop(3, (Loop(2, (1,)),)), 2))
    assert places is not None
    assert [each.tolist() for each in places.repeats] == [[[6]]]


def _pivots(n: int, steps: int) -> Trace:
    """Each turn another process sends to all, counting down from the last turn."""
    turns = [("bcast", (800, (steps - 1 - step) % n, 1)) for step in range(steps)]
    return trace_of({rank: [("init", ()), *turns, ("finalize", ())] for rank in range(n)})


@pytest.mark.parametrize("counts", [(12, 24, 48), (8, 16, 32)])
def test_roots_that_count_down_begin_at_the_last_turn(counts: tuple[int, ...]) -> None:
    steps = 2 * counts[-1]
    rules = fit([_pivots(n, steps) for n in counts]).application
    for n in (20, 64, 200):
        assert _texts(expanded(rules, n)) == _texts(_pivots(n, steps))


def _opposite(n: int) -> Trace:
    """Each process meets the one behind it, and the one half round the ring."""

    def actions(rank: int) -> list[tuple[str, tuple[float, ...]]]:
        near, far = (rank + 1) % n, (rank + n // 2) % n
        turn = [("sendRecv", (8, near, 8, (rank - 1) % n, 1, 1)), ("sendRecv", (64, far, 64, far, 1, 1))]
        return [("init", ()), *(5 * turn), ("finalize", ())]

    return trace_of({rank: actions(rank) for rank in range(n)})


@pytest.mark.parametrize("counts", [(16, 32, 64), (8, 32, 128), (12, 20, 44)])
def test_a_partner_half_round_is_no_step_along_a_grid(counts: tuple[int, ...]) -> None:
    rules = fit([_opposite(n) for n in counts]).application
    for n in (18, 100, 256):
        assert _texts(expanded(rules, n)) == _texts(_opposite(n))


def _texts(trace: Trace) -> list[list[str]]:
    return [[trace.table.text(action) for action in process.tolist()] for process in trace.processes]


def _forth_and_back(n: int, steps: int) -> Trace:
    """One loop ends with what the next one begins with: each sends to all in turn, and then backwards."""
    forth = [[("bcast", (800, step % n, 1)), ("reduce", (16, 0, 0, 1))] for step in range(steps)]
    back = [[("reduce", (16, 0, 0, 1)), ("bcast", (8, (steps - 1 - step) % n, 1))] for step in range(steps)]
    turns = [action for pair in (*forth, *back) for action in pair]
    return trace_of({rank: [("init", ()), *turns, ("finalize", ())] for rank in range(n)})


@pytest.mark.parametrize("counts", [(12, 24, 48), (8, 16, 32)])
def test_a_loop_keeps_the_turns_that_another_one_follows(counts: tuple[int, ...]) -> None:
    steps = 2 * counts[-1]
    rules = fit([_forth_and_back(n, steps) for n in counts]).application
    for n in (20, 64, 200):
        assert _texts(expanded(rules, n)) == _texts(_forth_and_back(n, steps))


@given(st.lists(st.integers(0, 2), min_size=1, max_size=60))
def test_what_was_folded_comes_back(sequence: list[int]) -> None:
    assert unfolded(folded(sequence)).tolist() == sequence


def _faces(side: int, length: int, parts: tuple[tuple[int, int], ...]) -> Trace:
    """Parts of the faces of cells of a square, along one side of it; lengths are rounded down, and so are parts."""
    face = (length // side) ** 2

    def actions(rank: int) -> list[tuple[str, tuple[float, ...]]]:
        x, y = divmod(rank, side)
        to, from_ = x * side + (y + 1) % side, x * side + (y - 1) % side
        turn: list[tuple[str, tuple[float, ...]]] = []
        for tag, (over, below) in enumerate(parts):
            size = over * face // below
            turn += [("isend", (to, tag, size, 0)), ("recv", (from_, tag, size, 0)), ("waitall", (1,))]
        return [("init", ()), *(6 * turn), ("finalize", ())]

    return trace_of({rank: actions(rank) for rank in range(side * side)})


@pytest.mark.parametrize(
    ("length", "parts"), [(360, ((3, 1), (7, 2))), (600, ((1, 3), (2, 1))), (264, ((5, 1), (9, 2), (1, 2)))]
)
def test_parts_of_faces_are_rounded_as_the_faces_are(length: int, parts: tuple[tuple[int, int], ...]) -> None:
    rules = fit([_faces(side, length, parts) for side in (4, 6, 8)]).application
    for side in (7, 11, 16):
        assert _texts(expanded(rules, side**2)) == _texts(_faces(side, length, parts))


def test_tags_that_tell_processes_apart_hide_no_roles() -> None:
    def tag(rank: int) -> int:
        return (7 * rank * rank + rank // 3) % 5

    def ring(n: int) -> Trace:
        def step(rank: int) -> list[tuple[str, tuple[float, ...]]]:
            after, before = (rank + 1) % n, (rank - 1) % n
            return [
                ("irecv", (before, tag(before), 100, 0)), ("isend", (after, tag(rank), 100, 0)), ("waitall", (2,)),
            ]  # fmt: skip

        return trace_of({rank: [("init", ()), *(step(rank) * 4), ("finalize", ())] for rank in range(n)})

    found = fit([ring(n) for n in (8, 16, 32)])
    made = expanded(found.application, 64)
    sent = [
        [made.table.numbers[action][0] for action in process if made.table.text(action).startswith("isend")]
        for process in made.processes
    ]
    assert sent == [[(rank + 1) % 64] * 4 for rank in range(64)]
    # The tags themselves follow no rule, which is said.
    assert set(found.unruled) == {"irecv", "isend"}


def transposed(n: int) -> Trace:
    """A transposition of rows and columns of the most even grid, each among the processes of one row or column."""
    rows, columns = TOPOLOGIES["grid 01"](n)
    step = [
        ("compute", (float(2**26 // n),)),
        ("alltoall_on", (columns, 2**22 // n // columns, 2**22 // n // columns, -1, -1)),
        ("alltoall_on", (rows, 2**22 // n // rows, 2**22 // n // rows, -1, -1)),
    ]
    return trace_of({rank: [("init", ()), *(10 * step), ("finalize", ())] for rank in range(n)})


def test_what_is_cut_again_in_a_row_of_a_grid_is_a_product() -> None:
    found = fit([transposed(n) for n in (4, 8, 16)])
    assert found.ruled == 1.0
    for n in (32, 64, 256):
        made, true = expanded(found.application, n), transposed(n)
        texts = [[each.table.text(action) for action in each.processes[n - 1].tolist()] for each in (made, true)]
        assert texts[0] == texts[1]


def test_no_sum_of_two_terms_falls_below_zero_in_larger_runs() -> None:
    counts = np.array([4, 8, 16])
    samples = Samples(counts, {"r": np.zeros(3)}, 0, "line")
    values = 16_384.0 / counts - 32.0 * counts
    falling = samples.rows("line", True).paired(values)
    assert falling is not None
    assert float(falling.raw({"n": np.array([32.0])})[0]) == -512.0
    rule = number(samples, values)
    assert rule is None or float(rule({"r": np.arange(32.0), "n": np.array([32.0])}, 32).min()) >= 0.0


@given(st.lists(st.floats(1.0, 1e17), min_size=3, max_size=3))
def test_a_power_law_of_any_amounts_is_read_again(amounts: list[float]) -> None:
    law = PowerLaw.fitted([4, 8, 16], amounts)
    assert Attribute.of(Attribute(law=law).as_dict()).law == law


def boxed(n: int) -> Trace:
    """Faces of a box without wrap-around, in the grid of the roles themselves."""
    sides = TOPOLOGIES["grid 012"](n)
    lengths = [48 // side for side in sides]
    actions = {}
    for rank in range(n):
        at = [int(each[0]) for each in coordinates(np.array([rank]), sides)]
        step: list[tuple[str, tuple[float, ...]]] = [("compute", (float(np.prod(lengths)),))]
        for side in range(3):
            stride = int(np.prod(sides[side + 1 :]))
            face = 8 * int(np.prod(lengths)) // lengths[side]
            lower = rank - stride if at[side] else NULL
            upper = rank + stride if at[side] + 1 < sides[side] else NULL
            for peer, way in ((lower, 10), (upper, 20)):
                step.append(("irecv", (peer, way + side, face, -1)))
            for peer, way in ((upper, 10), (lower, 20)):
                step.append(("isend", (peer, way + side, face, -1)))
        step.append(("waitall", (2 * sum(bool(a) + (a + 1 < s) for a, s in zip(at, sides, strict=True)),)))
        actions[rank] = [("init", ()), *(20 * step), ("finalize", ())]
    return trace_of(actions)


def test_a_box_is_found_whose_faces_are_shared_along_the_sides_of_its_roles() -> None:
    found = fit([boxed(n) for n in (16, 32, 64)])
    assert found.ruled == 1.0
    made, true = expanded(found.application, 128), boxed(128)
    # The size of what is sent to nobody is any: one side is as long in all runs.
    texts = [[[each.table.text(action) for action in process if not each.table.shapes[each.table.shape[action]].nulls]
              for process in each.processes] for each in (made, true)]  # fmt: skip
    assert texts[0] == texts[1]


def swept(n: int) -> Trace:
    """Panels that places of rows and of columns send round in turn, then pipelines along both."""
    rows, columns = sorted(TOPOLOGIES["grid 01"](n), reverse=True)
    actions: dict[int, list[tuple[str, tuple[float, ...]]]] = {}
    for rank in range(n):
        row, column = divmod(rank, columns)
        body: list[tuple[str, tuple[float, ...]]] = [("init", ())]
        for step in range(12):
            body.append(("bcast_on", (columns, 15360 // rows, row * columns + step % columns, -1)))
            body.append(("bcast_on", (rows, 15360 // columns, step % rows * columns + column, -1)))
        for tag in range(4):
            body += [("recv", (rank - 1, tag, 960 // rows, -1))] * (column > 0)
            body += [("recv", (rank - columns, tag, 960 // columns, -1))] * (row > 0)
            body += [("send", (rank + 1, tag, 960 // rows, -1))] * (column < columns - 1)
            body += [("send", (rank + columns, tag, 960 // columns, -1))] * (row < rows - 1)
        actions[rank] = [*body, ("finalize", ())]
    return trace_of(actions)


def test_what_comes_round_in_rows_and_columns_is_no_loop_of_its_own_and_messages_go_along_both() -> None:
    made, true = expanded(fit([swept(n) for n in (4, 8, 16)]).application, 32), swept(32)
    # Which roots follow the fourth of a row stays open: no run has longer rows.
    kept = [[[each for each in one if not each.startswith("bcast_on")] for one in _texts(run)] for run in (made, true)]
    assert kept[0] == kept[1]
    assert [*map(len, made.processes)] == [*map(len, true.processes)]


def _rows_in_turn(n: int, turns: int) -> Trace:
    """The places of each row of a grid send to it in turn, and come round where there are more turns."""
    rows, columns = TOPOLOGIES["grid 01"](n)

    def step(rank: int, turn: int) -> list[tuple[str, tuple[float, ...]]]:
        root = rank // columns * columns + turn % columns
        return [("bcast_on", (columns, 11520 // rows, root, 6)), ("allreduce_on", (rows, 11520 // columns, 0, 6))]

    return trace_of(
        {
            rank: [("init", ()), *(action for turn in range(turns) for action in step(rank, turn)), ("finalize", ())]
            for rank in range(n)
        }
    )


@pytest.mark.parametrize("turns", [8, 10, 30])
@pytest.mark.parametrize("counts", [(8, 16, 32), (16, 32, 64)])
def test_turns_that_do_not_come_out_even_are_no_loops_of_their_own(counts: tuple[int, ...], turns: int) -> None:
    rules = fit([_rows_in_turn(n, turns) for n in counts]).application
    for n in (64, 128, 144):
        assert _texts(expanded(rules, n)) == _texts(_rows_in_turn(n, turns))
