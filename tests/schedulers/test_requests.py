"""What the words of each scheduler's command ask for, and that a placed command asks for the same elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasched.schedulers.flux import submission as of_flux
from metasched.schedulers.grid_engine import submission as of_grid_engine
from metasched.schedulers.htcondor import submission as of_htcondor
from metasched.schedulers.oar import submission as of_oar
from metasched.schedulers.pbs import submission as of_pbs
from metasched.schedulers.slurm import submission as of_slurm
from metasched.schedulers.submission import JobRequest


@dataclass(frozen=True)
class Command:
    """How a scheduler's command is read, words before all options, some options, and the script with its own words."""

    asked_for: Callable[[Sequence[str]], JobRequest]
    placed: Callable[[Sequence[str], str], list[str]]
    options: tuple[str, ...]
    script: tuple[str, ...]
    head: tuple[str, ...] = ()


COMMANDS = {
    "slurm": Command(
        of_slurm.asked_for, of_slurm.placed,
        ("-n 4", "-n5", "--ntasks=6", "-N 2", "-N2-4", "--ntasks-per-node 3", "-p slow", "-pslow,old", "--hold", "-vQ",
         "--exclusive", "--nice=5", "-J name", "-vJ name", "--comment metasched:app=cg,n=900", "--gres=gpu:1", "-G1"),
        ("none.sh", "-n", "9", "-p", "own"),
    ),
    "grid_engine": Command(
        of_grid_engine.asked_for, of_grid_engine.placed,
        ("-pe mpi 2-16", "-pe mpi 4", "-q slow", "-q slow,old", "-cwd", "-hard", "-N name", "-binding env linear:1",
         "-binding linear:2", "-V", "-ac owner=me,metasched=app=cg,n=900", "-notify"),
        ("none.sh", "-q", "own", "-pe", "mpi", "9"),
    ),
    "pbs": Command(
        of_pbs.asked_for, of_pbs.placed,
        ("-l select=2:ncpus=3", "-lncpus=4", "-q slow", "-qslow@host", "-V", "-z", "-N name",
         "-v A=1,METASCHED=app=cg:n=900", "-l walltime=1:0:0"),
        ("none.sh", "-q", "own", "-l", "ncpus=9"),
    ),
    "htcondor": Command(
        of_htcondor.asked_for, of_htcondor.placed,
        ("-append request_cpus=4", "-a request_cpus=5", "request_cpus=6", "-terse", "-name host", "-spool",
         '+Metasched="app=cg,n=900"'),
        ("none.sub",),
    ),
    "flux": Command(
        of_flux.asked_for, of_flux.placed,
        ("-n 4", "-n5", "--ntasks=6", "-q slow", "--queue=slow", "-x", "--quiet", "-N 2",
         "--setattr=user.metasched=app=cg,n=900", "--setattr other=1"),
        ("./cg", "-n", "9", "-q", "own"), head=("submit",),
    ),
    "oar": Command(
        partial(of_oar.asked_for, attribute="cluster"), partial(of_oar.placed, attribute="cluster"),
        ("-l nodes=2/core=3,walltime=1:0:0", "-lcore=4", "--resource=core=5", "-p gpu='NO'", "-pgpu='NO'",
         "--property=gpu='NO'", "-S", "--hold", "-n name"),
        ("METASCHED=app=cg,n=900 ./cg", "-l", "core=9"),
    ),
}  # fmt: skip


@given(data=st.data())
@pytest.mark.parametrize("kind", COMMANDS)
def test_a_placed_command_asks_for_the_same_in_one_partition_and_keeps_its_script(
    kind: str, data: st.DataObject
) -> None:
    command = COMMANDS[kind]
    drawn = data.draw(st.lists(st.sampled_from(command.options), max_size=5, unique_by=lambda each: each[:2]))
    before = [*command.head, *(word for each in drawn for word in each.split(" ", 1 if kind == "oar" else -1))]
    words = [*before, *command.script]
    made = command.placed(words, "chosen")
    assert made[-len(command.script) :] == list(command.script)
    found, again = command.asked_for(words), command.asked_for(made)
    assert again == replace(found, partitions=("chosen",))
    assert not {"own", "9"} & {*found.partitions, str(found.processors)}


@pytest.mark.parametrize(
    ("kind", "words", "processors", "partitions"),
    [
        ("slurm", "-N2 --ntasks-per-node 3 -pslow,,old", 6, ("slow", "old")),
        ("slurm", "-N 2-4 -n 5", 5, ()),
        ("slurm", "-N 2-4", 2, ()),
        ("slurm", "-N many --ntasks-per-node=3", 3, ()),
        ("slurm", "-n many -p slow", 1, ()),
        ("grid_engine", "-pe mpi 2-16 -q slow,,old", 2, ("slow", "old")),
        ("grid_engine", "-pe mpi many -soft -q slow -hard -q old", 1, ("old",)),
        ("grid_engine", "-binding env linear:1 -pe mpi 3", 3, ()),
        ("grid_engine", "-binding linear:1 -pe mpi 3", 3, ()),
        ("grid_engine", "-pe mpi", 1, ()),
        ("grid_engine", "-q slow -q old", 1, ("slow", "old")),
        ("pbs", "-l select=2:ncpus=3+ncpus=4", 10, ()),
        ("pbs", "-l walltime=60,ncpus=4 -q slow@host", 4, ("slow",)),
        ("pbs", "-q @host -l ncpus=0", 1, ()),
        ("pbs", "-q slow --unknown", 1, ()),
        ("htcondor", "-append request_cpus=4 none.sub", 4, ()),
        ("htcondor", "-a none.sub request_cpus=4", 4, ()),
        ("htcondor", "request_cpus=0", 1, ()),
        ("htcondor", "request_cpus=many", 1, ()),
        ("flux", "submit -n 0 -q slow", 1, ("slow",)),
        ("flux", "submit -xn4 -q slow", 1, ("slow",)),
        ("oar", "-l nodes=2/core=3,walltime=1:0:0", 6, ()),
        ("oar", "-l {mem>4}/core=3 -p cluster='slow'", 3, ("slow",)),
        ("oar", "-l", 1, ()),
        ("oar", "-lcore=4 -pcluster='slow'", 4, ("slow",)),
        ("oar", "--resource=core=5 -p cluster='slow'or(cluster='old')", 5, ("slow",)),
    ],
)
def test_requests_are_read_from_the_words_of_the_command(
    kind: str, words: str, processors: int, partitions: tuple[str, ...]
) -> None:
    found = COMMANDS[kind].asked_for(words.split())
    assert (found.processors, found.partitions) == (processors, partitions)
