"""URLs of servers in settings: whether they can be asked at all, and whether that stays on this host."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit


def host_of(url: str) -> str | None:
    """The host of a URL that can be asked by HTTP or HTTPS; None if it cannot.

    >>> host_of("https://east.example:8765/metasched"), host_of("http://[::1]:8765")
    ('east.example', '::1')
    >>> [host_of(url) for url in ("ftp://east", "https://", "http://[::", "http://east:99999", "http://a b")]
    [None, None, None, None, None]
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.port != 0 and not any(map(str.isspace, url))
    except ValueError:  # of the port, or of brackets around an address
        return None
    return parts.hostname if usable else None


def is_this_host(host: str) -> bool:
    """Whether a host is this one by its loopback address.

    >>> [is_this_host(host) for host in ("localhost", "127.0.0.2", "::1", "127.example", "localhost.example")]
    [True, True, True, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
