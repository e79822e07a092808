"""What a grid of sites refuses: settings that cannot be, questions without end, and steps that do not follow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from metasched.records import InputError
from metasched.sites.grid import MOST_HOPS, Sites
from metasched.sites.question import SitesQuestion
from metasched.sites.settings import SiteTable
from metasched.sites.site_client import ask_site
from metasched.sites.ssh_operations import grid_engine_state


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"url": "ftp://east"}, "url is 'ftp://east', expected http://, https:// or a socket's path"),
        ({"url": "https://"}, "url is 'https://', expected http://, https:// or a socket's path"),
        ({"url": "http://east:1", "token_file": "t"}, "a token would go to http://east:1 unencrypted, expected https"),
        ({"url": "http://me@east", "token_file": "t"}, "a token would go to http://me@east unencrypted"),
        ({"url": "HTTP://east", "token_file": "t"}, "a token would go to HTTP://east unencrypted"),
        ({"url": "http://localhost.east", "token_file": "t"}, "a token would go to http://localhost.east unencrypted"),
        ({"url": "http://127.east", "token_file": "t"}, "a token would go to http://127.east unencrypted"),
        (
            {"url": "http://east/@localhost", "token_file": "t"},
            "a token would go to http://east/@localhost unencrypted",
        ),
        ({"url": "http://[::"}, r"url is 'http://\[::', expected http"),
        ({"url": "https://east:99999"}, "url is 'https://east:99999', expected http"),
    ],
)
def test_an_address_that_would_not_work_or_show_the_token_is_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=f"site east: {said}"):
        SiteTable(name="east", **settings)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://localhost", "http://[::1]:1", "https://east", "/s.sock"])
def test_a_token_goes_to_this_host_or_encrypted(url: str) -> None:
    assert SiteTable(name="east", url=url, token_file="t").url == url


def test_a_token_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    table = SiteTable(name="east", url="https://127.0.0.1:1", token_file=str(tmp_path / "none"))
    with pytest.raises(RuntimeError, match=r"^its token cannot be read: "):
        ask_site(table, "GET", "/v1/status")


def test_a_question_passes_through_few_grids() -> None:
    sites = Sites([], "0.1.0", ask=lambda *_, **__: None)
    with pytest.raises(InputError, match="no site is configured"):
        sites.rank(SitesQuestion("cg", 900.0, data=0.0, via=tuple(map(str, range(MOST_HOPS - 1)))))
    with pytest.raises(InputError, match=f"went through {MOST_HOPS} grids, expected fewer than {MOST_HOPS}"):
        sites.rank(SitesQuestion("cg", 900.0, data=0.0, via=tuple(map(str, range(MOST_HOPS)))))


def test_what_is_no_xml_tells_nothing_of_a_job() -> None:
    with pytest.raises(RuntimeError, match=r"^qstat does not print XML: "):
        grid_engine_state("busy", "7", "cg")
