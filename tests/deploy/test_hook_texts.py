"""All who read hooks.conf, a deadline or a mark read the same: one table of texts for each, fed to every reader."""

from __future__ import annotations

import importlib.util
import math
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from deployed_files import DEPLOYED
from hypothesis import given
from hypothesis import strategies as st

from metasched.doctor import hook_settings
from metasched.history.argument_numbers import LONGEST_LINE, LONGEST_SCRIPT, in_arguments, in_sbatch, in_script
from metasched.jobs import LONGEST_MARK, read_mark
from metasched.service.schemas import JobIn
from tests.deploy import pbs_hook
from tests.deploy.job_verifier import JOB, Verifier
from tests.system.bad_daemons import Bad, changed
from tests.system.test_lua_hook import LUA, driven

#: Finds a local variable of job_submit.lua, and prints it.
LOOKER = """
slurm = { SUCCESS = 0 }
dofile(arg[1])
local function found(f, wanted)
  for i = 1, 255 do
    local name, value = debug.getupvalue(f, i)
    if not name then return nil end
    if name == wanted then return value end
    local deeper = type(value) == "function" and found(value, wanted)
    if deeper then return deeper end
  end
end
local value = found(slurm_job_submit, arg[2])
io.write(type(value) == "table" and value.state or value)
"""

#: Finds the numbers in each text that follows: its kind and its bytes on a line, then so many bytes.
COUNTER = """
local numbers = dofile(arg[1])
for line in io.lines() do
  local kind, length = line:match("(%a+) (%d+)")
  local text = length == "0" and "" or io.read(tonumber(length))
  io.read(1)
  if kind == "wrapped" then
    local command = numbers.wrapped(text)
    io.write(command and numbers.in_arguments(command) or "none", "\\n")
  else
    io.write(numbers["in_" .. kind](text), "\\n")
  end
  io.flush()
end
"""

#: Lines of hooks.conf, {x} being a folder, and the state that they set, from that folder on.
LINES = {
    "state = {x}": "",
    "state={x}": "",
    "\tstate\t =\t{x} \t ": "",
    "state = {x}\r": "",
    "state = {x}/y\nstate = {x}": "",
    "state = {x} # main": " # main",
    " # state = {x}/y\nstate = {x}\n#state={x}/y": "",
    "state = {x}=1 2": "=1 2",
    "State = {x}/y\nstate = {x}\nmystate = {x}/y\nstate of things = {x}/y": "",
    "caf\udce9\nstate = {x}\udce9": "\udce9",
    "state = {x}\u2028z": "\u2028z",
}


def by_python(folder: Path, name: str = "metasched_hooks") -> Any:
    path = shutil.copy(DEPLOYED / "hooks" / f"{name}.py", folder)  # Python compiles it beside the file
    found = importlib.util.spec_from_file_location(f"deployed_{name}", path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


with tempfile.TemporaryDirectory() as _folder:
    NUMBERS = by_python(Path(_folder), "metasched_numbers")


def by_lua(folder: Path, variable: str) -> str:
    shutil.copy(DEPLOYED / "slurm" / "job_submit.lua", folder)
    (folder / "looker.lua").write_text(LOOKER)
    words = [LUA, str(folder / "looker.lua"), str(folder / "job_submit.lua"), variable]
    return os.fsdecode(subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout)


def by_prolog(folder: Path, state: Path) -> str:
    state.mkdir()
    shutil.copy(DEPLOYED / "slurm" / "metasched-prolog", folder)
    subprocess.run([folder / "metasched-prolog"], check=True, env=os.environ | {"SLURM_JOB_ID": "7"})
    return "".join(str(path.parent) for path in folder.rglob("start.*.7"))


needs_lua = pytest.mark.skipif(not shutil.which(LUA), reason=f"{LUA} is not installed")


@needs_lua
@pytest.mark.parametrize("text", LINES)
def test_all_four_readers_of_the_settings_read_the_same(text: str, tmp_path: Path) -> None:
    folder = f"{tmp_path}/s"
    (tmp_path / "hooks.conf").write_bytes(os.fsencode(text.replace("{x}", folder)))
    expected = folder + LINES[text]
    assert by_python(tmp_path).settings(tmp_path)["state"] == expected
    assert hook_settings.read_settings(tmp_path / "hooks.conf")["state"] == expected
    assert by_lua(tmp_path, "settings") == expected
    assert by_prolog(tmp_path, Path(expected)) == expected


SCRIPTS = st.text("-=$'\"\\ \n\t;|#<>&{}n1.0e\x00\u0661\x85", max_size=400) | st.lists(
    st.sampled_from(
        ["./solve", "-n", "400", "--size=1e3", "N=007", "-n8", "#", "\n", ";", "2>&1", "key=5", "\\\n", "0"]
    )
).map(" ".join)


@given(SCRIPTS | st.just("1" * 70_000) | st.just("x" * 65_533 + "\n-n 400") | st.just("a=1\n" * 9_999))
def test_epilog_and_daemon_find_the_same_numbers_in_a_script(script: str) -> None:
    found = NUMBERS.in_script(script.encode())
    assert found == in_script(script)
    assert JobIn.model_validate({"scheduler": "c", "job": "7", "nodes": "n", "start": 1, "end": 2, "numbers": found})


class Counter:
    """The Lua of the hook, which finds the numbers in one text after the other."""

    def __init__(self, folder: Path) -> None:
        (folder / "counter.lua").write_text(COUNTER)
        words = [LUA, str(folder / "counter.lua"), str(DEPLOYED / "slurm" / "job_numbers.lua")]
        self._lua = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def numbers(self, kind: str, text: str) -> str:
        assert self._lua.stdin is not None
        assert self._lua.stdout is not None
        told = text.encode()
        self._lua.stdin.write(b"%s %d\n%s\n" % (kind.encode(), len(told), told))
        self._lua.stdin.flush()
        return self._lua.stdout.readline().decode().rstrip("\n")

    def close(self) -> None:
        self._lua.communicate()


@pytest.fixture(scope="module")
def counter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Counter]:
    with closing(Counter(tmp_path_factory.mktemp("counter"))) as counter:
        yield counter


#: Arguments, with what is written like a number and is none.
ARGUMENTS = st.text("-=$'\"\\ \t\n\f/:.,%n1e0+_\x85\u0661", max_size=300) | st.lists(
    st.sampled_from(
        ["-n", "400", "--size=1e3", "x=007", "-n8", "mesh_2x3.dat", "4.5.6", "1:30", "10G", "7%", "12abcd", "'a 5'",
         '"6 \\" 7"', "\\", "''", "'", "--PIN", "pin=", "api_key=5", "1.", "1e-9", "999999999999", "1234567890123",
         "1e12", "0", "-5", "9" * 201, "x" * 201, "--" + "y" * 40, "--" + "y" * 41 + "=3", "\u00e4" * 150 + "4"]
    )
).map(" ".join)  # fmt: skip


@needs_lua
@given(script=SCRIPTS | st.just("x" * (LONGEST_SCRIPT - 3) + "\n-n 400") | st.just("a=1\n" * 9_999))
def test_the_hook_finds_in_a_script_the_numbers_that_are_learned(counter: Counter, script: str) -> None:
    assert counter.numbers("script", script) == in_script(script)


@needs_lua
@given(line=ARGUMENTS | st.just("7 " + (LONGEST_LINE - 4) * "x" + " 400") | st.just("\u00e4 5 " * 4000))
def test_the_hook_finds_in_arguments_the_numbers_that_are_learned(counter: Counter, line: str) -> None:
    assert counter.numbers("arguments", line) == in_arguments(line)


@given(line=ARGUMENTS | st.just("7 " + (LONGEST_LINE - 4) * "x" + " 400") | st.just("\u00e4 5 " * 4000))
def test_hooks_in_python_find_in_arguments_the_numbers_that_are_learned(line: str) -> None:
    found = NUMBERS.in_arguments(NUMBERS.words_of(line))
    assert found == in_arguments(line)
    told = {"scheduler": "c", "job": "7", "nodes": "n", "start": 1, "end": 2}
    both = NUMBERS.joined(found, NUMBERS.in_script(line.encode()))
    assert JobIn.model_validate(told | {"numbers": both}).numbers == both


@needs_lua
def test_the_hook_knows_the_command_of_a_job_without_a_script(counter: Counter) -> None:
    script = "#!/bin/sh\n# This script was created by sbatch --wrap.\n\n{}\n"
    for command in ("./solve -n 400 case_7", "./solve", "'./solve' 'a 5' 6"):
        assert counter.numbers("wrapped", script.format(command)) == in_sbatch(f"sbatch -n 2 --wrap {command}")
    assert counter.numbers("wrapped", "#!/bin/sh\n./solve -n 400\n") == "none"


@needs_lua
@pytest.mark.timeout(20)
@pytest.mark.parametrize("unit", ["1", "1 ", "<", "2>&1", "-", "--n", "a=1;", "#", " #", "\\\n", "'", "\u00e4", "\0"])
def test_no_script_or_arguments_keep_the_controller_busy(counter: Counter, unit: str) -> None:
    text = unit * (4 * LONGEST_SCRIPT // len(unit))
    assert counter.numbers("script", text) == in_script(text)
    assert counter.numbers("arguments", text) == in_arguments(text)


def test_bytes_that_are_no_text_keep_no_job_from_being_told() -> None:
    assert NUMBERS.in_script(b"\xff\xfe\0 solve -n 400\n\xc3") == "script:-n=400"


#: What is no number above 0.
NONE = ("", "0", "-1", "soon", "nan", "inf", "0x1", "0_5", "\uff11", "1-2")
#: Deadlines, and how long all hooks wait at most (s).
DEADLINES = {"0.5": 0.5, "2": 2, "5e-1": 0.5, "9": 2, **dict.fromkeys(NONE, 0.2)}


@needs_lua
@pytest.mark.parametrize("text", DEADLINES)
def test_all_hooks_wait_as_long_and_the_doctor_finds_what_they_do_not_take(text: str, tmp_path: Path) -> None:
    (tmp_path / "hooks.conf").write_text(f"deadline = {text}\n", encoding="utf-8")
    hooks = by_python(tmp_path)
    assert hooks.deadline_of({"deadline": text}) == DEADLINES[text]
    assert float(by_lua(tmp_path, "deadline_seconds")) == DEADLINES[text]
    seconds = hook_settings.deadline_of({"deadline": text})
    assert (0.0 < seconds <= hook_settings.LONGEST) == (text in ("0.5", "2", "5e-1"))
    assert hooks.LONGEST == hook_settings.LONGEST


#: Problem sizes as marks state them, and what they are, NaN where they are none.
SIZES = {
    "1400": 1400.0, "1.4e3": 1400.0, "+5": 5.0, ".5": 0.5, "5.": 5.0, "1E-3": 0.001,
    **dict.fromkeys((*NONE, "1_000", " 5", "1e999"), math.nan),
}  # fmt: skip


@pytest.mark.parametrize("text", SIZES)
def test_no_hook_places_a_job_whose_size_the_daemon_would_not_read(text: str, tmp_path: Path) -> None:
    mark, known = f"app=cg,n={text}", SIZES[text] == SIZES[text]
    found = read_mark(f"metasched:{mark}")
    assert (found.problem_size if found else math.nan) == pytest.approx(SIZES[text], nan_ok=True)
    with closing(Bad(changed())) as daemon:
        conf = f"address = {daemon.address}\ndeadline = 2\nnodes = b[1-4]\n"
        for name in ("sge", "pbs"):
            (tmp_path / name).mkdir()
        with Verifier(tmp_path / "sge", conf) as verifier:
            assert bool(verifier.judge(JOB | {"ac": f"metasched={mark}"})[1]) == known
        variables = {"METASCHED": mark.replace(",", ":")}
        assert bool(pbs_hook.changed(tmp_path / "pbs", conf, pbs_hook.JOB | {"Variable_List": variables})) == known
        if shutil.which(LUA):
            job = driven(tmp_path, conf, job={"comment": f"metasched:{mark}"}, partition="b[1-4]")
            assert (job["comment"] != f"metasched:{mark}") == known


#: Further words that the daemon can read, and some that it cannot.
WORDS = {
    **dict.fromkeys((",threads=2", ",frequency=2.4e3", ",steps=x,", ",checkpoint=soon"), True),
    **dict.fromkeys((",threads=two", ",steps=9,threads=0", ",processes_per_node=1.5", ",frequency=3"), False),
    **dict.fromkeys((",word", ",400,threads=2", ",steps=", f",steps={'x' * 65}", f",{'s' * 65}=1", ",threads="), False),
    **dict.fromkeys((",steps=nan", ",steps=-Inf", ",steps=+infinity", ",steps=1e999", ",steps=-1e999"), False),
    **{"".join(f",p{k}=1" for k in range(count)): count == 32 for count in (32, 33)},
    ",steps=nano,inf=1": True,
}


@pytest.mark.parametrize("more", WORDS)
def test_no_hook_places_a_job_whose_further_words_the_daemon_would_not_read(more: str, tmp_path: Path) -> None:
    mark = f"app=cg,n=1400{more}"
    assert bool(read_mark(f"metasched:{mark}")) == WORDS[more]
    with closing(Bad(changed())) as daemon:
        conf = f"address = {daemon.address}\ndeadline = 2\nnodes = b[1-4]\n"
        (tmp_path / "sge").mkdir()
        with Verifier(tmp_path / "sge", conf) as verifier:
            assert bool(verifier.judge(JOB | {"ac": f"metasched={mark}"})[1]) == WORDS[more]
        if shutil.which(LUA):
            job = driven(tmp_path, conf, job={"comment": f"metasched:{mark}"}, partition="b[1-4]")
            assert (job["comment"] != f"metasched:{mark}") == WORDS[more]
            assert ("in the comment, expected" in job["said"]) == (not WORDS[more])


@pytest.mark.parametrize("more", [",steps=1 0", ",who=a@b", ",who=\uff11"])
def test_no_hook_places_a_job_whose_mark_the_daemon_would_read_in_part(more: str, tmp_path: Path) -> None:
    with closing(Bad(changed())) as daemon, Verifier(tmp_path, f"address = {daemon.address}\n") as verifier:
        assert verifier.judge(JOB | {"ac": f"metasched=app=cg,n=1400{more}"}) == ("ACCEPT", {})


@pytest.mark.parametrize("longest", [LONGEST_MARK, LONGEST_MARK + 1])
def test_no_hook_makes_a_mark_longer_than_the_daemon_reads(longest: int, tmp_path: Path) -> None:
    mark = "app=cg,n=1400" + "".join(f",q{k:02}={'1' * 36}" for k in range(11))
    mark += f",r={'1' * (longest - len(mark) - len(',r=,p=2,placement=0f'))}"
    with closing(Bad(changed())) as daemon:
        conf = f"address = {daemon.address}\ndeadline = 2\nnodes = b[1-4]\n"
        for name in ("sge", "pbs"):
            (tmp_path / name).mkdir()
        with Verifier(tmp_path / "sge", conf) as verifier:
            assert bool(verifier.judge(JOB | {"ac": f"metasched={mark}"})[1]) is (longest == LONGEST_MARK)
        job = pbs_hook.JOB | {"Variable_List": {"METASCHED": mark.replace(",", ":")}}
        found = pbs_hook.changed(tmp_path / "pbs", conf, job)
        assert bool(found) is (longest == LONGEST_MARK)
        assert len(found.get("mark", mark)) <= LONGEST_MARK
