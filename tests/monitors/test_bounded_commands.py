"""Commands that are run without a shell: what they are given, what is kept of what they say, when they are ended."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from waiting import until

from monitors import bounded_commands
from monitors.bounded_commands import ExitError, run


def python(program: str, timeout: float = 60.0, given: Path | None = None) -> str:
    """What a program in Python prints."""
    return run(sys.executable, "-c", program, environment={"CELL": "blue"}, timeout=timeout, given=given)


def test_a_command_has_our_variables_and_its_own_a_session_of_its_own_and_its_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OURS", "red")
    shown = (
        "import os, sys; print(os.environ['OURS'], os.environ['CELL'], os.getsid(0) == os.getpid(), sys.stdin.read())"
    )
    assert python(shown) == "red blue True \n"
    (tmp_path / "script").write_text("of a job")
    assert python(shown, given=tmp_path / "script") == "red blue True of a job\n"


def test_bytes_of_no_text_come_back_as_they_were() -> None:
    printed = python("import os; os.write(1, bytes(range(256)))")
    assert printed.encode(errors="surrogateescape") == bytes(range(256))


def test_one_that_cannot_be_run_says_why() -> None:
    with pytest.raises(RuntimeError, match=r"^none/sacct cannot be run: No such file or directory$"):
        run("none/sacct", environment={}, timeout=1.0)
    with pytest.raises(RuntimeError, match=r"^true cannot be run: No such file or directory$"):
        run("true", environment={}, timeout=1.0, given=Path("none/script"))


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ("sys.exit(3)", 3, ""),
        ("sys.exit('no  such\\n job')", 1, "no such job"),
        ("os.write(2, b'\\xff' + b'x' * 600); sys.exit(255)", 255, "\ufffd" + 499 * "x"),
        ("os.kill(os.getpid(), 9)", -9, ""),
    ],
)
def test_a_status_other_than_0_is_told_with_the_first_500_letters_of_what_it_said(
    body: str, status: int, said: str
) -> None:
    words = (sys.executable, "-c", f"import os, sys; print('7'); {body}")
    with pytest.raises(ExitError) as wrong:
        run(*words, environment={}, timeout=60.0)
    assert wrong.value.status == status
    assert str(wrong.value) == f"{' '.join(words)} failed with status {status}{said and f': {said}'}"


def test_of_what_is_said_beside_the_output_only_the_beginning_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """What follows is read all the same: the command would wait for ever to write it."""
    monkeypatch.setattr(bounded_commands, "_MOST_SAID", 4)
    kept: list[int] = []
    read = bounded_commands._read

    def noted(*given: object) -> tuple[bytearray, bytearray]:
        found = read(*given)  # type: ignore[arg-type]
        kept.extend(map(len, found))
        return found

    monkeypatch.setattr(bounded_commands, "_read", noted)
    assert len(python("import os; os.write(1, b'a' * 300_000); os.write(2, b'b' * 3_000_000)")) == 300_000
    assert kept[0] == 300_000
    assert 4 <= kept[1] <= 1 << 18


def runs(process: int) -> bool:
    """Whether a process is there, and not only its exit status."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes() != b""
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    "body",
    [
        "time.sleep(60)",
        "os.close(1); os.close(2); time.sleep(60)",  # it has said all and does not end
        "[os.write(1, b'7') or time.sleep(0.01) for _ in range(6000)]",
    ],
)
def test_one_that_takes_too_long_is_ended_with_all_that_it_has_started(body: str, tmp_path: Path) -> None:
    child = tmp_path / "child"
    starts = "import os, subprocess, time; started = subprocess.Popen(['sleep', '3600']); "
    starts += f"open({str(child)!r}, 'w').write(str(started.pid)); "
    with pytest.raises(RuntimeError, match=rf"^{sys.executable} took longer than 0.6 s$"):
        python(starts + body, timeout=0.6)
    # On a very busy host it was ended before it had started anything.
    until(lambda: not child.exists() or not runs(int(child.read_text() or 0)))
