"""Programs in C: compiled once for each state of their sources and of the compiler, and refused in one line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from metasched.records import InputError
from metasched.tracing import compiled as module
from metasched.tracing.compiled import compiled
from tests.tracing.programs import calls, compiler, script


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a" / "cache"))
    path = tmp_path / "program.c"
    path.write_text("int main;", encoding="utf-8")
    return path


def test_the_program_is_made_by_the_compiler_with_its_options_in_the_users_cache(source: Path, tmp_path: Path) -> None:
    made = compiled(source, compiler(tmp_path), ["-O2", "-g"], ".so")
    assert made.parent == tmp_path / "a" / "cache" / "metasched"
    assert re.fullmatch(r"program-[0-9a-f]{16}\.so", made.name)
    first, second, third, option, to = made.read_text(encoding="utf-8").splitlines()
    assert (first, second, third, option) == ("-O2", "-g", str(source), "-o")
    assert Path(to).name == "program.so"
    assert [*made.parent.iterdir()] == [made]


def test_nothing_is_compiled_again_before_something_changes(source: Path, tmp_path: Path) -> None:
    header = tmp_path / "own.h"
    header.write_text("1", encoding="utf-8")
    own, other = compiler(tmp_path), compiler(tmp_path, "other-cc")
    made = [compiled(source, own, ["-O2"], "", [header])]
    assert compiled(source, own, ["-O2"], "", [header]) == made[0]
    assert calls(tmp_path) == 1
    made.append(compiled(source, own, ["-O3"], "", [header]))
    made.append(compiled(source, other, ["-O2"], "", [header]))
    link = tmp_path / "link-cc"
    link.symlink_to(own)
    made.append(compiled(source, str(link), ["-O2"], "", [header]))
    link.unlink()
    link.symlink_to(other)
    made.append(compiled(source, str(link), ["-O2"], "", [header]))
    header.write_text("2", encoding="utf-8")
    made.append(compiled(source, own, ["-O2"], "", [header]))
    source.write_text("int main();", encoding="utf-8")
    made.append(compiled(source, own, ["-O2"], "", [header]))
    assert len(set(made)) == calls(tmp_path) == len(made) == 7


def test_a_compiler_that_is_missing_is_told(source: Path) -> None:
    with pytest.raises(InputError, match=r"^no-cc is not installed; on Debian: apt-get install libopenmpi-dev or libm"):
        compiled(source, "no-cc", [])


def refused(source: Path, compiler: str, expected: str) -> None:
    with pytest.raises(InputError) as refusal:
        compiled(source, compiler, [])
    assert str(refusal.value) == expected
    assert [*(source.parent / "a" / "cache" / "metasched").iterdir()] == []


def test_what_a_compiler_says_of_a_failure_is_told_by_its_end(source: Path, tmp_path: Path) -> None:
    own = script(tmp_path / "cc", "head -c 400 /dev/zero | tr '\\0' x >&2", "echo ' the end ' >&2", "exit 1")
    refused(source, own, f"{own} cannot build program.c: {'x' * 292} the end")


def test_a_compiler_that_makes_nothing_or_cannot_be_started_is_told(source: Path, tmp_path: Path) -> None:
    own = script(tmp_path / "cc", "exit 0")
    refused(source, own, f"{own} made no program of program.c")
    (tmp_path / "cc").write_bytes(b"\0")
    refused(source, own, f"{own} cannot build program.c: [Errno 8] Exec format error: '{own}'")


def test_a_compiler_waits_for_no_input_and_not_for_ever(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = script(tmp_path / "cc", 'test -z "$(cat)" || exit 3', "exit 0")
    refused(source, reading, f"{reading} made no program of program.c")
    monkeypatch.setattr(module, "TIMEOUT", 0.05)
    slow = script(tmp_path / "cc", "exec sleep 600")
    with pytest.raises(InputError, match=r"cannot build program\.c: .* timed out after 0\.05 seconds"):
        compiled(source, slow, [])
