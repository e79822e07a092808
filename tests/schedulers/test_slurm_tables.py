"""What single tables of Slurm say: odd cells, limits, devices, and the energy of jobs on several nodes."""

from __future__ import annotations

import pytest

from metasched.energy_share import Coverage
from metasched.schedulers.slurm.cells import nodes_in
from metasched.schedulers.slurm.devices import had
from metasched.schedulers.slurm.energy import MeteredJob, accounted, energies
from metasched.schedulers.slurm.limits import Holder, read_limits


def test_nodes_that_are_none_are_no_nodes() -> None:
    assert nodes_in("n[1-2]") == ("n1", "n2")
    assert nodes_in("n[1-") == ()


def test_a_row_whose_nodes_are_none_is_passed_over() -> None:
    row = {"AllocCPUS": "2", "Start": "100", "End": "200", "TotalCPU": "00:10", "ConsumedEnergyRaw": "7"}
    rows = [row | {"JobIDRaw": "1", "NodeList": "n[1-"}, row | {"JobIDRaw": "2", "NodeList": "n[1-2]"}]
    assert accounted(rows) == {"2": MeteredJob(("n1", "n2"), 2.0, 100.0, 200.0, 10.0, 7.0)}


def test_jobs_that_share_two_nodes_are_given_their_parts_of_both() -> None:
    jobs = {
        name: MeteredJob(("n1", "n2"), 4.0, 100.0, 200.0, used, 2000.0) for name, used in (("1", 300.0), ("2", 100.0))
    }
    found = energies(["1", "2"], jobs, {"n1": 4, "n2": 4}, Coverage("node"))
    assert found == pytest.approx({"1": 1500.0, "2": 500.0})
    assert energies(["1"], jobs, {"n1": 4}, Coverage("node")) == {}  # how large n2 is, is not known


def test_an_allocated_device_without_a_type_has_the_one_that_was_asked_for_of_its_name() -> None:
    assert had({("gpu", "a100"): 0, ("fpga", "x"): 1}, {("gpu", ""): 2}) == {("fpga", "x"): 1, ("gpu", "a100"): 2}
    assert had({("gpu", "a100"): 1, ("gpu", "v100"): 1}, {("gpu", ""): 2}) == {("gpu", ""): 2}


def test_accounts_that_are_each_others_parents_have_the_limits_of_both() -> None:
    # As no sacctmgr should print them.
    limits = read_limits("", "bio|||chem|cpu=8||\nchem|||bio|node=6||\n")
    found = limits.of(Holder("normal", "ann", "bio"), "batch")
    assert (found.processors, found.nodes, found.time) == (8, 6, None)


@pytest.mark.parametrize(
    ("over", "user", "processors", "nodes"),
    [("", "cpu=6", 4, 3), ("OverPartQOS", "cpu=6", 2, 3), ("", "cpu=1,node=1", 4, 3)],
)
def test_the_first_that_sets_a_limit_counts_and_the_partitions_qos_comes_first_unless_another_goes_over_it(
    over: str, user: str, processors: int, nodes: int
) -> None:
    qos = f"part||cpu=4||||\nown|{over}|cpu=2,node=3||||00:10:00\n"
    limits = read_limits(qos, f"bio|ann|||{user}||\nbio||||node=9||\n")
    found = limits.of(Holder("own", "ann", "bio"), "batch", "part")
    assert (found.processors, found.nodes, found.time) == (processors, nodes, 600.0)


@pytest.mark.parametrize(("accounts", "processors"), [(("bio",), 6), (("bio", "chem"), None)])
def test_a_job_without_an_account_has_that_of_a_user_who_has_one_alone(
    accounts: tuple[str, ...], processors: int | None
) -> None:
    limits = read_limits("", "".join(f"{each}|ann|||cpu=6||\n" for each in accounts))
    assert limits.of(Holder("own", "ann"), "batch").processors == processors
