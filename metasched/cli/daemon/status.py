"""``metasched status`` and ``metasched mode``: the state of the daemon, the quality of its advice, and its mode."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any, get_args

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from metasched.cli import output
from metasched.cli.configured import ask_daemon
from metasched.cli.options import ConfigOption, JsonOption, UrlOption, configuration_path
from metasched.modes import Mode
from metasched.plain_numbers import number_of, plain, span
from metasched.records import InputError
from metasched.service.quality.verdict import MEANINGS

#: Sources of partitions by the words of users, where these differ from those in the answer.
SOURCES = {"described": "the configuration"}


def status(config: ConfigOption = None, url: UrlOption = None, as_json: JsonOption = False) -> None:
    """Show the state of the daemon, how good its advice was or would have been, and what to do next.

    The Unix socket needs no token; by URL one is taken from $METASCHED_TOKEN.
    """
    answer = ask_daemon(config, url, "GET", "/v1/status")
    if as_json:
        output.print_json(answer)
        return
    _show(answer, os.fspath(configuration_path(config)))
    if answer["by_application"]:
        _show_parts(answer)


def mode(
    wanted: Annotated[str | None, typer.Argument(metavar="shadow|advise|act", help="The mode to set.")] = None,
    config: ConfigOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show or set the mode of the running daemon; it applies from the next job and survives a restart.

    Setting it needs an admin's token in $METASCHED_TOKEN. It applies until another mode is set, or the configuration's
    mode is changed.
    """
    if wanted is not None and wanted not in get_args(Mode):
        raise InputError(f"the mode is {wanted!r}, expected one of {', '.join(get_args(Mode))}")
    if wanted is None:
        answer = ask_daemon(config, url, "GET", "/v1/mode")
    else:
        answer = ask_daemon(config, url, "PUT", "/v1/mode", {"mode": wanted})
    output.answer(as_json, answer, _mode(answer))


def _mode(answer: dict[str, Any]) -> str:
    text = f"{answer['mode']}: {MEANINGS[answer['mode']]}"
    if answer["set_by"] is None:
        return f"{text}; as configured"
    at = datetime.fromtimestamp(answer["set_at"], UTC)
    return f'{text}; set by {answer["set_by"]} {at:%Y-%m-%d %H:%M} UTC, the configuration says "{answer["configured"]}"'


def _show(answer: dict[str, Any], file: str) -> None:
    table = Table(show_header=False, box=None, pad_edge=False)
    for rows in (_daemon(answer), _loads(answer), _learned(answer), _advice(answer["quality"]), _next(answer, file)):
        for name, text in rows:
            table.add_row(name, text)
    output.show(table)


#: Rows of the table: what each is about, and what is said of it.
Rows = Iterator[tuple[str, str | Text]]


def _daemon(answer: dict[str, Any]) -> Rows:
    yield "mode", _mode(answer)
    yield "version", f"{answer['version']}, up for {span(answer['up'])}, database {answer['database']}"
    for kind, fault in answer.get("faults", {}).items():
        yield kind, Text(fault)
    if not answer.get("leads", True):
        yield "follows", "another daemon leads: this one only answers reads, and takes over when the other ends"


def _loads(answer: dict[str, Any]) -> Rows:
    ages = ", ".join(f"{SOURCES.get(name, name)} {age:.0f} s ago" for name, age in answer["sources"].items())
    yield "partitions", f"{answer['partitions']}; last updated: {ages or 'never'}"
    for source in answer.get("load_sources", ()):
        answered = "never answered" if source["age"] is None else f"answered {source['age']:.0f} s ago"
        wrong = f"; {source['fault']}" if source["fault"] else ""
        counts = number_of(source["nodes"], "node"), answered, number_of(source["failures"], "failure")
        yield "source", f"{source['name']}: {', '.join(counts)}{wrong}"
    yield "nodes", f"{answer['nodes_with_loads']} report loads"


def _learned(answer: dict[str, Any]) -> Rows:
    left, failed = number_of(answer["runs_to_learn"], "run"), number_of(answer["learning_failures"], "failure")
    yield "models", f"{answer['models']}; {left} still to learn, {failed}"
    for part in answer.get("learned", ()):
        of = f"{part['application']} on {part['platform']}"
        if part["unmeasured"]:
            yield "unmeasured", Text(f"the loads of {part['unmeasured']} of {part['runs']} runs learned of {of}")
        for notice in part.get("notices", ()):
            yield "notice", Text(f"{of}: {notice}")


def _advice(quality: dict[str, Any]) -> Rows:
    yield "jobs", f"{quality['jobs']} with advice have finished; {quality['failed']} failed or were killed"
    if quality["jobs"]:
        error = "" if quality["ppe_mean"] is None else f", the advice off by {quality['ppe_mean']:.1f} % on average"
        where = f"{quality['same_partition']} in the partition advised"
        yield "agreement", f"{quality['followed']} ran on the nodes advised{error}; {where}"
    if quality["elsewhere"]:
        saved = quality["time_taken"] - quality["time_as_advised"]
        slower = f"{quality['faster']} of them slower than predicted where advised"
        sense = f"of {span(quality['time_taken'])} {span(abs(saved))} would have been {_sense(saved)}"
        yield "elsewhere", f"{quality['elsewhere']} ran elsewhere, {slower}: {sense}"
    if quality["metered"]:
        saved = quality["energy_taken"] - quality["energy_as_advised"]
        taken = f"of {plain(quality['energy_taken'])} J that {quality['metered']} of these took"
        yield "energy", f"{taken}, {plain(abs(saved))} J would have been {_sense(saved)} where advised"
    if quality["killed_by_limit"]:
        yield "limits", f"{quality['killed_by_limit']} would exceed the suggested time limit"


def _sense(saved: float) -> str:
    return "saved" if saved >= 0 else "lost"


def _next(answer: dict[str, Any], file: str) -> Rows:
    yield "verdict", answer["verdict"]["why"]
    yield "next", answer["next_step"]["line"]
    if answer["next_step"]["command"]:
        yield "", f"METASCHED_TOKEN=... {answer['next_step']['command']}   (an admin's token), or"
        yield "", f'mode = "{answer["verdict"]["mode"]}" in {file}, and systemctl restart metasched'


def _show_parts(answer: dict[str, Any]) -> None:
    table = Table("application", "platform", "judged", "error", "coverage", "where advised", "time saved", "good for",
                  box=box.SIMPLE_HEAD)  # fmt: skip
    for part in answer["by_application"]:
        table.add_row(
            Text(part["application"]),
            Text(part["cluster"]),  # as daemons of every version call the platform
            f"{part['judged']}",
            _figure(part["ppe_mean_there"], "{:.1f} %"),
            _figure(part["held"], "{:.0%}"),
            f"{part['followed']} of {part['jobs']}",
            _saved(part),
            part["verdict"]["mode"] or "too early",
        )
    output.show(table)
    if answer["more_applications"]:
        output.out.print(f"and {answer['more_applications']} more")


def _saved(part: dict[str, Any]) -> str:
    text = _figure(part["saved"], "{:.0%}")
    return text if part["saved_low"] is None else f"{text} ({part['saved_low']:.0%} to {part['saved_high']:.0%})"


def _figure(value: float | None, form: str) -> str:
    return "–" if value is None else form.format(value)
