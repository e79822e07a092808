"""The dashboard in a real browser: somebody logs in, the pictures are drawn, nothing complains.

``python -m tests.system.test_dashboard docs/pictures`` makes the pictures of the documentation.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from PIL import Image
from waiting import until

from metasched.service import simulations
from metasched.service.app import make_app
from tests.service.busy_hour import busy_hour, day_of_loads
from tests.service.daemons import headers_for, listening, running
from tests.system.real_browser import BINARY, Browser, browser

pytestmark = [
    pytest.mark.system,
    pytest.mark.timeout(280),
    pytest.mark.skipif(BINARY is None, reason="chromium is not installed (Debian: chromium)"),
]
HOSTILE = "<script>console.error('taken over')</script>\"'><img src=x onerror=console.error(1)>"


@contextmanager
def served(folder: Path, *, hostile: bool = True, jobs: int = 14) -> Iterator[tuple[str, str]]:
    """A busy daemon's address, and the secret of a token that may read."""
    now = time.time()
    day_of_loads(folder, now)
    with running(folder) as daemon:
        secret = daemon.store.tokens.add("on duty", "admin")
        admin = headers_for(daemon)
        app = make_app(daemon)
        client = TestClient(app)
        until(lambda: daemon.history.of("east", day=True))
        busy_hour(daemon, client, admin, now, jobs)
        if hostile:
            ask = {"application": HOSTILE, "problem_size": 1}
            assert client.post("/v1/placements", json=ask, headers=admin).status_code == 200
        until(lambda: not daemon.models.waiting)
        with listening(app) as url:
            yield url, secret


def log_in(page: Browser, address: str, secret: str) -> None:
    page.go(address)
    assert page.run("location.pathname") == "/login"
    page.submit(f"document.querySelector('#token').value = '{secret}'; document.forms[0].submit(); 0")
    assert page.run("location.pathname") == "/"


def test_somebody_logs_in_and_sees_the_pictures(tmp_path: Path) -> None:
    with served(tmp_path) as (address, secret), browser(tmp_path / "profile") as page:
        for width, height, dark in ((1280, 900, False), (390, 844, True)):
            page.look_like(width, height, dark=dark)
            if width == 1280:
                log_in(page, address, secret)
            page.go(address + "/")
            charts = page.run("document.querySelectorAll('figure[data-chart]').length")
            assert charts == page.run("document.querySelectorAll('figure .u-wrap canvas').length") == 6
            # Some of every canvas is painted, in more than one colour.
            painted = """[...document.querySelectorAll('figure canvas')].map((canvas) => new Set(new Uint32Array(
                canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size)"""
            assert min(page.run(painted)) > 3
            assert page.run("document.documentElement.scrollWidth <= innerWidth"), f"wider than {width}"
            assert page.run("document.querySelectorAll('details[open]:not(.keep)').length") == 0
            assert "taken over" in page.run("document.querySelector('#placements').textContent")
        page.submit("document.querySelector('nav form').submit(); 0")
        page.go(address + "/")
        assert page.run("location.pathname") == "/login"
        assert page.complaints == []


def test_without_scripts_the_tables_say_the_same(tmp_path: Path) -> None:
    with served(tmp_path) as (address, secret), browser(tmp_path / "profile") as page:
        page.look_like(390, 844)
        log_in(page, address, secret)
        page.look_like(390, 844, script=False)
        page.go(address + "/")
        page.look_like(390, 844)  # the page is loaded: from now on only this test's own scripts run
        assert page.run("document.querySelectorAll('figure canvas').length") == 0
        assert page.run("document.querySelectorAll('details:not([open])').length") == 0
        assert page.run("document.querySelectorAll('details table tbody tr').length") > 20
        assert page.complaints == []


def test_somebody_simulates_an_application_and_sees_what_is_wrong_with_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulations, "PATIENCE", 100.0)
    with served(tmp_path, hostile=False, jobs=2) as (address, secret), browser(tmp_path / "profile") as page:
        page.look_like(1280, 900)
        log_in(page, address, secret)
        page.go(address + "/simulation")
        editor, send = "document.querySelector('#application')", "document.querySelector('main form').submit(); 0"
        written = page.run(f"{editor}.value")
        page.submit(f"{editor}.value = 'def master():\\n    fly(3)\\n'; {send}")
        assert "line 2: fly is no block" in page.run("document.querySelector('[role=alert]').textContent")
        assert "fly(3)" in page.run(f"{editor}.value")
        refused, page.complaints[:] = [*page.complaints], []
        assert all("422" in each for each in refused)
        page.submit(f"{editor}.value = {json.dumps(written)}; {send}")
        assert "execution time" in page.run("document.querySelector('#result').textContent")
        page.look_like(390, 844, dark=True)
        page.go(address + "/simulation?kept=1")
        assert "slave" in page.run("document.querySelector('#result').textContent")
        assert page.run("document.documentElement.scrollWidth <= innerWidth")
        assert page.complaints == []


def pictures(folder: Path) -> None:
    """Write the pictures of the documentation, with few colours so that they stay small."""
    simulations.PATIENCE = 100.0
    with (
        tempfile.TemporaryDirectory() as work,
        served(Path(work), hostile=False, jobs=40) as (address, secret),
        browser(Path(work, "profile")) as page,
    ):
        for name, width, height, dark in (
            ("dashboard", 1200, 900, False),
            ("dashboard-phone", 390, 1500, False),
            ("dashboard-phone-placements", 390, 1500, True),
        ):
            page.look_like(width, height, dark=dark)
            if name == "dashboard":
                log_in(page, address, secret)
            page.go(address + "/")
            if name.endswith("placements"):
                page.run("document.querySelector('#placements').scrollIntoView({behavior: 'instant'}); 0")
            _pictured(page, folder / f"{name}.png", whole=name == "dashboard")
        page.look_like(1200, 900)
        page.go(address + "/simulation")
        page.submit("document.querySelector('main form').submit(); 0")
        _pictured(page, folder / "simulation.png", whole=True)


def _pictured(page: Browser, path: Path, *, whole: bool) -> None:
    time.sleep(0.5)
    page.screenshot(path, whole=whole)
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(48).save(path, optimize=True)


if __name__ == "__main__":
    pictures(Path(sys.argv[1]))
