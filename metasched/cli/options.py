"""Options that several verbs share."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from metasched.records import PARAMETER, InputError, Settings
from metasched.records.settings import parsed

if TYPE_CHECKING:
    from metasched.predictors.load_doubt import LoadDoubt

#: Path of the configuration where none is given.
CONFIGURATION = "/etc/metasched/metasched.toml"

ConfigOption = Annotated[
    Path | None, typer.Option("--config", help=f"Configuration file; $METASCHED_CONFIG, else {CONFIGURATION}.")
]


def _named(context: typer.Context, parameter: typer.CallbackParam, value: str | None) -> str | None:
    """The value of an option; InputError for an empty one, which is not meant to be the default."""
    if value is not None and not value.strip():
        raise InputError(f"--{parameter.name} is empty, expected a name")
    return value


UrlOption = Annotated[
    str | None, typer.Option(callback=_named, help="URL or Unix socket of the daemon; by default the configured one.")
]
DaemonOption = Annotated[str | None, typer.Option(callback=_named, help="URL or Unix socket of the daemon to ask.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
DatabaseOption = Annotated[
    str | None,
    typer.Option(
        "--database",
        "--db",
        callback=_named,
        help="Path or URL of the database; by default $METASCHED_DB or the user's, for a daemon the configured one.",
    ),
]
LevelOption = Annotated[float, typer.Option(help="Level of the intervals, between 0 and 1.")]
ApplicationOption = Annotated[str | None, typer.Option(help="Only runs of this application.")]
PlatformOption = Annotated[
    str | None, typer.Option(help="Platform, for a model of several; by default the one with most runs.")
]
PerNodeOption = Annotated[
    int | None, typer.Option("--processes-per-node", min=1, help="Largest number of processes on a node.")
]
ParameterOption = Annotated[
    list[str] | None,
    typer.Option("--parameter", help="Parameter of the application, NAME=VALUE, a number or a word; repeatable."),
]
FrequencyOption = Annotated[float | None, typer.Option(help="Clock of the processors, MHz.")]
CpuOption = Annotated[
    float | None,
    typer.Option(help="Smallest available CPU to expect, a fraction of one processor; by default the usual value."),
]
BandwidthOption = Annotated[
    float | None, typer.Option(help="Smallest available bandwidth to expect, Mbit/s; by default the usual value.")
]
CpusOption = Annotated[
    str | None,
    typer.Option(
        "--cpu",
        metavar="NUMBER[,NUMBER...]",
        help="Smallest available CPU to expect, a fraction of one processor; by default the usual value. A phased model"
        " takes that of each process.",
    ),
]
BandwidthsOption = Annotated[
    str | None,
    typer.Option(
        "--bandwidth",
        metavar="NUMBER[,NUMBER...]",
        help="Smallest available bandwidth to expect, Mbit/s; by default the usual value. A phased model takes that of"
        " each process.",
    ),
]
ClusterOption = Annotated[str | None, typer.Option(help="Only runs on this cluster.")]


def configuration_path(named: Path | None) -> Path:
    """The configuration file: the one that an option names, else that of $METASCHED_CONFIG, else the usual one."""
    return named or Path(os.environ.get("METASCHED_CONFIG") or CONFIGURATION)


def loads_to_expect(
    model: Any, cpu: float | None, bandwidth: float | None, level: float
) -> tuple[float, float, LoadDoubt | None]:
    """CPU (share of a processor) and bandwidth (Mbit/s) to predict with, and the doubt about them for intervals."""
    from metasched.predictors import load_doubt

    known = [math.nan if load is None else load for load in (cpu, bandwidth)]
    *usual, doubt = load_doubt.loads_to_expect(model, known[0], known[1], level)
    # One that is stated as nan is refused where it is used.
    return usual[0] if cpu is None else cpu, usual[1] if bandwidth is None else bandwidth, doubt


def on_one_platform(known: Any, platform: str | None) -> Any:
    """The predictor of a platform, by default the one with the most runs; InputError if the model is of another."""
    from metasched.predictors.abilities import on_platform

    cluster = getattr(known, "cluster", "")
    found = on_platform(known, platform or cluster)
    if found is known and platform not in (None, cluster):
        raise InputError(f"--platform is {platform}, expected {cluster}, the only platform of the model")
    return found


@dataclass(frozen=True, slots=True)
class SettingsOptions:
    """The options that describe the settings of a run, except for its frequency.

    Parameters
    ----------
    per_node : processes on each node; None where it is not stated.
    threads : of each process; None where it is not stated.
    parameter : those of the application, each ``NAME=VALUE``.

    Examples
    --------
    >>> SettingsOptions(per_node=4, parameter=["steps=100"]).settings().text
    'processes_per_node 4, steps 100'
    >>> SettingsOptions(per_node=4).for_daemon(), SettingsOptions().for_daemon()
    ({'processes_per_node': 4}, {})
    """

    per_node: PerNodeOption = None
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads of each process, each on its own processor; 1 by default.")
    ] = None
    parameter: ParameterOption = None

    def for_daemon(self, frequency: float | None = None) -> dict[str, Any]:
        """Those that are stated, as a daemon is asked for them: older ones know none, and it may know usual threads.

        Parameters
        ----------
        frequency : clock (MHz); None where none is stated.
        """
        asked = self.settings(frequency).as_dict() | {"threads": self.threads}
        return {name: value for name, value in asked.items() if value}

    def settings(self, frequency: float | None = None) -> Settings:
        """These settings, at a clock (MHz) where one is stated."""
        given: dict[str, float | str] = {}
        for text in self.parameter or ():
            name, equals, value = text.partition("=")
            if not (name and equals and value):
                raise InputError(f"--parameter is {text}, expected NAME=VALUE, such as steps=100")
            if name in given:
                raise InputError(f"--parameter {name} is given twice")
            given[name] = value
        try:
            return Settings.of(self.per_node, self.threads or 1, given, frequency)
        except InputError as error:
            text = str(error)
            option = "--frequency" if text.startswith("frequency") else "--parameter"
            raise InputError(text.removeprefix(PARAMETER), where=option) from None


@dataclass(frozen=True, slots=True)
class LearnedSettingsOptions(SettingsOptions):
    """The options that describe the settings of a run that a model predicts."""

    threads: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Threads of each process, each on its own processor; by default those that all learned runs had,"
            " 1 if these differ.",
        ),
    ] = None

    def settings_of(self, predictor: Any, frequency: float | None = None) -> Settings:
        """These settings, at a clock (MHz) where one is stated, for the predictor of the run."""
        from metasched.predictors.abilities import with_usual_threads

        found = self.settings(frequency)
        return found if self.threads else with_usual_threads(found, predictor)


def whole_numbers(option: str, text: str, *, least: int = 1, most: int = 2**40) -> list[int]:
    """The whole numbers that an option lists, separated by commas; InputError for others.

    Parameters
    ----------
    option, text : its name and value.
    least, most : ends of each number, both allowed.

    Examples
    --------
    >>> whole_numbers("--processes", "2, 4,8")
    [2, 4, 8]
    """
    words = [word.strip() for word in text.split(",")]
    whole = all(word.isascii() and word.isdecimal() and len(word.lstrip("0")) <= len(str(most)) for word in words)
    found = [int(word) for word in words] if whole else []
    if not found or min(found) < least or max(found) > most:
        shown = text if len(text) <= 60 else f"{text[:60]}..."
        raise InputError(f"{option} is {shown}, expected whole numbers from {least} to {most}, separated by commas")
    return found


def numbers(option: str, text: str | None) -> tuple[float, ...]:
    """The numbers that an option lists, separated by commas, none where it is not given; InputError for words.

    >>> numbers("--cpu", "0.5, 1"), numbers("--cpu", None)
    ((0.5, 1.0), ())
    """
    try:
        return () if text is None else tuple(map(parsed, text.split(",")))
    except ValueError:
        raise InputError(f"{option} is {text!r}, expected a number, or several separated by commas") from None


def counts(option: str, text: str | None) -> tuple[int, ...]:
    """The numbers of processors that an option lists, none where it is not given; InputError for an empty list.

    >>> counts("--processors", "1,2,4-8"), counts("--processors", None)
    ((1, 2, 4, 5, 6, 7, 8), ())
    """
    from metasched.placement.clusters.constraints import parse_counts
    from metasched.validation import Located

    if text is None:
        return ()
    with Located(option):
        found = parse_counts(text)
    if not found:
        raise InputError(f"{option} is {text!r}, expected numbers of processors such as 1,2,4-8")
    return found


def grouped(verb: Callable[..., None]) -> Callable[..., None]:
    """A verb some of whose parameters are groups of options: dataclasses, each field an option with a default.

    Parameters
    ----------
    verb : the command; in its help the options of a group stand where the group is among its parameters.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Shape:
    ...     width: int = 2
    ...     height: int = 3
    >>> @grouped
    ... def area(shape: Shape, unit: str) -> None:
    ...     print(shape.width * shape.height, unit)
    >>> area(height=4, unit="m2")
    8 m2
    >>> [*signature(area).parameters]
    ['width', 'height', 'unit']
    """
    types = get_type_hints(verb, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in types.items() if is_dataclass(kind)}
    options: dict[str, list[Parameter]] = {}
    for name, kind in groups.items():
        of_fields = get_type_hints(kind, include_extras=True)
        options[name] = [
            Parameter(each.name, Parameter.KEYWORD_ONLY, default=each.default, annotation=of_fields[each.name])
            for each in fields(kind)
        ]

    @wraps(verb)
    def called(**given: Any) -> None:
        made = {
            name: groups[name](**{each.name: given.pop(each.name) for each in taken if each.name in given})
            for name, taken in options.items()
        }
        verb(**given, **made)

    single = {
        name: [each.replace(kind=Parameter.KEYWORD_ONLY, annotation=types[name])]
        for name, each in signature(verb).parameters.items()
    }
    listed = [each for taken in (single | options).values() for each in taken]
    called.__annotations__ = {each.name: each.annotation for each in listed}
    vars(called)["__signature__"] = Signature(listed)
    return called
