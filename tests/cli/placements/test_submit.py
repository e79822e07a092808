"""What ``metasched submit`` says of the choice that it makes, and of jobs that it leaves unchanged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import call

from metasched.cli.placements import submit as verb
from metasched.client.completion import Estimate
from metasched.client.submission import Choice
from metasched.schedulers.slurm.source import SlurmSource


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--comment=metasched:app=cg,n=abc"], "the comment says n=abc, expected a problem size above 0"),
        (["--comment=night"], "its comment does not name its application"),
        (["--comment=metasched:app=cg,n=9", "--gres=gpu:1"], "it asks for GPUs or other generic resources"),
    ],
)
def test_why_a_job_is_submitted_unchanged_is_said_and_in_the_json(
    words: list[str], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.toml").write_text("")
    status, out, err = call(
        capsys, "submit", "--dry-run", "--json", "--config", str(tmp_path / "m.toml"), "--", *words, "job.sh"
    )
    document = json.loads(out)
    assert (status, document["chosen"], document["words"]) == (0, None, [*words, "job.sh"])
    assert document["why_unchanged"].startswith(why)
    assert f"submitted unchanged: {why}" in err


def test_the_json_has_all_that_was_compared_and_what_was_chosen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "m.toml").write_text("")
    compared = (Estimate("east", "fast", 50.0, 30.0), Estimate("west", "slow", 0.0, 100.0, "n1"))
    monkeypatch.setattr(verb, "choose", lambda *_: Choice(SlurmSource(""), "fast", compared))
    status, out, _ = call(capsys, "submit", "--dry-run", "--json", "--config", str(tmp_path / "m.toml"), "--", "job.sh")
    document = json.loads(out)
    assert (status, [each["completion"] for each in document["estimates"]]) == (0, [80.0, 100.0])
    assert document["chosen"] == document["estimates"][0]
