"""How sites are configured: :class:`SiteTable`, a ``[[site]]`` of the grid's daemon, and the routes between sites."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field, model_validator

from monitors.relative_paths import PathText, PlacedPath
from monitors.urls import host_of, is_this_host
from monitors.validated_fields import StrictFields

SiteName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$")]
LinkName = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]+$")]


class SiteRoute(StrictFields, BaseModel):
    """A ``[[routing.route]]``: the links that packets between two sites cross, which count alike in both directions.

    >>> SiteRoute(between=("home", "east"), links=["home", "backbone", "east"]).between
    ('home', 'east')
    """

    between: tuple[SiteName, SiteName]
    links: Annotated[list[LinkName], Field(min_length=1, max_length=64)]

    @model_validator(mode="after")
    def _of_two_sites_by_each_link_once(self) -> SiteRoute:
        if self.between[0] == self.between[1]:
            raise ValueError(f"a route is between {self.between[0]} and itself, expected two sites")
        if len(set(self.links)) < len(self.links):
            raise ValueError(f"the route between {' and '.join(self.between)} crosses a link twice, expected once")
        return self


class Routing(StrictFields, BaseModel):
    """The ``[routing]`` of the grid's daemon.

    Parameters
    ----------
    here : what the agents call the daemon's own site; where it is empty, any site that no ``[[site]]`` names.
    route : between pairs of sites.
    """

    here: Annotated[str, Field(pattern=r"^([A-Za-z0-9_][A-Za-z0-9_.-]{0,63})?$")] = ""
    route: Annotated[list[SiteRoute], Field(max_length=2000)] = []

    @model_validator(mode="after")
    def _each_pair_once(self) -> Routing:
        pairs = [frozenset(each.between) for each in self.route]
        if len(set(pairs)) < len(pairs):
            twice = next(each.between for each in self.route if pairs.count(frozenset(each.between)) > 1)
            raise ValueError(f"there are two routes between {' and '.join(twice)}, expected one")
        if self.route and not self.here:
            raise ValueError("here is missing, expected what the agents call the site of this daemon")
        return self


class SiteTable(StrictFields, BaseModel):
    """One site of a grid.

    Parameters
    ----------
    name : what people call it.
    url : where its daemon listens: a URL, or the path of a Unix socket on this host.
    token_file : file with the token of a client that may read there, and see jobs where outcomes are to be learned.
    ca_file : certificates that are trusted for it; the system's where there is none.
    deadline : how long its answer may take in all (s).
    bandwidth : to bring data there (Mbit/s), where it is known.
    grid : whether it is a grid itself, whose sites are asked too.
    ssh : where OpenSSH submits jobs, ``user@host`` or a name of ssh_config; empty where none are.
    scheduler : the kind of its scheduler, for the command that submits.

    Examples
    --------
    >>> SiteTable(name="east", url="https://east.example:8765", bandwidth=1000).deadline
    3.0
    """

    name: SiteName
    url: Annotated[PathText, Field(min_length=1, max_length=1000)]
    token_file: PlacedPath | None = None
    ca_file: PlacedPath | None = None
    deadline: Annotated[float, Field(ge=0.1, le=60)] = 3.0
    bandwidth: Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)] | None = None
    grid: bool = False
    ssh: Annotated[str, Field(pattern=r"^([A-Za-z0-9_][A-Za-z0-9_.@:-]{0,254})?$")] = ""
    scheduler: Literal["slurm", "grid_engine"] = "slurm"

    @model_validator(mode="after")
    def _no_token_in_the_clear(self) -> SiteTable:
        if "://" not in self.url:
            return self
        host = host_of(self.url)
        if host is None:
            raise ValueError(f"site {self.name}: url is {self.url!r}, expected http://, https:// or a socket's path")
        if self.url.lower().startswith("http:") and self.token_file is not None and not is_this_host(host):
            raise ValueError(f"site {self.name}: a token would go to {self.url} unencrypted, expected https://")
        return self
