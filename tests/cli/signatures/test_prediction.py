"""``metasched signature predict`` and ``plot`` from the command line: answers, and one line for what is wrong."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from command_line import call, status_of

from metasched.records import Run
from metasched.signature.rules.expanding import sampled
from metasched.signature.rules.fitting import fit
from metasched.signature.rules.open_choices import open_choices
from metasched.signature.synthetic.collective_times import Collective
from metasched.signature.synthetic.message_kinds import kinds_of
from metasched.signature.synthetic.result import Result, digest
from metasched.signature.traces.exchanges import exchanges
from metasched.store.files.runs import write_runs
from metasched.store.files.signatures import APPLICATION, SYNTHETIC, VERSION, read_application, write_document
from tests.pages import ROOT
from tests.signature.rules.test_open_choices import rows_sent_on

SIGNATURES = [str(ROOT / f"examples/signature/box-{n}.json") for n in (16, 32, 64)]
MACHINE = str(ROOT / "benchmarks/signature/machine.toml")


@pytest.fixture(scope="module")
def application(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("signature") / "box.json"
    status_of("signature", "fit", *SIGNATURES, "-o", str(path))
    return str(path)


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    capsys.readouterr()
    return call(capsys, "signature", *words)


def test_predictions_hold_what_is_promised(application: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("predict", application, "--processes", "128,256", "--hardware", MACHINE, "--json")
    status, out, _ = answer(capsys, *words)
    found = json.loads(out)["predictions"]
    assert status == 0
    assert [each["processes"] for each in found] == [128, 256]
    first = found[0]
    assert {*first} >= {"processes", "execution_time", "interval", "engine", "phases"}
    assert {*first["phases"][0]} == {"phase", "weight", "time", "computation", "communication"}
    assert first["interval"]["low"] < first["execution_time"] < first["interval"]["high"]


def test_intervals_are_wider_where_calls_follow_no_rule(
    application: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.loads(Path(application).read_text())
    ends = {}
    for name, share in (("ruled", {}), ("unruled", {"send": 0.1})):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(document | {"without_rule": share}))
        status, out, _ = answer(capsys, "predict", str(path), "--processes", "64,1024", "--hardware", MACHINE, "--json")
        assert status == 0
        ends[name] = [each["interval"]["high"] / each["execution_time"] for each in json.loads(out)["predictions"]]
    assert ends["unruled"][1] > 1.01 * ends["ruled"][1]


def test_an_interval_holds_the_times_by_both_rules_that_runs_allow(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    application = fit([rows_sent_on(n) for n in (4, 16, 64)]).application
    (choice,) = open_choices(application, [128])
    found = []
    for each in (application, choice.other(application)):
        assert each is not None
        document = {"kind": APPLICATION, "version": VERSION, "application": each.as_dict()}
        for counts in ("4,16,64", "128,256"):
            write_document(tmp_path / "app.json", document)
            words = ("predict", str(tmp_path / "app.json"), "--processes", counts, "--hardware", MACHINE, "--json")
            status, out, _ = answer(capsys, *words)
            assert status == 0
            predicted = json.loads(out)["predictions"]
            document |= {"measured": {str(one["processes"]): one["execution_time"] for one in predicted}}
        assert "would decide" in json.loads(out)["warnings"][0]
        found.append(predicted)
    times = [both["execution_time"] for both, _ in found]
    assert max(times) > 1.2 * min(times)
    assert all(both["interval"]["low"] < min(times) < max(times) < both["interval"]["high"] for both, _ in found)
    assert all(alone["interval"]["high"] < 1.2 * alone["execution_time"] for _, alone in found)


def test_a_picture_and_its_curves_are_made(
    application: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "box.png"
    words = ("plot", application, "--processes", "128,256", "--hardware", MACHINE, "-o", str(picture), "--json")
    status, out, _ = answer(capsys, *words)
    curves = json.loads(out)
    assert status == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert curves["processes"] == [16, 32, 64, 128, 256]
    assert curves["speedup"][0] == pytest.approx(16, rel=0.02)


def test_a_picture_is_made_of_results_of_synthetic_signatures(
    application: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known = read_application(application)[0]
    results = []
    for count in (64, 256):
        sample = sampled(known, count, 0)
        kinds, _ = kinds_of(sample, exchanges(sample.trace), 1)
        collectives = {Collective("allreduce", 8.0): {2: 1e-5, 4: 1e-5}}
        result = Result(digest(known), count, 32, 1, 1e-9, dict.fromkeys(kinds, 1e-5), collectives)
        results += ["--synthetic", str(tmp_path / f"{count}.json")]
        write_document(results[-1], {"kind": SYNTHETIC, "version": VERSION} | result.as_dict())
    words = ("--processes", "256", *results, "--json")
    status, out, err = answer(capsys, "plot", application, *words, "-o", str(tmp_path / "box.png"))
    assert (status, err) == (0, "")
    curves = json.loads(out)
    predicted = json.loads(answer(capsys, "predict", application, *words)[1])["predictions"]
    # 64 processes are drawn as well, since they were measured; speedup is relative to the smallest run.
    assert curves["processes"] == [64, 256]
    assert curves["execution_time"][1] == predicted[0]["execution_time"]
    first = DOCUMENTS[0]
    assert curves["speedup"][1] == pytest.approx(16 * first["execution_time"] / predicted[0]["execution_time"])
    status, _, err = answer(capsys, "plot", application, *words, "-o", str(tmp_path / "x.png"), "--hardware", MACHINE)
    assert (status, "give one of --hardware" in err, (tmp_path / "x.png").exists()) == (2, True, False)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--processes", "12x", "--hardware", MACHINE), "--processes is 12x, expected whole numbers from 1 to 9999999"),
        (("--processes", "000000001" + 12 * "9", "--hardware", MACHINE), "expected whole numbers from 1 to 9999999"),
        (("--processes", "128"), "give one of --hardware, --platform and --synthetic"),
        (("--processes", "128", "--hardware", MACHINE, "--relevant"), "belong to --platform"),
        (("--processes", "128", "--platform", MACHINE), "--platform needs --hosts"),
        (("--processes", "128", "--hardware", "nothing"), "there is no hardware 'nothing'"),
        (("--processes", "128", "--hardware", "xeon-e5-1620"), "give a network"),
    ],
)
def test_what_is_wrong_is_told_in_a_line(
    application: str, words: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, err = answer(capsys, "predict", application, *words)
    assert status == 2
    assert told in err.replace("\n", " ")
    assert "Traceback" not in err


CLUSTERS = '[[cluster]]\nname = "smpi"\nnodes = [{names = "n[1-128]", processors = 1, available_bandwidth = 9400.0}]\n'
DOCUMENTS = [json.loads(Path(path).read_text()) for path in SIGNATURES]
RUNS = [
    Run("box", "smpi", 384.0, each["processes"], 1.0, 9400.0, noise * each["execution_time"])
    for each, noise in itertools.product(DOCUMENTS, (0.99, 1.0, 1.01))
]


@pytest.fixture
def told(
    application: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    monkeypatch.chdir(tmp_path)
    Path("clusters.toml").write_text(CLUSTERS)
    write_runs("runs.csv", RUNS)
    capsys.readouterr()
    return partial(call, capsys)


@pytest.mark.parametrize("method", ["signature", "tournament"])
def test_a_signature_answers_for_counts_that_no_run_has_seen(
    told: Callable[..., tuple[int, str, str]], application: str, method: str
) -> None:
    signed = "--signature", application, "--signature-hardware", MACHINE
    status, out, _ = told("fit", "runs.csv", "-o", "m.json", "--method", method, *signed, "--json")
    assert status == 0
    facts = json.loads(out)["fitted"]
    assert "signature" in str(facts)
    asked = "--problem-size", 384, "--cpu", 1, "--bandwidth", 9400
    status, out, _ = told("predict", "m.json", *asked, "--processors", 128, "--json")
    assert status == 0
    if method == "signature":
        # What SMPI measured, in benchmarks/signature/truth.csv.
        assert json.loads(out)["execution_time"] == pytest.approx(0.0643333, rel=0.02)
    where = "--clusters", "clusters.toml", "--model", "m.json"
    question = "--application", "box", "--problem-size", 384, *where, "--processors", "64,96,128"
    status, out, _ = told("rank", *question, "--json")
    assert status == 0
    Path("answer.json").write_text(out)
    best = json.loads(out)["placements"][0]
    assert best["processors"] == 128
    status, out, _ = told("explain", "answer.json", *where, "--json")
    assert status == 0
    assert sum(part["seconds"] for part in json.loads(out)["parts"]) == pytest.approx(best["execution_time"])
    # It looks at every number of processors that there is room for.
    Path("clusters.toml").write_text(CLUSTERS.replace("128", "8"))
    question = "--application", "box", "--problem-size", 384, *where
    status, out, _ = told("whatif", *question, "--drain", "n8", "--json")
    assert status == 0
    assert json.loads(out)["before"]["processors"] == 8
    assert json.loads(out)["after"]["processors"] < 8


def test_a_campaign_is_judged_with_a_signature(told: Callable[..., tuple[int, str, str]], application: str) -> None:
    phases = itertools.chain(6 * ("train",), 3 * ("predict",))
    write_runs("runs.csv", [replace(run, phase=phase) for run, phase in zip(RUNS, phases, strict=True)])
    signed = "--signature", application, "--signature-hardware", MACHINE
    status, out, _ = told("evaluate", ".", "--method", "signature", *signed, "--json")
    assert status == 0
    assert json.loads(out)["ppe_mean"] < 2.0


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--method", "signature"), "--method signature needs --signature"),
        (("--method", "tournament", "--signature-size", 5), "need --signature"),
        (("--method", "signature", "--signature", "APP", "--signature-network", "x"), "needs --signature-hardware"),
        (("--method", "signature", "--signature", "APP", "--signature-size", 0), "problem size of the signature is 0"),
        (("--method", "signature", "--signature", "none.json"), "none.json"),
        (("--method", "signature", "--signature", "runs.csv"), "is not JSON"),
    ],
)
def test_a_signature_must_be_told_in_full(
    told: Callable[..., tuple[int, str, str]], application: str, words: tuple[object, ...], line: str
) -> None:
    given = [application if word == "APP" else word for word in words]
    status, _, err = told("fit", "runs.csv", "-o", "m.json", *given)
    assert status == 2
    assert line in err.replace("\n", " ")
    assert not Path("m.json").exists()
