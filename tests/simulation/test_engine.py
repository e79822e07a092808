"""Groups of processes agree with every process by itself; what cannot run is refused with its lines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from one_by_one import clocks

from metasched.blocks.entry import Block, Entry, Kind, Quantity
from metasched.blocks.terms import Term
from metasched.records import InputError
from metasched.simulation.engine import STEPS, Simulation
from metasched.simulation.groups import progressions
from metasched.simulation.language import parse
from metasched.simulation.outcome import simulate
from metasched.simulation.system import Network, Nodes, Placement, Slowed, System


def entry(name: str, kind: Kind = Kind.cpu, **values: tuple[float, str]) -> Entry:
    return Entry(name, kind, "", {key: Quantity(*each, "made up") for key, each in values.items()})


CPU = entry("cpu", peak_double=(1e9, "flop/s"), tdp=(100, "W"), cores=(1, "1"))
LAN = entry("lan", Kind.link, bandwidth=(1e6, "B/s"), latency=(1, "ms"))
BUS = entry("bus", Kind.bus, bandwidth=(1e8, "B/s"))
SLOW = entry("wan", Kind.link, bandwidth=(1e5, "B/s"), latency=(50, "ms"))


def system(slots: int = 1, count: int = 256, bus: Entry | None = None, **labels: int) -> System:
    nodes = Nodes("n", count, "lan", CPU, labels or {"w": slots}, bus, failure_rate=1e-6)
    return System("made up", (Network("lan", LAN),), (nodes,))


def ended(text: str, processes: int, slots: int = 1, bus: Entry | None = None, together: bool = True) -> np.ndarray:
    """When each process of label w ends."""
    where = Placement(system(slots, bus=bus), {"w": processes})
    times = np.zeros(processes)
    for group in Simulation(parse(text), where, steps=50_000_000, together=together).run():
        times[group.ranks.start : group.ranks[-1] + 1 : group.ranks.step] = group.clock
    return times


#: Rounds that every process goes through without waiting for ever, whatever the number of processes.
ROUNDS = [
    "    compute({n} + {m} * rank)\n",
    "    compute({n}, data ** 1.5, 2)\n",
    "    if rank % {k} == 0:\n        compute({n})\n",
    "    if rank < {k}:\n        compute({n} * (rank + 1))\n    else:\n        compute({m})\n",
    "    send(w[(rank + {k}) % size], {n})\n    recv(w[(rank - {k}) % size])\n",
    "    if rank > 0:\n        send(w[rank - 1], {n})\n    if rank < size - 1:\n        send(w[rank + 1], {m})\n"
    "    if rank > 0:\n        recv(w[rank - 1])\n    if rank < size - 1:\n        recv(w[rank + 1])\n",
    "    if rank > 0:\n        recv(w[rank - 1])\n    compute({n})\n"
    "    if rank < size - 1:\n        send(w[rank + 1], {m})\n",
    "    if rank == 0:\n        for i in range(1, size):\n            send(w[i], {n} + i)\n"
    "        for i in range(1, size):\n            recv(w[i])\n"
    "    else:\n        recv(w[0])\n        compute({m} * rank)\n        send(w[0], {m})\n",
    "    step = 1\n    while step < size:\n        if rank % (2 * step) == 0 and rank + step < size:\n"
    "            recv(w[rank + step])\n        if rank % (2 * step) == step:\n            send(w[rank - step], {n})\n"
    "        step = 2 * step\n",
    "    barrier()\n",
    "    bcast({n})\n",
    "    scatter({n})\n    gather({m})\n",
    "    alltoall({m})\n",
    "    for i in range({k}):\n        send(w[size - 1 - rank], {n} * i)\n    for i in range({k}):\n"
    "        recv(w[size - 1 - rank])\n",
]
AMOUNTS = st.fixed_dictionaries({"n": st.integers(1, 10**6), "m": st.integers(1, 10**5), "k": st.integers(1, 5)})
TEXTS = st.lists(st.tuples(st.sampled_from(ROUNDS), AMOUNTS), min_size=1, max_size=5).map(
    lambda rounds: "def w():\n" + "".join(each.format(**amounts) for each, amounts in rounds)
)


NUMBERS = st.sampled_from(
    ["rank", "rank", "size", "0", "1", "2", "3", "7", "10", "0.5", "0.7", str(2**53 - 1), str(2**62)]
)


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Expressions of smaller ones; powers only of small numbers, whose last digit is sure."""
    two = st.sampled_from(["+", "-", "*", "/", "//", "%", "<", "<=", "==", "!="])
    return st.one_of(
        st.builds("({} {} {})".format, inner, two, inner),
        st.builds("{}({})".format, st.sampled_from(["abs", "int", "floor", "ceil"]), inner),
        st.builds("{}({}, {})".format, st.sampled_from(["min", "max"]), inner, inner),
        st.builds("({} < {} {} {} > {})".format, inner, inner, st.sampled_from(["and", "or"]), inner, inner),
        st.builds(
            "((rank {} 3) ** {})".format, st.sampled_from(["+", "-", "%"]), st.sampled_from(["2", "0.5", "-1", "30"])
        ),
    )


def outcome(text: str, processes: int, together: bool) -> list[float] | None:
    """When each process ends; None where the program is refused."""
    try:
        return ended(text, processes, 4, together=together).tolist()
    except InputError:
        return None


@settings(deadline=None, max_examples=300)
@given(st.recursive(NUMBERS, larger, max_leaves=8), st.integers(1, 9))
@example("(rank // 0)", 4)
@example("(8 % rank)", 4)
@example("(rank < 2) + (rank < 3)", 4)
@example("(rank < 2) - (rank < 3)", 4)
@example("rank > 0 and 10 / rank > 2", 4)
@example("(0 - 8) ** 0.5", 4)
@example("(rank * 1e300) * 1e300 - (rank * 1e300) * 1e300", 4)
@example("int((rank % 4 + 1) * 1e200)", 4)
@example("(rank % 4 + 1)" + " * 3" * 42, 4)
@example("(rank % 8) * 2305843009213693952 < 0", 8)
@example("floor(rank * 0.7 * 10)", 4)
@example("floor((rank + 0.1) * 10 - rank * 10)", 9)
def test_a_group_computes_what_each_process_by_itself_computes(expression: str, processes: int) -> None:
    text = f"def w():\n    x = {expression}\n    compute(1e3 * min(abs(x), 1e9))\n    if x < 0:\n        compute(7)\n"
    alone = outcome(text, processes, together=False)
    assert outcome(text, processes, together=True) == (None if alone is None else pytest.approx(alone, rel=1e-9))


@settings(deadline=None, max_examples=200)
@given(st.recursive(NUMBERS, larger, max_leaves=6), st.integers(1, 9))
@example("rank / 2", 9)
@example("rank / 2 * 2", 9)
@example("0.5 * rank", 9)
@example("0.5 * rank + 0.5 * rank", 9)
@example("rank + 0.5", 9)
@example("rank + 0", 9)
@example("rank + 1", 9)
@example("size - rank", 9)
def test_a_group_sends_to_what_is_no_process_where_one_of_its_own_does(expression: str, processes: int) -> None:
    """Else all that is said is that nobody receives it."""
    answers = []
    for together in (True, False):
        with pytest.raises(InputError) as refused:
            ended(f"def w():\n    send(w[{expression}], 1)\n", processes, 4, together=together)
        answers.append("which never receives it" in str(refused.value))
    assert answers[0] == answers[1]


@settings(deadline=None, max_examples=60)
@given(TEXTS, st.integers(1, 40), st.integers(1, 5), st.sampled_from([None, BUS]))
def test_groups_end_when_each_process_by_itself_ends(text: str, processes: int, slots: int, bus: Entry | None) -> None:
    expected = ended(text, processes, slots, bus, together=False)
    assert ended(text, processes, slots, bus) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("processes", [1, 2, 7, 256])
def test_every_round_agrees_with_processes_one_by_one(processes: int) -> None:
    text = "def w():\n" + "".join(each.format(n=5000, m=300, k=3) for each in ROUNDS)
    assert ended(text, processes, 4, BUS) == pytest.approx(ended(text, processes, 4, BUS, together=False), rel=1e-9)


def looped(text: str, rounds: int) -> str:
    """An application that goes through all that another does so many times, with a stretch of its own before."""
    first, _, body = text.partition("\n")
    again = "".join(f"    {line}\n" for line in body.splitlines())
    return f"{first}\n    compute(3e4 * (rank + 1))\n    for turn in range({rounds}):\n{again}"


@settings(deadline=None, max_examples=60)
@given(TEXTS, st.integers(1, 12), st.integers(1, 5), st.integers(2, 40))
def test_rounds_that_repeat_end_when_each_by_itself_ends(text: str, processes: int, slots: int, rounds: int) -> None:
    text = looped(text, rounds)
    expected = ended(text, processes, slots, BUS, together=False)
    assert ended(text, processes, slots, BUS) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("expression", "values"),
    [
        ("max(2000, 1000 * rank, 500)", [2000, 2000, 2000, 3000]),
        ("min(2000, 1000 * (rank + 1), 2500)", [1000, 2000, 2000, 2000]),
    ],
)
def test_the_largest_and_the_smallest_of_several_numbers_count(expression: str, values: list[int]) -> None:
    alone = [ended(f"def w():\n    compute({value})\n", 1).max() for value in values]
    assert ended(f"def w():\n    compute({expression})\n", 4) == pytest.approx(alone)


#: Loops with messages and without: of two numbers of processes that alternate, in loops, beside processes that wait.
LOOPS = [
    ROUNDS[5],
    ROUNDS[6] + ROUNDS[9],
    ROUNDS[4] + "    for k in range(3):\n        compute({m})\n        barrier()\n",
    ROUNDS[7],
    "    if rank == 0:\n        recv(w[1])\n    else:\n        for k in range(12):\n            compute({n})\n"
    "            if rank > 1:\n                send(w[rank - 1], {m})\n            if rank < size - 1:\n"
    "                send(w[rank + 1], {m})\n                recv(w[rank + 1])\n"
    "            if rank > 1:\n                recv(w[rank - 1])\n        if rank == 1:\n            send(w[0], {m})\n",
]


@pytest.mark.parametrize("text", LOOPS)
def test_rounds_that_repeat_are_not_run_again(text: str) -> None:
    alone, times, ran = [], [], []
    for rounds in (30, 3000):
        several = looped("def w():\n" + text.format(n=5000, m=300, k=3), rounds)
        simulation = Simulation(parse(several), Placement(system(4, bus=BUS), {"w": 12}))
        times.append(max(float(np.max(group.clock)) for group in simulation.run()))
        ran.append(STEPS - simulation.steps)
        if rounds == 30:
            alone.append(ended(several, 12, 4, BUS, together=False).max())
    assert times[0] == pytest.approx(alone[0], rel=1e-9)
    assert times[1] > 90 * times[0]
    assert ran[1] < 1.2 * ran[0]


def test_busy_times_and_pictures_go_on_through_rounds_that_are_skipped() -> None:
    text = "def w():\n    for i in range({}):\n        compute(1e6)\n        barrier()\n"
    few, many = (simulate(system(), parse(text.format(rounds)), {"w": 4}) for rounds in (10, 100))
    counted = [Simulation(parse(text.format(n)), Placement(system(), {"w": 4}), steps=150).run() for n in (10, 10**12)]
    (group,), (forever,) = counted
    assert float(group.busy) == pytest.approx(0.01)
    assert float(forever.busy) == pytest.approx(1e9)
    assert forever.clock == pytest.approx(1e11 * group.clock)
    assert many.execution_time == pytest.approx(10 * few.execution_time, rel=1e-12)
    drawn = many.groups[0].drawn
    assert [each[0] for each in drawn] == ["compute", "barrier"] * 100
    assert [one[2] for one in drawn[:-1]] == pytest.approx([other[1] for other in drawn[1:]])


def test_rounds_that_ask_how_often_they_were_run_are_all_run() -> None:
    text = "def w():\n    for i in range(20):\n        compute(1e6 * i)\n        barrier()\n"
    assert ended(text, 4).max() == pytest.approx(190e-3 + 20 * 2e-3)


def message(size: float) -> float:
    return 1e-3 + size / 1e6


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 24), st.lists(st.integers(1, 10**6), min_size=3, max_size=3), st.integers(1, 3))
def test_clocks_agree_with_simpy(processes: int, amounts: list[int], rounds: int) -> None:
    work, size, shift = amounts[0], amounts[1], amounts[2] % processes
    text = f"""
def w():
    for i in range({rounds}):
        compute({work} * (1 + rank % 3))
        send(w[(rank + {shift}) % size], {size})
        recv(w[(rank - {shift}) % size])
        if rank > 0:
            recv(w[rank - 1])
        compute({work})
        if rank < size - 1:
            send(w[rank + 1], {size})
        barrier()
"""
    meet = np.ceil(np.log2(processes)) * 1e-3
    actions = {
        rank: [
            action
            for _ in range(rounds)
            for action in [
                ("work", work * (1 + rank % 3) / 1e9, None),
                ("send", message(size), (rank + shift) % processes),
                ("recv", 0.0, (rank - shift) % processes),
                *([("recv", 0.0, rank - 1)] if rank > 0 else []),
                ("work", work / 1e9, None),
                *([("send", message(size), rank + 1)] if rank < processes - 1 else []),
                ("meet", meet, None),
            ]
        ]
        for rank in range(processes)
    }
    bus = entry("bus", Kind.bus, bandwidth=(1e6, "B/s"), latency=(1, "ms"))
    expected = clocks(actions)
    assert ended(text, processes, bus=bus).tolist() == pytest.approx(
        [expected[rank] for rank in range(processes)], rel=1e-9
    )


def test_a_master_sends_one_after_another_and_slaves_become_a_progression() -> None:
    text = """
def master():
    for i in range(len(slave)):
        send(slave[i], 1e6)
    for i in range(len(slave)):
        recv(slave[i])

def slave():
    recv(master)
    compute(1e9)
    send(master, 0)
"""
    answer = simulate(system(master=1, slave=1, count=50), parse(text), {"master": 1, "slave": 49})
    assert answer.labels["slave"].finished == pytest.approx(49 * message(1e6) + 2.0 + message(0))
    assert len([group for group in answer.groups if group.label == "slave"]) == 1
    assert answer.execution_time == pytest.approx(49 * message(1e6) + 2.0 + message(0))


def test_messages_cross_the_lowest_common_level_and_collectives_each_level() -> None:
    networks = (Network("wan", SLOW), Network("east", LAN, "wan"), Network("west", LAN, "wan"))
    nodes = [Nodes(name, 2, name, CPU, {"w": 2}, BUS) for name in ("east", "west")]
    where = Placement(System("two sites", networks, tuple(nodes)), {"w": 8})
    here = where.nodes_of("w", range(8))
    assert where.message(here[[0]], here[[1]], 1e4) == pytest.approx(1e-4)
    assert where.message(here[[0]], here[[2]], 1e4) == pytest.approx(1e-3 + 1e-2)
    assert where.message(here[[0]], here[[4]], 1e4) == pytest.approx(5e-2 + 1e-1)
    assert where.collective(Block.bcast, ["w"], 1e4) == pytest.approx(1e-4 + (1e-3 + 1e-2) + (5e-2 + 1e-1))


def test_of_networks_of_different_depth_each_is_crossed_once_when_all_within_it_are_done() -> None:
    """Four nodes on a LAN within a WAN and six on the WAN itself, which are seven there."""
    wan = entry("wan", Kind.link, bandwidth=(1e6, "B/s"))
    lan = entry("lan", Kind.link, bandwidth=(1e9, "B/s"))
    networks = (Network("wan", wan), Network("lan", lan, "wan"), Network("elsewhere", lan))
    inner, outer = Nodes("inner", 4, "lan", CPU, {"w": 1}), Nodes("outer", 6, "wan", CPU, {"w": 1})
    where = Placement(System("two depths", networks, (inner, outer)), {"w": 10})
    assert where.collective(Block.bcast, ["w"], 1e6) == pytest.approx(2 * 1e-3 + 3 * 1.0)
    assert where.collective(Block.scatter, ["w"], 1e6) == pytest.approx(3 / 4 * 4 / 10 * 1e-3 + 6 / 7 * 1.0)
    # The slow bus of a node on the WAN is crossed while those on the LAN are under way.
    bus = entry("slow", Kind.bus, bandwidth=(1e9, "B/s"))
    kinds = (inner, Nodes("outer", 6, "wan", CPU, {"w": 2}, bus))
    where = Placement(System("two depths", networks, kinds), {"w": 16})
    assert where.collective(Block.bcast, ["w"], 1e6) == pytest.approx(2 * 1e-3 + 3 * 1.0)
    apart = (inner, Nodes("outer", 6, "elsewhere", CPU, {"w": 1}))
    with pytest.raises(InputError, match="no network connects"):
        Placement(System("apart", networks, apart), {"w": 10}).collective(Block.bcast, ["w"], 1e6)


def test_each_level_carries_the_data_of_its_own_processes() -> None:
    """Two nodes of four processes on each of two LANs: what is sent between two of them crosses one level."""
    wan, lan, bus = (
        entry(name, Kind.link, bandwidth=(bandwidth, "B/s"))
        for name, bandwidth in (("wan", 1e6), ("lan", 1e9), ("bus", 1e12))
    )
    networks = (Network("wan", wan), Network("east", lan, "wan"), Network("west", lan, "wan"))
    nodes = tuple(Nodes(name, 2, name, CPU, {"w": 4}, bus) for name in ("east", "west"))
    where = Placement(System("two sites", networks, nodes), {"w": 16})
    # Four of sixteen parts in a node, eight on a LAN, all on the WAN; of each, what does not stay with its root.
    scattered = 3 / 4 * 4 / 16 * 1e-6 + 1 / 2 * 8 / 16 * 1e-3 + 1 / 2 * 1.0
    for block in (Block.scatter, Block.gather):
        assert where.collective(block, ["w"], 1e6) == pytest.approx(scattered)
    # Each process sends 1 MB to three others in its node; each node 4 x 4 to the other one, each LAN 8 x 8.
    assert where.collective(Block.alltoall, ["w"], 1e6) == pytest.approx(3 * 1e-6 + 16 * 1e-3 + 64 * 1.0)
    # A node of one process and one of four: what crosses is sent by one to four.
    where = Placement(System("a site", networks[:2], nodes[:1]), {"w": 5})
    assert where.collective(Block.alltoall, ["w"], 1e6) == pytest.approx(3 * 1e-6 + 4 * 1e-3)


def test_entries_with_the_same_name_have_times_of_their_own() -> None:
    wan = entry("lan", Kind.link, bandwidth=(1e3, "B/s"))
    networks = (Network("wan", wan), Network("lan", entry("lan", Kind.link, bandwidth=(1e6, "B/s")), "wan"))
    nodes = tuple(Nodes(name, 2, name, CPU, {"w": 1}) for name in ("lan", "wan"))
    where = Placement(System("s", networks, nodes), {"w": 4})
    assert where.message(np.array([0]), np.array([1]), 1e4) == pytest.approx(1e-2)
    assert where.message(np.array([0]), np.array([2]), 1e4) == pytest.approx(10.0)


def test_a_network_of_which_another_block_was_fitted_has_its_bandwidth() -> None:
    fitted = replace(LAN, blocks={Block.power: (Term(3.0),), Block.barrier: (Term(0.5),)})
    messages = entry("net", Kind.link, bandwidth=(1e6, "B/s"), D_tu=(1, "B"), T_p2p=(0.1, "s"), K_p2p=(1e-5, "s/B"))
    for network, message, bcast, barrier in ((fitted, 0.011, 0.011, 0.5), (messages, 0.2, 0.01, 0.0)):
        nodes = Nodes("n", 2, "lan", CPU, {"w": 1})
        where = Placement(System("s", (Network("lan", network),), (nodes,)), {"w": 2})
        assert where.message(np.array([0]), np.array([1]), 1e4) == pytest.approx(message)
        assert where.collective(Block.bcast, ["w"], 1e4) == pytest.approx(bcast)
        assert where.collective(Block.barrier, ["w"], 0.0) == pytest.approx(barrier)


def test_a_node_without_slots_draws_its_idle_power() -> None:
    spare = Nodes("spare", 1, "lan", entry("cpu", tdp=(100, "W"), idle_power=(10, "W")), {})
    assert spare.power(np.array([0])).tolist() == [10.0]


def test_a_slower_network_leaves_disks_as_they_are() -> None:
    disk = entry("disk", Kind.disk, bandwidth=(1e8, "B/s"))
    nodes = Nodes("n", 2, "lan", CPU, {"w": 1}, disk=disk)
    where = Slowed(System("s", (Network("lan", LAN),), (nodes,)), {"w": 2}, 1.0, 10.0)
    for block in (Block.read, Block.write):
        assert where.disk("w", range(2), block, 1e9) == pytest.approx(10.0)
    assert where.message(np.array([0]), np.array([1]), 1e6) == pytest.approx(1e-3 + 10.0)


def test_energy_is_what_active_processes_draw_until_each_has_ended() -> None:
    text = "def w():\n    compute(1e9 * (1 + rank))\n"
    answer = simulate(system(slots=4, count=1), parse(text), {"w": 3})
    # four slots share the processor: 4, 8 and 12 s at a quarter of 100 W each
    assert answer.execution_time == pytest.approx(12.0)
    assert answer.energy == pytest.approx(25.0 * (4 + 8 + 12))
    assert answer.labels["w"].energy == pytest.approx(answer.energy)
    assert (answer.peak_power, answer.mean_power) == (pytest.approx(75.0), pytest.approx(answer.energy / 12))
    assert answer.success == pytest.approx(np.exp(-1e-6 * 12))
    assert answer.expected_completion == pytest.approx(np.expm1(1e-6 * 12) / 1e-6)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("def a():\n    recv(b)\n\ndef b():\n    recv(a)\n", r"deadlock: .* waits at line (2|5).* waits at line (2|5)"),
        (
            "def a():\n    send(b, 1)\n\ndef b():\n    send(a, 1)\n",
            r"deadlock: .* at line 2.*ended at line 5|line 5.*line 2",
        ),
        (
            "def a():\n    recv(b)\n\ndef b():\n    compute(1)\n",
            r"deadlock: a\[0\] waits at line 2 .* b\[0\] has ended at line 5",
        ),
        ("def a():\n    barrier(a, b)\n\ndef b():\n    recv(a)\n", r"deadlock: .*line 5.*line 2"),
        (
            "def a():\n    barrier(a, b)\n\ndef b():\n    bcast(1, a, b)\n",
            r"calls (bcast of 1 bytes|barrier) at line \d, where .* calls (bcast of 1 bytes|barrier) at line \d",
        ),
        ("def a():\n    while 1:\n        compute(1)\n\ndef b():\n    pass\n", r"line \d: the application runs more"),
        ("def a():\n    send(b[7], 1)\n\ndef b():\n    recv(a)\n", r"line 2: b\[7\] is no process, there are 1"),
        ("def a():\n    send(b, -1)\n\ndef b():\n    recv(a)\n", "line 2: the data size is -1"),
        ("def a():\n    compute(1 / (size - 1))\n\ndef b():\n    pass\n", "line 2: .*division by zero"),
        ("def a():\n    compute(x)\n\ndef b():\n    pass\n", "line 2: x has no value"),
        ("def a():\n    compute(9 ** 9 ** 9 ** 9)\n\ndef b():\n    pass\n", "line 2: a number is too large$"),
        (
            "def a():\n    for i in range(10**30):\n        compute(1)\n\ndef b():\n    pass\n",
            "line 2: a number is too large$",
        ),
    ],
)
def test_what_cannot_run_is_refused_with_its_lines(text: str, lines: str) -> None:
    with pytest.raises(InputError, match=lines) as refused:
        Simulation(parse(text), Placement(system(a=1, b=1), {"a": 1, "b": 1}), steps=5_000).run()
    assert "\n" not in str(refused.value)


@given(st.lists(st.booleans(), min_size=1, max_size=60), st.integers(0, 9), st.integers(1, 4))
def test_progressions_are_the_chosen_ranks(chosen: list[bool], start: int, step: int) -> None:
    ranks = range(start, start + step * len(chosen), step)
    found = [rank for each in progressions(ranks, np.array(chosen)) for rank in each]
    assert found == [rank for rank, keep in zip(ranks, chosen, strict=True) if keep]


def test_a_collective_within_nodes_takes_as_long_as_on_the_kind_that_it_takes_longest() -> None:
    slow = entry("slow bus", Kind.bus, bandwidth=(1e6, "B/s"))
    kinds = (Nodes("few", 1, "lan", CPU, {"w": 2}, slow), Nodes("many", 1, "lan", CPU, {"w": 8}, BUS))
    where = Placement(System("made up", (Network("lan", LAN),), kinds), {"w": 10})
    # Two processes over the slow bus take one step, eight over the fast one three, which take less.
    assert where.collective(Block.bcast, ["w"], 1e4) == pytest.approx(1e4 / 1e6 + (1e-3 + 1e-2))
    assert where.collective(Block.barrier, ["w"], 0) == pytest.approx(1e-3)
