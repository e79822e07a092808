"""Jobs that say nothing but what they run: the hooks of all schedulers but Slurm place them by numbers they state."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.deploy import flux_stand_in, oar_rule, pbs_hook
from tests.deploy.job_verifier import JOB, Verifier
from tests.deploy.pbs_hook import JOBOBIT
from tests.deploy.test_epilog import pythons
from tests.deploy.test_pbs_hook import ENDED
from tests.system.bad_daemons import FAULTS, Bad, hang, http
from tests.system.test_lua_hook import SIZED, sizing

#: Hands a job of a name and with arguments to a hook that asks this daemon, in a folder, and says what was changed.
Submit = Callable[[Path, Bad, str, tuple[str, ...], float], dict[str, Any]]
NAME, ARGUMENTS = "run7.sh", ("case.in", "-n", "400")


def listed(words: tuple[str, ...]) -> str:
    return "".join(f"<jsdl-hpcpa:Argument>{word}</jsdl-hpcpa:Argument>" for word in words)


def conf(daemon: Bad, deadline: float) -> str:
    settings = "nodes = b[1-4]\nqueues = old, new\nproperty = cluster\npartitions = old, new\n"
    return f"address = {daemon.address}\ndeadline = {deadline}\n{settings}"


def grid_engine_job(name: str, words: tuple[str, ...]) -> dict[str, str]:
    given = {f"CMDARG{place}": word or "(null)" for place, word in enumerate(words)}
    return {key: value for key, value in JOB.items() if key != "ac"} | {"N": name, "CMDARGS": f"{len(words)}"} | given


def to_grid_engine(folder: Path, daemon: Bad, name: str, words: tuple[str, ...], deadline: float) -> dict[str, Any]:
    with Verifier(folder, conf(daemon, deadline)) as verifier:
        return verifier.judge(grid_engine_job(name, words))[1]


def to_pbs(folder: Path, daemon: Bad, name: str, words: tuple[str, ...], deadline: float) -> dict[str, Any]:
    job = pbs_hook.JOB | {"Job_Name": name, "Variable_List": {}, "queue": None, "argument_list": listed(words)}
    return pbs_hook.changed(folder, conf(daemon, deadline), job)


def to_flux(folder: Path, daemon: Bad, name: str, words: tuple[str, ...], deadline: float) -> dict[str, Any]:
    spec = copy.deepcopy(flux_stand_in.SPEC)
    spec["attributes"] = {"system": {"duration": 500, "job": {"name": name}}}
    spec["tasks"][0]["command"] = ["./solve", *words]
    after = flux_stand_in.frobbed(folder, conf(daemon, deadline), spec)
    return {} if after == spec["attributes"] else dict(after)


def to_oar(folder: Path, daemon: Bad, name: str, words: tuple[str, ...], deadline: float) -> dict[str, Any]:
    if why := oar_rule.why_not():
        pytest.skip(why)
    job = {"job_name": name, "command": " ".join(("./solve", *words))}
    return oar_rule.changed(folder, conf(daemon, deadline), job=job)


SUBMITS = (to_grid_engine, to_pbs, to_flux, to_oar)
SCHEDULERS = pytest.mark.parametrize("submit", SUBMITS)
#: What each changes of a job that is placed; OAR knows the job by its command, which stays as it is.
MARK = "app=cg,n=400,p=2,placement=0f"
PLACED: dict[Submit, dict[str, Any]] = {
    to_grid_engine: {"q_hard": "new", "l_hard": "h_rt=500,hostname=b1|b2", "pe_min": "2", "pe_max": "2",
                     "ac": f"metasched={MARK}"},
    to_pbs: {"queue": "new", "select": "+".join(f"1:ncpus=1:mem=1048576kb:host=b{n}" for n in (1, 2)),
             "mark": MARK.replace(",", ":")},
    to_flux: {"system": {"duration": 500, "queue": "new", "job": {"name": NAME}}, "user": {"metasched": MARK}},
    to_oar: {"jobproperties": "(desktop_computing = 'NO') AND cluster = 'new'"},
}  # fmt: skip
#: What each sees of arguments and of the script, which Grid Engine's epilog sees later; what else it asks.
SEEN: dict[Submit, dict[str, Any]] = {
    to_grid_engine: {"arguments": "-n=400", "script": None}, to_pbs: {"arguments": "-n=400", "script": ""},
    to_flux: {"arguments": "", "script": ""}, to_oar: {"arguments": "-n=400", "script": ""},
}  # fmt: skip


@SCHEDULERS
def test_a_job_is_placed_by_a_number_that_it_states(submit: Submit, tmp_path: Path) -> None:
    with sizing() as daemon:
        assert submit(tmp_path, daemon, NAME, ARGUMENTS, 2.0) == PLACED[submit]
    assert [head.split()[1] for head in daemon.heads] == [b"/v1/problem-sizes"] * 2 + [b"/v1/placements"]
    told, asked = map(json.loads, daemon.asked[1:])
    assert told == {"name": NAME} | SEEN[submit]
    assert (asked["application"], asked["problem_size"], asked["name"]) == ("cg", 400, NAME)
    assert (asked.get("job"), asked.get("stated")) == (("7", None) if submit is to_grid_engine else (None, True))


@SCHEDULERS
@pytest.mark.parametrize(
    ("names", "size", "questions"),
    [
        ({"names": []}, SIZED["size"], 1),
        ({"names": ["run7.sh", "run", None, {}]}, SIZED["size"], 1),
        ({"names": "run#.sh"}, SIZED["size"], 1),
        ({"names": 7}, SIZED["size"], 1),
        ([1], SIZED["size"], 1),
        (SIZED["GET"], {"application": None, "problem_size": None}, 2),
        (SIZED["GET"], {"application": "rm -r", "problem_size": 400}, 2),
        (SIZED["GET"], {"application": "cg", "problem_size": {"a": 1}}, 2),
        (SIZED["GET"], {"application": "cg", "problem_size": True}, 2),
        (SIZED["GET"], {"application": "cg", "problem_size": -1}, 2),
        (SIZED["GET"], {"application": "cg", "problem_size": 10**400}, 2),
        (SIZED["GET"], {"application": "cg", "problem_size": float("inf")}, 2),
        (SIZED["GET"], "no", 2),
    ],
)
def test_a_job_that_states_no_problem_size_stays_as_it_was(
    submit: Submit, names: object, size: object, questions: int, tmp_path: Path
) -> None:
    with sizing(names, size) as daemon:
        assert submit(tmp_path, daemon, NAME, ARGUMENTS, 2.0) == {}
    assert len(daemon.heads) == questions


@SCHEDULERS
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("question", [0, 1])  # of those before the placement
def test_a_daemon_that_fails_at_any_question_changes_no_job(
    submit: Submit, fault: str, question: int, tmp_path: Path
) -> None:
    sound = [SIZED["GET"], SIZED["size"]][:question]

    def answer(connection: Any) -> None:
        if len(daemon.heads) <= len(sound):
            connection.sendall(http(json.dumps(sound[len(daemon.heads) - 1]).encode()))
        else:
            FAULTS[fault](connection)

    with closing(Bad(answer)) as daemon:
        assert submit(tmp_path, daemon, NAME, ARGUMENTS, 0.3) == {}


@SCHEDULERS
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("run7.sh", ("-n", "400", *("'", '"', "\\", "&lt;", "$(reboot)", "\udcff", "\u0661", "%s", "\t"))),
        ("run7.sh", ("x" * 50_000, "-n", "400")),
        ("run7.sh", ("7",) * 2000),
        ("\u00e47\u2028;$(reboot)", ()),
        ("9" * 300, ("-n",)),
    ],
    ids=range(5),
)
def test_whatever_a_user_writes_the_job_is_submitted(
    submit: Submit, name: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    if submit is to_oar:
        words = tuple(word for word in words if word != "\udcff")
    with sizing({"names": ["run#.sh", "#", "??#???;$(reboot)"]}) as daemon:
        assert "refused" not in submit(tmp_path, daemon, name, words, 2.0)
    for body in daemon.asked:
        found = json.loads(body or b"{}")
        assert len(str(found.get("arguments", ""))) <= 1000
        assert not {"reboot"} & set(str(found.get("arguments", "")).split())


def test_names_are_asked_for_once_and_not_for_each_job_that_says_nothing(tmp_path: Path) -> None:
    with sizing({"names": ["other"]}) as daemon, Verifier(tmp_path, conf(daemon, 2.0)) as verifier:
        for _ in range(5):
            assert verifier.judge(grid_engine_job(NAME, ARGUMENTS)) == ("ACCEPT", {})
        assert len(daemon.heads) == 1


def test_jobs_that_say_nothing_wait_once_for_a_daemon_that_hangs(tmp_path: Path) -> None:
    with closing(Bad(hang)) as daemon, Verifier(tmp_path, conf(daemon, 0.2)) as verifier:
        for _ in range(5):
            assert verifier.judge(grid_engine_job(NAME, ARGUMENTS)) == ("ACCEPT", {})
        assert len(daemon.heads) == 1


@pytest.mark.parametrize(
    "job",
    [
        {"ac": "metasched=off"}, {"ac": "metasched=app=cg,n=abc"}, {"t_min": "1", "t_max": "9"}, {"h": "u"},
        {"hold_jid": "3"}, {"l_hard": "hostname=b1"}, {"CMDNAME": "QRSH"}, {"CMDNAME": "NONE"}, {"JOB_ID": ""},
        {"CMDARGS": "many"},
    ],
    ids=str,
)  # fmt: skip
def test_other_jobs_of_grid_engine_are_left_alone(job: dict[str, str], tmp_path: Path) -> None:
    with sizing() as daemon, Verifier(tmp_path, conf(daemon, 2.0)) as verifier:
        assert verifier.judge(grid_engine_job(NAME, ARGUMENTS) | job)[1] == {}
    assert not any(b"/v1/placements" in head for head in daemon.heads)


def test_the_context_of_a_job_is_kept_and_an_annotation_counts_first(tmp_path: Path) -> None:
    with sizing() as daemon, Verifier(tmp_path, conf(daemon, 2.0)) as verifier:
        job = grid_engine_job(NAME, ARGUMENTS)
        assert verifier.judge(job | {"ac": "owner=me"})[1]["ac"] == f"owner=me,metasched={MARK}"
        assert verifier.judge(job | {"ac": "metasched=app=fft,n=8"})[1]["ac"].startswith("metasched=app=fft,n=8,")
        assert [head.split()[1] for head in daemon.heads].count(b"/v1/problem-sizes") == 2


@pytest.mark.parametrize(("submit", "known"), [(to_pbs, True), (to_oar, True), (to_flux, False)])
def test_of_an_annotated_job_it_is_said_whether_its_annotation_is_told_when_it_has_ended(
    submit: Submit, known: bool, tmp_path: Path
) -> None:
    with sizing() as daemon:
        if submit is to_pbs:
            pbs_hook.changed(tmp_path, conf(daemon, 2.0))
        elif submit is to_flux:
            flux_stand_in.frobbed(tmp_path, conf(daemon, 2.0))
        else:
            to_oar(tmp_path, daemon, NAME, ARGUMENTS, 2.0)
            oar_rule.changed(tmp_path, conf(daemon, 2.0))
    assert json.loads(daemon.asked[-1]).get("annotated", False) is known


@pytest.mark.parametrize("python", pythons())
def test_every_python_from_3_6_on_places_a_job_by_a_number_that_it_states(python: str, tmp_path: Path) -> None:
    job = pbs_hook.JOB | {"Job_Name": NAME, "Variable_List": {}, "queue": None, "argument_list": listed(ARGUMENTS)}
    with sizing() as daemon:
        assert pbs_hook.changed(tmp_path, conf(daemon, 2.0), job, python=python) == PLACED[to_pbs]
    assert json.loads(daemon.asked[1])["arguments"] == "-n=400"


def test_what_pbs_refuses_of_a_job_that_says_nothing_is_taken_back_altogether(tmp_path: Path) -> None:
    job = pbs_hook.JOB | {"Job_Name": NAME, "Variable_List": {}, "queue": None, "argument_list": listed(ARGUMENTS)}
    with sizing() as daemon:
        assert pbs_hook.changed(tmp_path, conf(daemon, 2.0), job, breaks="queue") == {}
    assert len(daemon.heads) == 3


def test_the_numbers_of_a_job_of_pbs_that_has_ended_are_told(tmp_path: Path) -> None:
    pbs_hook.hooked(tmp_path, "", ENDED | {"argument_list": listed(("case_7", "-n", "400"))}, event=JOBOBIT)
    (path,) = tmp_path.glob("ended.*.json")
    assert json.loads(path.read_text())["numbers"] == "$1=7 -n=400"
