"""The trace of one process, in memory and in its file: on a disk that was full, and of calls that all differ."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from metasched.store.files.recorded_traces import read_recorded
from metasched.tracing.recording import SOURCE

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler of C is installed")

#: Adds as many calls as it is told, of as many kinds; the disk has no room for one of the writes, counted from 1.
PROGRAM = r"""
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static int writes, failing;
static ssize_t put(void* file, const char* text, size_t size)
{
  if (++writes == failing)
    return errno = ENOSPC, 0;
  return (ssize_t)fwrite(text, 1, size, file);
}
static int done(void* file)
{
  return fclose(file);
}
static FILE* opened(const char* path, const char* mode)
{
  return fopencookie(fopen(path, mode), mode, (cookie_io_functions_t){.write = put, .close = done});
}
#define fopen opened
#include "folded_trace.h"
int main(int argc, char** argv)
{
  (void)argc, (void)start_counter, (void)hashed, (void)entered, (void)ended;
  const int calls = atoi(argv[1]), kinds = atoi(argv[2]);
  failing = atoi(argv[3]);
  snprintf(folder, sizeof folder, "%s", argv[4]);
  rank      = 0;
  processes = recording = 1;
  Work none = NOTHING;
  ADD(none, INIT, 0);
  for (int i = 0; i < calls; i++)
    ADD(none, BCAST, 0, i % kinds, 0, BYTES);
  ADD(none, FINALIZE, 0);
  write_all("end");
  return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trace")
    (folder / "mpi.h").touch()
    (folder / "calls.c").write_text(PROGRAM, encoding="ascii")
    words = ["cc", "-O2", "-w", "-D_GNU_SOURCE", "-DMOST_WORDS=100000", f"-I{SOURCE.parent}", f"-I{folder}"]
    subprocess.run([*words, str(folder / "calls.c"), "-o", str(folder / "calls")], check=True)
    return folder / "calls"


def test_a_file_that_could_not_be_written_in_the_middle_is_none(program: Path, tmp_path: Path) -> None:
    for failing, left in ((0, ["rank-0"]), (2, [])):
        folder = tmp_path / str(failing)
        folder.mkdir()
        subprocess.run([str(program), "3000", "3000", str(failing), str(folder)], check=True)
        assert [path.name for path in folder.iterdir()] == left


def test_calls_that_all_differ_take_a_bounded_room_and_those_beyond_are_counted(program: Path, tmp_path: Path) -> None:
    subprocess.run([str(program), "300000", "300000", "0", str(tmp_path)], check=True)
    found = read_recorded(tmp_path)
    kept = sum(found.trace.table.text(each).startswith("bcast") for each in found.trace.processes[0].tolist())
    # A call is a word of the program, a key of five and a pair of neighbours.
    assert kept == 100_000 / 8
    assert found.unrecorded == {"calls for which there was no room": 300_000 - kept + 1}
    assert found.cut == (0,)


def test_a_loop_of_as_many_calls_takes_none(program: Path, tmp_path: Path) -> None:
    subprocess.run([str(program), "300000", "3", "0", str(tmp_path)], check=True)
    found = read_recorded(tmp_path)
    assert (found.cut, found.unrecorded, found.trace.events) == ((), {}, 600_003)
