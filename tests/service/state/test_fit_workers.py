"""Models fitted by other processes: the same as those that the daemon fits itself, and nothing lost where they fail."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from distributed import Client
from waiting import until

from metasched.records import InputError, Request, Run
from metasched.service.configuration import Fitting, read_configuration
from metasched.service.state.fit_workers import Fit, FitWorkers
from metasched.service.state.models import MANY, Models
from metasched.store import documents
from metasched.store.database.run_records import RecordedRun
from metasched.store.database.store import Store

ROOT = Path(__file__).parents[3]


def runs(application: str, scale: float) -> list[Run]:
    sizes = [(n, p) for n in (300.0, 500.0, 800.0) for p in (1, 2, 4)]
    return [
        Run(application, "east", n, p, 1.0, 90.0, scale * (1e-3 * n**1.5 / p + 1e-3 * n * (p - 1))) for n, p in sizes
    ]


def predicted(predictor: documents.Saved) -> float:
    """What a model says, by which it is known."""
    return predictor.predict(Request(600.0, 4, 0.8, 90.0)).interval.high


def learned(folder: Path, workers: FitWorkers | None) -> dict[tuple[str, str], float]:
    """What all models say that a daemon begins to learn at its start."""
    with Store.open(folder / "metasched.db") as store:
        if not store.runs.all():
            for number in range(MANY + 1):
                store.runs.add_all(RecordedRun(each) for each in runs(f"app{number}", 1.0 + number))
        models = Models(store, workers)
        models.start()
        models.stop()
        assert models.failures == 0
        assert store.runs.to_learn() == ()
        return {key: predicted(predictor) for key, predictor in models.all().items()}


def answers(address: str) -> bool:
    """Whether a scheduler takes clients by now; while it starts it refuses or breaks off connections."""
    try:
        Client(address, timeout=5.0, set_as_default=False).close()
    except OSError:
        return False
    return True


@contextmanager
def scheduler(workers: int) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A Dask scheduler with workers, each a process of its own."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    env = os.environ | {"PYTHONPATH": str(ROOT)}

    def start(*command: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-m", "dask", *command], env=env, stderr=subprocess.DEVNULL)

    host, port = address.split(":")
    processes = [start("scheduler", "--host", host, "--port", port, "--no-dashboard")]
    for _ in range(workers):
        processes.append(start("worker", f"tcp://{address}", "--nthreads", "1", "--no-nanny", "--no-dashboard"))
    try:
        until(lambda: answers(f"tcp://{address}"), why="the scheduler does not start")
        yield f"tcp://{address}", processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_processes_of_this_host_fit_the_same_models(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    by_workers = learned(tmp_path, FitWorkers(Fitting(processes=2)))
    assert len(by_workers) == MANY + 1
    assert by_workers == pytest.approx(learned(tmp_path / "own", None), rel=1e-9)


def test_a_scheduler_that_loses_a_worker_loses_no_model(tmp_path: Path) -> None:
    with scheduler(2) as (address, processes):
        workers = FitWorkers(Fitting(scheduler=address))
        fits = [Fit(f"app{number}", "east", runs(f"app{number}", 1.0 + number)) for number in range(12)]
        found: dict[str, float] = {}
        for fit, predictor in workers.fit(fits):
            if not found:
                processes[-1].kill()
            assert not isinstance(predictor, Exception)
            found[fit.application] = predicted(predictor)
    assert found == pytest.approx({fit.application: predicted(fit.fitted()) for fit in fits}, rel=1e-9)


def test_without_a_scheduler_the_daemon_fits_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("metasched.service.state.fit_workers.CONNECTING", 0.5)
    assert len(learned(tmp_path, FitWorkers(Fitting(scheduler="tcp://127.0.0.1:9")))) == MANY + 1


def test_a_run_that_cannot_be_computed_with_keeps_no_others_from_being_learned() -> None:
    known = runs("app", 1.0)
    hostile = replace(known[0], min_avg_avail_bw=1e308)
    assert predicted(Fit("app", "east", [hostile, *known]).fitted()) == predicted(Fit("app", "east", known).fitted())


def test_what_a_worker_cannot_fit_is_told_and_the_others_are_fitted(tmp_path: Path) -> None:
    fits = [Fit("none", "east", []), Fit("app", "east", runs("app", 1.0))]
    found = {fit.application: predictor for fit, predictor in FitWorkers(Fitting(processes=1)).fit(fits)}
    assert isinstance(found["none"], InputError)
    assert not isinstance(found["app"], Exception)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('processes = 2\nscheduler = "tcp://head:8786"', "expected one of them"),
        ('scheduler = "tls://head:8786"', "without tls_ca_file"),
        ('scheduler = "head"', "fitting.scheduler"),
    ],
)
def test_contradictions_are_refused(line: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "metasched.toml"
    path.write_text(f"[fitting]\n{line}\n")
    with pytest.raises(InputError, match=message):
        read_configuration(path)


def test_certificates_lie_beside_the_configuration(tmp_path: Path) -> None:
    path = tmp_path / "metasched.toml"
    files = "\n".join(f'{name} = "{name}.pem"' for name in ("tls_ca_file", "tls_client_cert", "tls_client_key"))
    path.write_text(f'[fitting]\nscheduler = "tls://head:8786"\n{files}\n')
    assert read_configuration(path).fitting.tls["tls_ca_file"] == str(tmp_path / "tls_ca_file.pem")
