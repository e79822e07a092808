"""The daemon's configuration: one TOML file, every value checked, every default safe.

deploy/metasched.toml shows a whole file with what each value means.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field, FiniteFloat, model_validator

from metasched.history.argument_numbers import SCRIPT, is_place
from metasched.modes import Mode
from metasched.node_names import unfold
from metasched.records import FASTEST, SLOWEST
from metasched.schedulers.settings import (
    FluxInstance,
    GridEngineCell,
    HTCondorPool,
    OarServer,
    PbsServer,
    Scheduled,
    SlurmCluster,
)
from metasched.sites.settings import Routing, SiteTable
from metasched.store.files.whole_files import read_text
from metasched.validation import toml_as
from monitors.relative_paths import FileOrEntry, PathText
from monitors.sources.settings import SourceTable
from monitors.validated_fields import Positive, StrictFields

#: At most some thirty years, since the system's timers take little more; a period of almost 0 would keep a core busy.
Seconds = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]
Period = Annotated[float, Field(ge=0.01, le=1e9, allow_inf_nan=False)]
Days = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]
#: What the clusters of a file are called among the schedulers, in the daemon and in its status.
DESCRIBED = "described"
Level = Annotated[float, Field(gt=0, lt=1)]


class _Table(StrictFields, BaseModel):
    """A table of the file; a key that is not known is refused."""


class Listen(_Table):
    """Where the daemon listens: an address and port, and a Unix socket for hooks on the same host."""

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8765
    socket: PathText | None = None
    certificate: PathText | None = None
    key: PathText | None = None

    @model_validator(mode="after")
    def _certificate_and_key_go_together(self) -> Listen:
        if (self.certificate is None) != (self.key is None):
            raise ValueError("one of certificate and key, expected both or none")
        return self

    @property
    def unencrypted(self) -> str:
        """What is wrong where it listens to other hosts without TLS, empty where it does not."""
        if self.host in ("127.0.0.1", "::1", "localhost") or self.certificate is not None:
            return ""
        return f"{self.host}:{self.port} receives tokens unencrypted"


class WebTokens(_Table):
    """JSON Web Tokens that name users: how they are signed, by whom and for whom, and which claims count.

    ``key`` is a file, of the public key in PEM, or of the secret where both share one (HS256 and its kin).
    ``administrator_claim`` is one whose value, or one of them, makes an administrator.
    """

    algorithm: Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
                       "HS256", "HS384", "HS512"]  # fmt: skip
    key: Annotated[PathText, Field(min_length=1)]
    issuer: Annotated[str, Field(min_length=1)] | None = None
    audience: Annotated[str, Field(min_length=1)] | None = None
    user_claim: Annotated[str, Field(min_length=1)] = "sub"
    administrator_claim: Annotated[str, Field(min_length=1)] | None = None
    administrator_value: Annotated[str, Field(min_length=1)] = "metasched-admin"

    @model_validator(mode="after")
    def _a_provider_of_many_services_is_named(self) -> WebTokens:
        # The key of a provider signs tokens for all of its services; a shared secret may be for this one alone.
        if not self.algorithm.startswith("HS") and (self.issuer is None or self.audience is None):
            raise ValueError(f"{self.algorithm} without issuer and audience, expected both")
        return self


class Munge(_Table):
    """MUNGE credentials that name users of other hosts: the socket of munged, the usual one where none is given."""

    socket: PathText | None = None


class Authentication(_Table):
    """Further clients, without a token and on other hosts: readers, and the named administrators."""

    administrators: list[str] = []
    jwt: WebTokens | None = None
    munge: Munge | None = None


class Limits(_Table):
    """Limits of one client: the size of a request, requests per second, and the size of a burst.

    A node may send ``samples_per_second`` in the long run, and ``samples_at_once`` after a silence.
    ``clock`` and ``bandwidth`` say which loads are believed: how far a node's clock may run ahead (s), and the fastest
    link of any node (Mbit/s). ``links`` tells the links of some nodes, folded, as ``{"n[1-16]" = 940}``; it goes before
    the ``link`` of a description.
    """

    body_bytes: Annotated[int, Field(ge=1024)] = 1_048_576
    requests_per_second: Annotated[float, Field(gt=0)] = 500.0
    burst: Annotated[int, Field(ge=1)] = 1000
    samples_per_second: Annotated[float, Field(gt=0)] = 10.0
    samples_at_once: Annotated[int, Field(ge=10_000)] = 20_000
    clock: Seconds = 60.0
    bandwidth: Positive = 1e6
    links: dict[str, Positive] = {}

    @model_validator(mode="after")
    def _links_are_of_nodes(self) -> Limits:
        self.link_of_each()
        return self

    def link_of_each(self) -> dict[str, float]:
        """The links that are given, by node (Mbit/s)."""
        return {node: link for names, link in self.links.items() for node in unfold(names, where="limits.links")}


class Periods(_Table):
    """How often the periodic work is done (s)."""

    loads: Period = 1.0
    partitions: Period = 15.0
    confirm: Period = 5.0
    release: Period = 10.0
    models: Period = 60.0
    means: Period = 30.0
    forecasts: Period = 30.0
    retention: Period = 3600.0
    sites: Period = 30.0
    resend: Period = 300.0
    accounting: Annotated[float, Field(ge=120, le=1e9, allow_inf_nan=False)] = 120.0


class Keep(_Table):
    """For how long data are stored (days)."""

    loads: Days = 30.0
    placements: Days = 365.0
    past_jobs: Days = 1095.0


class Fitting(_Table):
    """Where many models are fitted at once: ``processes`` of this host, or the workers of a Dask scheduler.

    ``scheduler`` is an address such as ``tls://head:8786``; with ``tls`` the certificates are in ``tls_ca_file``,
    ``tls_client_cert`` and ``tls_client_key``.
    """

    processes: Annotated[int, Field(ge=0, le=1024)] = 0
    scheduler: Annotated[str, Field(pattern=r"^(tcp|tls)://[^\s/]+:[0-9]+$")] | None = None
    tls_ca_file: PathText | None = None
    tls_client_cert: PathText | None = None
    tls_client_key: PathText | None = None

    @model_validator(mode="after")
    def _one_place(self) -> Fitting:
        if self.processes and self.scheduler is not None:
            raise ValueError("both processes and scheduler, expected one of them")
        if (self.scheduler or "").startswith("tls:") and None in self.tls.values():
            raise ValueError("a scheduler by tls without tls_ca_file, tls_client_cert and tls_client_key")
        return self

    @property
    def elsewhere(self) -> bool:
        """Whether models are fitted by other processes."""
        return bool(self.processes) or self.scheduler is not None

    @property
    def tls(self) -> dict[str, str | None]:
        """The files of certificates, by Dask's names."""
        return {name: getattr(self, name) for name in ("tls_ca_file", "tls_client_cert", "tls_client_key")}


class EnergyChoice(_Table):
    """How energy counts for jobs whose models predict it; ``metasched rank`` has the same options.

    ``set_frequency`` allows the hook to set the clock of a job that is placed in mode "act".
    """

    policy: Literal["min-time", "min-energy"] = "min-time"
    max_slowdown: Annotated[float, Field(ge=0, le=1000)] | None = None
    power_cap: Positive | None = None
    frequencies: Annotated[list[Annotated[float, Field(ge=SLOWEST, le=FASTEST)]], Field(max_length=100)] = []
    set_frequency: bool = False


class Moving(_Table):
    """Whether jobs that say ``checkpoint=SECONDS`` in their comment are moved while they run, in mode "act".

    Each is considered every ``every`` seconds; ``restart`` is how long a moved job needs until it works again (s).
    """

    act: bool = False
    every: Period = 60.0
    restart: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)] = 30.0


ApplicationName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.+-]{1,64}$")]


def _as_place(text: str) -> str:
    if not is_place(text) or text.startswith(SCRIPT):
        raise ValueError(f"{text[:80]!r}, expected an option, a variable or a position, such as -n, size= or $1")
    return text


class ProblemSize(_Table):
    """Which number that a job states is its problem size: jobs of such names are runs of an application.

    ``name`` has ``#`` for each number, of which ``number`` counts from 1. With ``argument`` or ``script`` the number
    stands in the arguments of the job or in its script instead, at a place of
    :mod:`metasched.history.argument_numbers`. ``metasched history report`` finds them.
    """

    name: Annotated[str, Field(min_length=1, max_length=255)]
    number: Annotated[int, Field(ge=1)] = 1
    argument: Annotated[str, AfterValidator(_as_place)] | None = None
    script: Annotated[str, AfterValidator(_as_place)] | None = None
    application: ApplicationName

    @property
    def place(self) -> str:
        """Where the number stands, as in :func:`metasched.history.problem_sizes.stated_numbers`."""
        return self.argument or (f"{SCRIPT}{self.script}" if self.script else str(self.number))

    @model_validator(mode="after")
    def _there_is_such_a_number(self) -> ProblemSize:
        if len(self.model_fields_set & {"number", "argument", "script"}) > 1:
            raise ValueError(f"{self.name!r} has several of number, argument and script, expected one of them")
        if self.place.isdecimal() and int(self.place) > self.name.count("#"):
            raise ValueError(f"number {self.place} of {self.name!r}, expected a name with a # for each number")
        return self


class SimulatedApplication(_Table):
    """An application that is simulated on a system for a platform until enough of its runs there are learned.

    ``system`` and ``program`` are files as ``metasched simulate`` takes them. ``size`` is the variable that is N, and
    the processes of ``label`` are P, those of the only label where it is empty; ``processes`` are of the other labels,
    ``variables`` the values of the others.
    """

    application: ApplicationName
    platform: Annotated[str, Field(min_length=1, max_length=255)]
    system: Annotated[PathText, Field(min_length=1)]
    program: Annotated[PathText, Field(min_length=1)]
    size: Annotated[str, Field(min_length=1, max_length=64)]
    label: Annotated[str, Field(max_length=64)] = ""
    processes: Annotated[dict[str, Annotated[int, Field(ge=1)]], Field(max_length=100)] = {}
    variables: Annotated[dict[str, FiniteFloat], Field(max_length=100)] = {}


class SignedApplication(_Table):
    """An application whose signature predicts it on a platform until enough of its runs there are learned.

    ``signature`` is a file of ``metasched signature fit``, ``problem_size`` the N of the runs that were traced.
    ``hardware`` and ``network`` are entries of the hardware database or files; without them the machine is the one that
    ``metasched signature extract`` assumes.
    """

    application: ApplicationName
    platform: Annotated[str, Field(min_length=1, max_length=255)]
    signature: Annotated[PathText, Field(min_length=1)]
    problem_size: Annotated[FiniteFloat, Field(gt=0)]
    hardware: Annotated[FileOrEntry, Field(min_length=1)] | None = None
    network: Annotated[FileOrEntry, Field(min_length=1)] | None = None
    processes_per_node: Annotated[int, Field(ge=1, le=10_000)] = 1


class Configuration(_Table):
    """The complete configuration of the daemon."""

    database: Annotated[PathText, Field(min_length=1)] | None = None
    mode: Mode = "shadow"
    level: Level = 0.9
    time_limit_level: Level = 0.98
    time_limit_margin: Annotated[float, Field(ge=1, le=10)] = 1.1
    steer: Literal["nodes", "partition", "features"] = "nodes"
    several_partitions: bool = False
    clusters: PathText | None = None
    shared_nodes: str = ""
    listen: Listen = Listen()
    authentication: Authentication = Authentication()
    limits: Limits = Limits()
    periods: Periods = Periods()
    keep: Keep = Keep()
    energy: EnergyChoice = EnergyChoice()
    fitting: Fitting = Fitting()
    moving: Moving = Moving()
    slurm: list[SlurmCluster] = []
    grid_engine: list[GridEngineCell] = []
    pbs: list[PbsServer] = []
    htcondor: list[HTCondorPool] = []
    flux: list[FluxInstance] = []
    oar: list[OarServer] = []
    source: list[SourceTable] = []
    problem_size: list[ProblemSize] = []
    simulated: Annotated[list[SimulatedApplication], Field(max_length=256)] = []
    signature: Annotated[list[SignedApplication], Field(max_length=256)] = []
    site: Annotated[list[SiteTable], Field(max_length=256)] = []
    routing: Routing = Routing()

    @model_validator(mode="after")
    def _schedulers_have_names_of_their_own(self) -> Configuration:
        if len(set(self.schedulers)) < len(self.schedulers):
            raise ValueError(f"schedulers are called {', '.join(self.schedulers)}, expected each name once")
        if self.clusters is not None and DESCRIBED in self.schedulers:
            raise ValueError(
                f"a scheduler is called {DESCRIBED} as the clusters of {self.clusters} are, expected another name"
            )
        return self

    @model_validator(mode="after")
    def _shared_nodes_have_names(self) -> Configuration:
        self.shared  # noqa: B018
        return self

    @model_validator(mode="after")
    def _sites_have_names_of_their_own(self) -> Configuration:
        names = [each.name for each in self.site]
        if len(set(names)) < len(names):
            raise ValueError(f"sites are called {', '.join(names)}, expected each name once")
        known = {*names, self.routing.here}
        unknown = [each for route in self.routing.route for each in route.between if each not in known]
        if unknown:
            raise ValueError(f"a route leads to {unknown[0]}, expected here or a name of [[site]]")
        return self

    @model_validator(mode="after")
    def _applications_have_one_model_before_their_runs(self) -> Configuration:
        keys = [
            *((each.application, each.platform) for each in self.simulated),
            *((each.application, each.platform) for each in self.signature),
        ]
        for application, platform in keys:
            if keys.count((application, platform)) > 1:
                raise ValueError(
                    f"{application} on {platform} has several tables simulated or signature, expected one of either"
                )
        return self

    @property
    def schedulers(self) -> tuple[str, ...]:
        """Names of all clusters with a scheduler."""
        return tuple(each.name for each in self._scheduled)

    @property
    def prefixes(self) -> dict[str, str]:
        """The prefix of each scheduler's nodes in reports of loads, by the name of the scheduler."""
        return {each.name: each.prefix for each in self._scheduled}

    @property
    def shared(self) -> frozenset[str]:
        """The names of single machines that several schedulers have."""
        return frozenset(unfold(self.shared_nodes, where="shared_nodes") if self.shared_nodes else ())

    @property
    def _scheduled(self) -> Iterator[Scheduled]:
        for tables in (self.slurm, self.grid_engine, self.pbs, self.htcondor, self.flux, self.oar):
            yield from tables


def read_configuration(path: str | os.PathLike[str]) -> Configuration:
    """Read a configuration file; relative paths in it start at its folder.

    Raises
    ------
    InputError : with the file, the field, its value and what was expected.
    """
    return toml_as(Configuration, read_text(path), where=str(path), folder=Path(path).parent)
