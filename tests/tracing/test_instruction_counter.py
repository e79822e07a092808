"""The processor's counter, read without the kernel by what its page states, and again where that changes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from metasched.tracing.recording import SOURCE

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler of C is installed")

#: A page and a register; READ changes the page as the kernel does when the thread loses the processor meanwhile.
PROGRAM = r"""
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
static struct perf_event_mmap_page page;
static uint64_t registers[4];
static int losses, asked = -1;
static uint64_t read_register(uint32_t number)
{
  const uint64_t value = registers[number];
  asked = (int)number;
  if (losses) {
    losses--;
    page.lock += 2;
    page.offset += 1000;
    page.index = losses % 2 ? 0 : 3;
    registers[2] = 5;
  }
  return value;
}
#define MAPPED(file) &page
#define READ_PROCESSOR read_register
#include "instruction_counter.h"
int main(int argc, char** argv)
{
  int64_t sum = -1;
  (void)argc;
  page.cap_user_rdpmc = atoi(argv[1]);
  page.index          = (uint32_t)atoi(argv[2]);
  page.pmc_width      = (uint16_t)atoi(argv[3]);
  page.offset         = atoll(argv[4]);
  registers[1]        = strtoull(argv[5], NULL, 0);
  losses              = atoi(argv[6]);
  counter.page        = argv[7][0] == 'y' ? &page : NULL;
  const int could     = read_in_user_space(&sum);
  (void)start_counter;
  (void)count_at_begin;
  (void)count_at_end;
  (void)counted_by;
  printf("%d %lld %d\n", could, (long long)sum, asked);
  return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("counter")
    (folder / "page.c").write_text(PROGRAM, encoding="ascii")
    command = ["cc", "-O2", "-D_GNU_SOURCE", f"-I{SOURCE.parent}", str(folder / "page.c"), "-o", str(folder / "page")]
    subprocess.run(command, check=True)
    return folder / "page"


@pytest.mark.parametrize(
    ("page", "answer"),
    [
        # The second register, of 48 bits, which counts up from below 0, as the kernel sets it.
        (("1", "2", "48", str(1 << 47), str((1 << 47) + 9), "0", "y"), "1 9 1"),
        (("1", "2", "48", "700", "42", "0", "y"), "1 742 1"),
        (("1", "2", "48", "700", str((1 << 48) - 2), "0", "y"), "1 698 1"),
        (("1", "2", "64", "-5", "7", "0", "y"), "1 2 1"),
        # The thread came to another register meanwhile: what was read is of no use.
        (("1", "2", "48", "700", "42", "1", "y"), "1 1705 2"),
        # It lost the register: the kernel has to be asked.
        (("1", "2", "48", "700", "42", "2", "y"), "0 -1 1"),
        (("1", "0", "48", "700", "42", "0", "y"), "0 -1 -1"),
        (("0", "2", "48", "700", "42", "0", "y"), "0 -1 -1"),
        (("1", "2", "48", "700", "42", "0", "n"), "0 -1 -1"),
    ],
)
def test_the_page_tells_what_the_register_means(program: Path, page: tuple[str, ...], answer: str) -> None:
    assert subprocess.run([program, *page], capture_output=True, text=True, check=True).stdout.strip() == answer
