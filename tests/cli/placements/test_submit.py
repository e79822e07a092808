"""What ``metasched submit`` says of jobs that it leaves unchanged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import call


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
