"""URLs of settings: which can be asked, of which host, and which hosts are this one."""

from __future__ import annotations

import pytest

from monitors.urls import host_of, is_this_host


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://east", "east"), ("https://east:1/path?a=b", "east"), ("http://user:word@East:65535", "east"),
        ("http://east:0", None), ("http://east:65536", None), ("http://east:x", None), ("http://east:-1", None),
        ("HTTP://east", "east"), ("http:/east", None), ("http://", None), ("east", None), ("east:80", None), ("", None),
        ("http://east/a b", None), ("http://east/\n", None), ("\thttp://east", None), ("file:///etc/passwd", None),
        ("http://[::1", None), ("http://[::1]/x", "::1"),
    ],
)  # fmt: skip
def test_the_host_of_a_url_that_can_be_asked(url: str, host: str | None) -> None:
    assert host_of(url) == host


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("localhost", True), ("127.0.0.1", True), ("127.255.0.9", True), ("::1", True), ("128.0.0.1", False),
        ("126.255.255.255", False), ("::2", False), ("::", False), ("0.0.0.0", False), ("Localhost", False),
        ("", False), ("127.0.0.1.example", False),
    ],
)  # fmt: skip
def test_this_host_is_known_by_its_loopback_addresses(host: str, here: bool) -> None:
    assert is_this_host(host) is here
