"""What clients and the daemon say to each other, as JSON; everything that comes in is checked here first."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AliasChoices, ConfigDict, Field, TypeAdapter, ValidationError

from metasched.advised_placements import Demands, Digest, Fraction, Message, Number, SettingsAsked, Weight
from metasched.history.argument_numbers import LONGEST_TEXT
from metasched.jobs import UNKNOWN_DEVICES, Devices, EndedJob, Kind
from metasched.modes import Mode
from metasched.node_names import unfold
from metasched.placement.clusters.constraints import Count, Name, Text
from metasched.placement.explaining.documents import PlacementTable
from metasched.placement.loads.staleness import STALE_AFTER
from metasched.predictors.robust.known_runs import BORROWED
from metasched.records import FASTEST, LONGEST_WORD, SLOWEST, Settings
from metasched.sites.lending import LentRun
from metasched.sites.question import SitesQuestion
from monitors.validated_fields import NotNegative, Positive

#: A sample: time (s), available CPU, available bandwidth (Mbit/s). What is believed of it is for the screening to say.
Sample = tuple[float, float, float]


#: What a model was learned on; earlier clients call it cluster.
_PLATFORM = AliasChoices("platform", "cluster")


#: Of processors (MHz).
Clock = Annotated[float, Field(ge=SLOWEST, le=FASTEST)]
#: Numbers in arguments and scripts, see :mod:`metasched.history.argument_numbers`.
Numbers = Annotated[str, Field(max_length=LONGEST_TEXT, pattern=r"^[A-Za-z0-9_$:=.+ -]*$")]
#: What names a run.
Uid = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]


class Report(Message):
    """What has happened, as programs tell it once: what a daemon refuses of it is lost.

    So what a later version adds is ignored by this one. A question with a demand that is not known is refused: its
    answer would be wrong, and whoever asks goes on without it.
    """

    model_config = ConfigDict(extra="allow")

    @property
    def unknown(self) -> tuple[str, ...]:
        """The keys that this version does not know."""
        return tuple(self.model_extra or ())


class LoadsIn(Report):
    """Some samples of one node, in any order."""

    node: Name
    samples: Annotated[list[Sample], Field(min_length=1, max_length=10_000)]


class RunIn(SettingsAsked):
    """A finished run that was recorded elsewhere; a minimum that was not measured is null or left out."""

    application: Name
    #: The platform, under the name that it has in runs.csv.
    cluster: Annotated[Name, Field(validation_alias=AliasChoices("cluster", "platform"))]
    problem_size: Positive
    processors: Count
    min_avg_avail_cpu: Fraction | None = None
    min_avg_avail_bw: Positive | None = None
    execution_time: Positive
    start_time: Number | None = None
    nodes: Annotated[list[Name], Field(max_length=100_000)] = Field(default_factory=list)
    exit_status: Annotated[int, Field(ge=0, le=65535)] = 0
    user: Text = ""
    uid: Uid | None = None
    energy: Positive | None = None
    energy_covers: Annotated[Text, Field(max_length=LONGEST_WORD)] = ""


class RunsIn(Message):
    """Some runs, stored all or none; those whose uid is known already are not stored again."""

    runs: Annotated[list[RunIn], Field(min_length=1, max_length=1000)]


class ForgetIn(Message):
    """Which runs to forget: those that fit all that is given, at least one of ids, user, since and until (s)."""

    ids: Annotated[list[Uid] | None, Field(min_length=1, max_length=1000)] = None
    user: Text | None = None
    since: Number | None = None
    until: Number | None = None
    application: Name | None = None
    platform: Annotated[Name | None, Field(validation_alias=_PLATFORM)] = None


class DevicesIn(Report):
    """What a job had besides processors: the type of its GPUs, how many, and other generic resources."""

    gpu: Number | Text = ""
    gpus: Number | Text = ""
    gres: Number | Text = ""

    @property
    def devices(self) -> Devices:
        """They as parameters of a run; InputError where there can be none such.

        A job with devices that this version does not know must not be learned as one without.
        """
        if self.unknown:
            return UNKNOWN_DEVICES
        return Settings.of(parameters=self.model_dump(exclude_unset=True)).parameters


#: The values of fields of jobs that this version knows, and what counts instead of one that a later version reports.
_OTHERWISE: dict[str, tuple[TypeAdapter[str], str]] = {
    "kind": (TypeAdapter(Kind), "newer"), "script": (TypeAdapter(Digest), ""), "numbers": (TypeAdapter(Numbers), ""),
}  # fmt: skip


def _is(known: TypeAdapter[str], value: str) -> bool:
    try:
        known.validate_python(value)
    except ValidationError:
        return False
    return True


class JobIn(Report):
    """A job that has ended, as its scheduler tells; ``nodes`` may be folded.

    ``submitted`` is when it was submitted (s), ``kind`` what it is besides an ordinary batch job, ``script`` the digest
    of its script. ``devices`` are parameters of its run for what it had besides processors: ``gpu``, the type of
    its GPUs, ``gpus``, how many, and ``gres``; empty where it had none, null where its scheduler does not know.
    ``numbers`` are those in its arguments and script. Values of ``kind``, ``script`` and ``numbers`` that this version
    does not know are taken for :data:`_OTHERWISE`.
    """

    scheduler: Name
    job: Name
    comment: Annotated[str, Field(max_length=65_536)] = ""
    partition: Text = ""
    nodes: Annotated[Text, Field(max_length=65_536)]
    processors: Count | None = None
    start: Positive
    end: Positive
    exit_status: Annotated[int, Field(ge=0, le=65535)] = 0
    user: Text = ""
    name: Text = ""
    submitted: Positive | None = None
    kind: Text = ""
    script: Text = ""
    processes_per_node: Count | None = None
    threads: Count | None = None
    energy: Positive | None = None
    energy_covers: Annotated[Text, Field(max_length=LONGEST_WORD)] = ""
    frequency: Clock | None = None
    devices: DevicesIn | None = None
    numbers: Annotated[Text, Field(max_length=LONGEST_TEXT)] = ""

    @property
    def unknown(self) -> tuple[str, ...]:
        """The keys and values that this version does not know. Digests and numbers differ from job to job."""
        devices = (f"devices.{name}" for name in (self.devices.unknown if self.devices else ()))
        values = (f"kind={self.kind}" if name == "kind" else f"the form of {name}" for name in self._unknown_values())
        return *super().unknown, *devices, *values

    def _unknown_values(self) -> list[str]:
        """The fields whose values this version does not know."""
        return [name for name, (known, _) in _OTHERWISE.items() if not _is(known, getattr(self, name))]

    def ended(self) -> EndedJob:
        """The job; InputError where there can be no such nodes or devices."""
        fields = self.model_dump(exclude={"nodes", "devices", *(self.model_extra or ())})
        fields |= {name: _OTHERWISE[name][1] for name in self._unknown_values()}
        nodes = tuple(dict.fromkeys(unfold(self.nodes, where="nodes")))
        return EndedJob(**fields, nodes=nodes, devices=None if self.devices is None else self.devices.devices)


class RankIn(Demands):
    """A request for a ranking, with the options of ``metasched rank``; demands of applications are described with them.

    ``weights`` are prices in seconds of the terms of the objective. Without ``forecast`` the loads measured last count.
    ``drain`` names nodes, folded, that count as drained. With ``later`` the answer also tells of the partitions
    in which the job would have to wait first, and what each cluster has. ``lent`` are runs of other sites, which models
    with few runs count with.
    """

    drain: Annotated[Text, Field(max_length=65_536)] = ""
    later: bool = False
    lent: Annotated[list[LentRun], Field(max_length=BORROWED)] = Field(default_factory=list)
    weights: dict[Literal["time", "core_hours", "energy", "risk", "harm"], Weight] = Field(default_factory=dict)
    saving: Annotated[float, Field(ge=0, lt=1)] = 0.0
    near_tie: Annotated[float, Field(ge=0, lt=1)] = 0.0
    rotate: Text | None = None
    pareto: bool = False
    stale_after: NotNegative = STALE_AFTER
    forecast: bool = True
    frequencies: Annotated[list[Clock], Field(max_length=100)] = Field(default_factory=list)
    max_slowdown: Annotated[float, Field(ge=0, le=1000)] | None = None
    power_cap: Positive | None = None
    top: Annotated[int, Field(ge=1, le=1000)] = 10
    level: Annotated[float, Field(gt=0, lt=1)] = 0.9


class SitesIn(Demands):
    """What the sites of a grid are ranked for.

    ``data`` is what the job needs (GB), null where that is not known, and ``held_by`` names the sites that hold it.
    ``sites`` are those that may be used, all where empty. With ``send`` the job goes to the first one. ``via`` names
    the grids that asked each other before, ``within`` is how long the answer may take (s).
    """

    data: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)] | None = None
    held_by: Annotated[list[Name], Field(max_length=1000)] = Field(default_factory=list)
    sites: Annotated[list[Name], Field(max_length=1000)] = Field(default_factory=list)
    send: bool = False
    via: Annotated[list[Annotated[Text, Field(max_length=64)]], Field(max_length=16)] = Field(default_factory=list)
    within: Annotated[float, Field(gt=0, le=60)] = 60.0

    def question(self) -> SitesQuestion:
        """The question, with the demands that were made."""
        own = SitesIn.model_fields.keys() - Demands.model_fields.keys()
        demands = self.model_dump(mode="json", exclude_unset=True, exclude={*own, "application", "problem_size"})
        return SitesQuestion(
            self.application, self.problem_size, demands, self.data, self.held_by, self.sites, self.via, self.within
        )


class SiteJobIn(Message):
    """A job that was submitted to a site, or without a site was not; ``data`` (GB) took ``seconds`` to bring.

    One that was to be withdrawn and ``stays`` is where it was.
    """

    site: Annotated[Text, Field(max_length=64)] = ""
    job: Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9_.\[\]+-]*$")] = ""
    data: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)] = 0.0
    seconds: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)] = 0.0
    stays: bool = False


class SiteLinkIn(Report):
    """What an agent measured of the link to a site: bandwidth (Mbit/s), round trip (s), and how long ago (s)."""

    site: Annotated[Text, Field(min_length=1, max_length=64)]
    bandwidth: Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]
    round_trip: Annotated[float, Field(gt=0, le=600, allow_inf_nan=False)]
    age: Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)] = 0.0


class SiteLinksIn(Report):
    """What the agent of a site measured of the links from there to other sites."""

    site: Annotated[Text, Field(min_length=1, max_length=64)]
    links: Annotated[list[SiteLinkIn], Field(min_length=1, max_length=1000)]

    @property
    def unknown(self) -> tuple[str, ...]:
        """The keys that this version does not know, here and of the links."""
        return *super().unknown, *dict.fromkeys(f"links.{name}" for link in self.links for name in link.unknown)


class RunningIn(SettingsAsked):
    """A job that runs and is asked about: by its number, or by what it is and where.

    ``nodes`` are folded; ``done`` is the fraction that was done when it last started, ``moved_ago`` how long ago it
    moved last (s). ``checkpoint`` and ``restart`` are what a move costs (s), ``data`` what it takes along to another
    scheduler (MB), by ``bandwidth`` (Mbit/s). ``partitions`` are those that it may move to, all where empty. The
    settings are those of a job that is described.
    """

    job: Annotated[Text, Field(max_length=64)] = ""
    scheduler: Text = ""
    application: Text = ""
    problem_size: Positive | None = None
    nodes: Annotated[Text, Field(max_length=65_536)] = ""
    processors: Count | None = None
    running_for: NotNegative | None = None
    done: Annotated[float, Field(ge=0, lt=1)] = 0.0
    moved_ago: NotNegative | None = None
    checkpoint: NotNegative | None = None
    restart: NotNegative | None = None
    data: NotNegative = 0.0
    bandwidth: Positive = 1000.0
    partitions: Annotated[list[Name], Field(max_length=1000)] = Field(default_factory=list)


class ExplainIn(SettingsAsked):
    """One placement of a ranking, as the daemon answered it, to be explained."""

    application: Name
    problem_size: Positive
    placement: PlacementTable


class PredictIn(SettingsAsked):
    """What a prediction is asked for."""

    application: Name
    platform: Annotated[Name, Field(validation_alias=_PLATFORM)]
    problem_size: Positive
    processors: Count
    available_cpu: Fraction
    available_bandwidth: Positive
    level: Annotated[float, Field(gt=0, lt=1)] = 0.9


class WalltimesIn(SettingsAsked):
    """A job that time limits are suggested for: chances of being killed, and limits (s) to judge.

    Every platform with a model where none is named. What loads are expected is what past runs met, unless it is said.
    """

    application: Name
    problem_size: Positive
    processors: Count
    platform: Annotated[Name | None, Field(validation_alias=_PLATFORM)] = None
    chances: Annotated[list[Fraction], Field(max_length=20)] = Field(default_factory=list)
    limits: Annotated[list[Positive], Field(max_length=20)] = Field(default_factory=list)
    available_cpu: Fraction | None = None
    available_bandwidth: Positive | None = None


class ModeIn(Message):
    """The mode that the daemon shall be in."""

    mode: Mode


class ExpectIn(Message):
    """A job whose run time is to be expected by what accounting tells of past ones.

    ``numbers`` are those in its arguments and script.
    """

    user: Name
    processors: Count
    requested_time: Positive
    cluster: Text | None = None
    name: Annotated[Text, Field(max_length=1000)] = ""
    executable: Annotated[Text, Field(max_length=1000)] = ""
    partition: Text = ""
    account: Text = ""
    numbers: Numbers = ""


class StatedIn(Message):
    """A job whose problem size may be a number in its name, its arguments or its script; null is one not seen."""

    name: Text
    arguments: Numbers = ""
    script: Numbers | None = ""


class WaitIn(ExpectIn):
    """A job that is not submitted yet, whose wait is asked for; by its time limit where no user is named."""

    user: Text = ""
    partition: Name


class ForgetUserIn(Message):
    """The user whose past jobs are to be deleted."""

    user: Name
