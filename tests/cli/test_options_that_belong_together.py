"""Options that need or exclude each other: one line that says which, exit status 2, and nothing done."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import call, refusal

CAMPAIGN = "benchmarks/testbed/campaigns/cg-intel-random"
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["evaluate", CAMPAIGN, "--models", "single"], "--models single is a comparison of the published method"),
        (["evaluate", CAMPAIGN, "--method", "signature", "--signature-size", "9"], "need --signature"),
        (
            ["evaluate", CAMPAIGN, "--method", "signature", "--signature", "a.json", "--signature-network", "b"],
            "--signature-network needs --signature-hardware",
        ),
        (["history", "report"], "expected a LOG or --from-store, and not both"),
        (["history", "report", "pyproject.toml", "--from-store"], "expected a LOG or --from-store, and not both"),
        (["history", "report", "pyproject.toml", "--cluster", "c8"], "--cluster c8 selects stored jobs"),
        (["history", "report", "pyproject.toml", "--database", "a.db"], "--database a.db selects stored jobs"),
        (["agent", "--json"], "--json prints one sample, expected --once too"),
        (["walltime", "--application", "cg"], "--problem-size is missing, expected it or --placement"),
        (["walltime", "--placement", "7", "--processors", "4"], "--placement already gives application, size"),
        (["submit", "--through", "drmaa", "--", "job.sh"], "--through is 'drmaa', expected psij"),
    ],
)
def test_what_does_not_go_together_is_refused(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert said in refusal(call(capsys, *words))
