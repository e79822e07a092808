"""Debian's chromium without a screen, driven by its DevTools protocol over a pair of pipes."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BINARY = shutil.which("chromium")
TIMEOUT = 120.0


class Browser:
    """One page, and whatever its console and its network complained of."""

    def __init__(self, folder: Path) -> None:
        assert BINARY is not None
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()

        def pipes() -> None:  # chromium reads the protocol from 3 and writes it to 4
            os.dup2(os.dup(to_browser), 3)
            os.dup2(os.dup(from_browser), 4)

        self._process = subprocess.Popen(
            [BINARY, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--hide-scrollbars", "--remote-debugging-pipe", f"--user-data-dir={folder}", "about:blank"],
            preexec_fn=pipes, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_browser)
        os.close(from_browser)
        self._number, self._buffer, self._session = 0, b"", ""
        self._events: list[dict[str, Any]] = []
        self.complaints: list[str] = []
        target = next(each for each in self._call("Target.getTargets")["targetInfos"] if each["type"] == "page")
        attached = self._call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    def close(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait(TIMEOUT)
        os.close(self._out)
        os.close(self._in)

    def look_like(
        self, width: int, height: int, *, dark: bool = False, script: bool = True, scale: float = 1.0
    ) -> None:
        """Take on a screen's size and colours, and run scripts or not."""
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 700,
        )  # fmt: skip
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self._call("Emulation.setEmulatedMedia", features=features)
        self._call("Emulation.setScriptExecutionDisabled", value=not script)

    def go(self, url: str) -> None:
        """Open a page and wait until it is loaded."""
        self._events.clear()
        self._call("Page.navigate", url=url)
        self._wait_for("Page.loadEventFired")

    def submit(self, script: str) -> None:
        """Run a script that leaves the page, and wait for the next one."""
        self._events.clear()
        self.run(script)
        self._wait_for("Page.loadEventFired")

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = self._call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        """Write a picture of the page."""
        answer = self._call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))

    def _call(self, method: str, **parameters: Any) -> Any:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + TIMEOUT
        while time.monotonic() < end:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            self._note(answer)
        raise TimeoutError(method)

    def _wait_for(self, event: str) -> None:
        end = time.monotonic() + TIMEOUT
        while not any(each["method"] == event for each in self._events):
            assert time.monotonic() < end, f"no {event}"
            self._note(self._read())

    def _note(self, event: dict[str, Any]) -> None:
        self._events.append(event)
        method, answer = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(answer["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and answer["type"] in ("error", "warning", "assert"):
            self.complaints.append(json.dumps(answer["args"]))
        elif method == "Log.entryAdded" and answer["entry"]["level"] in ("error", "warning"):
            self.complaints.append(json.dumps(answer["entry"]))
        elif method == "Network.loadingFailed":
            self.complaints.append(json.dumps(answer))

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            assert select.select([self._in], [], [], TIMEOUT)[0], "the browser says nothing"
            piece = os.read(self._in, 1 << 20)
            assert piece, "the browser has ended"
            self._buffer += piece
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """A browser with a profile of its own in a folder."""
    made = Browser(folder)
    try:
        yield made
    finally:
        made.close()
