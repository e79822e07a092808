"""Settings of an agent: :func:`read_settings` reads one TOML file, which environment variables override."""

from __future__ import annotations

import logging
import os
import socket
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError, field_validator

from monitors.urls import host_of
from monitors.validated_fields import StrictFields

_log = logging.getLogger(__name__)

#: ``METASCHED_AGENT_INTERVAL=5`` sets ``interval``.
PREFIX = "METASCHED_AGENT_"
#: Most that a file of settings, or of a secret, may hold.
MOST_BYTES = 2**20


class Settings(StrictFields, BaseModel):
    """Everything an administrator may set; unknown names are refused, since they are misspelt ones.

    Parameters
    ----------
    node : its name, as schedulers spell it.
    daemon : where samples are sent, tried in this order; None where they are only served.
    token : of this node.
    interval : between samples (s).
    spool, spool_samples : where samples wait to be sent, and how many at most.
    interface : whose link is measured; None for that of the default route.
    processors : that a job takes of this node; the CPU reading is what each of so many would get.
    probe_budget : share of one processor that probes of the CPU may take; 0 for no probes.
    listen, probe_listen : addresses at which samples are served and probes answered.
    probe_secret : what probes must know.
    probe_period : between probes of one link (s).
    members : addresses of the nodes that are probed, by name.
    delays : file that the delays between nodes are written to.
    site : the site that this agent probes other sites for; empty where it probes none.
    sites : addresses of the agents that do so, one of each site, by name.
    sites_listen, sites_secret, sites_period : as for the members; the secret is that of the sites' agents.
    sites_transfer : bytes of one transfer to another site at most.
    sites_daemon, sites_token : where the links to other sites are reported, by default the daemon, and the token of
        this site; without one they are not reported.
    """

    node: str = Field(default_factory=lambda: socket.gethostname().split(".")[0], min_length=1)
    daemon: Annotated[str, Field(pattern=r"^https?://\S+( https?://\S+)*$")] | None = None
    token: str = ""
    interval: float = Field(10.0, ge=0.1, le=3600)
    spool: Path = Path("/var/lib/metasched-agent/agent.db")
    spool_samples: int = Field(1_000_000, ge=1000)
    interface: str | None = None
    processors: int = Field(1, ge=1)
    probe_budget: float = Field(3e-4, ge=0, le=0.05)
    listen: str | None = None
    probe_listen: str | None = None
    probe_secret: str = ""
    probe_period: float = Field(120.0, ge=1, le=86_400)
    members: dict[str, str] = Field(default_factory=dict)
    delays: Path | None = None
    site: str = ""
    sites: dict[str, str] = Field(default_factory=dict)
    sites_listen: str | None = None
    sites_secret: str = ""
    sites_period: float = Field(600.0, ge=1, le=86_400)
    sites_transfer: int = Field(64 << 20, ge=64 << 10, le=256 << 20)
    sites_daemon: Annotated[str, Field(pattern=r"^https?://\S+( https?://\S+)*$")] | None = None
    sites_token: str = ""

    @field_validator("daemon", "sites_daemon")
    @classmethod
    def _urls(cls, value: str | None) -> str | None:
        for url in (value or "").split():
            if host_of(url) is None:
                raise ValueError(f"{url!r} is no URL of a daemon, expected http:// or https:// with a host")
        return value

    @field_validator("listen", "probe_listen", "sites_listen")
    @classmethod
    def _an_address(cls, value: str | None) -> str | None:
        return value if value is None else "{}:{}".format(*address(value))

    @field_validator("members", "sites")
    @classmethod
    def _addresses(cls, value: dict[str, str]) -> dict[str, str]:
        return {name: "{}:{}".format(*address(place)) for name, place in value.items()}


def address(text: str) -> tuple[str, int]:
    """Host and port of ``host:port``.

    >>> address("10.0.0.1:7070")
    ('10.0.0.1', 7070)
    """
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or not 0 <= int(port) <= 65535:
        raise ValueError(f"{text!r} is not an address, expected host:port")
    return host, int(port)


def read_settings(path: Path | None, environment: Mapping[str, str] = os.environ) -> Settings:
    """Read the file, then the environment.

    Parameters
    ----------
    path : the TOML file; None reads the environment only.
    environment : variables by name.

    Raises
    ------
    ValueError : one line that names the file or variable, what is wrong there, and what was expected. Where a file
        named ``..._FILE`` holds a secret, as ``METASCHED_AGENT_TOKEN_FILE`` or ``METASCHED_AGENT_PROBE_SECRET_FILE``
        name it, the secret shows in no process list.
    """
    values: dict[str, Any] = {}
    if path is not None:
        try:
            values = tomllib.loads(_text(path))
        except OSError as error:
            raise ValueError(f"{path}: {(error.strerror or str(error)).lower()}") from None
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path}: {error}") from None
    for variable, text in environment.items():
        if not variable.startswith(PREFIX):
            continue
        name = variable.removeprefix(PREFIX).lower()
        if name in ("token_file", "probe_secret_file", "sites_secret_file", "sites_token_file"):
            values[name.removesuffix("_file")] = _secret(variable, Path(text))
        else:
            values[name] = _members(variable, text) if name in ("members", "sites") else text
    try:
        return Settings(**values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "settings"
        origin = path or "environment"
        raise ValueError(f"{origin}: {where}: {first['msg']}") from None


def _secret(variable: str, path: Path) -> str:
    try:
        if path.stat().st_mode & 0o007:
            _log.warning("%s: everybody on this host may use %s, expected mode 0600", variable, path)
        return _text(path).strip()
    except (OSError, ValueError) as error:
        raise ValueError(f"{variable}: {error}") from None


def _text(path: Path) -> str:
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ValueError(f"has more than {MOST_BYTES} bytes")
    return data.decode()


def _members(variable: str, text: str) -> dict[str, str]:
    """Addresses by member, from text such as ``n0=10.0.0.1:7071,n1=10.0.0.2:7071``."""
    pairs = [part.partition("=") for part in text.split(",") if part]
    if not all(name and place for name, _, place in pairs):
        raise ValueError(f"{variable}: {text!r}, expected name=host:port,name=host:port")
    return {name.strip(): place.strip() for name, _, place in pairs}
