"""``metasched explain``: the predicted completion of a placement, term by term."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer
from rich import box
from rich.table import Table

from metasched.cli import options, output
from metasched.cli.placements import rankings
from metasched.cli.placements.given import Given
from metasched.described_placements import Scene
from metasched.placement.explaining.breakdown import explained
from metasched.placement.explaining.documents import PlacementTable, explanation_document
from metasched.placement.explaining.energy_words import energy_words
from metasched.plain_numbers import plain
from metasched.predictors.abilities import under
from metasched.records import DEFAULT_SETTINGS, InputError, Settings
from metasched.store.files.whole_files import read_text

#: Ids of placements, and numbers of jobs as schedulers write them, also those of a part of an array.
_ID, _JOB = re.compile("[0-9a-f]{32}"), re.compile(r"[0-9][0-9A-Za-z_.\[\]-]{0,63}")


@options.grouped
def explain(
    *,
    placement: Annotated[
        str, typer.Argument(help="Answer of metasched rank --json, a placement's id, or a job number.")
    ],
    given: Given,
    stated: options.SettingsOptions,
    number: Annotated[int, typer.Option(min=1, help="Which placement of the answer, by rank.")] = 1,
    as_json: options.JsonOption = False,
) -> None:
    """Explain the predicted completion of a placement, term by term.

    The daemon explains a placement that it advised, by its id or by the number of its job, and without
    --clusters also those of a ranking.
    """
    settings = stated.settings()
    if not Path(placement).exists() and (_ID.fullmatch(placement) or _JOB.fullmatch(placement)):
        if given.clusters is not None:
            raise InputError("--clusters is given with a placement that the daemon explains", where=placement)
        uid = placement if _ID.fullmatch(placement) else _placement_of(placement, given)
        explanation = given.consult("GET", f"/v1/placements/{uid}/explanation")
    else:
        if not Path(placement).exists():
            expected = "expected the id of a placement, the number of a job, or an answer of metasched rank --json"
            raise InputError(f"no such file or directory, {expected}", where=placement)
        answer = rankings.read(read_text(placement), where=placement)
        asked = next((each for each in answer.placements if each.rank == number), None)
        if asked is None:
            raise InputError(f"--number {number}: there are {len(answer.placements)} placements in {placement}")
        if settings == DEFAULT_SETTINGS:
            settings = answer.settings
        if given.clusters is not None:
            scene = given.scene(answer.application)
            explanation = _explained(scene, answer.problem_size, asked, settings)
        else:
            question = {
                "application": answer.application,
                "problem_size": answer.problem_size,
                "placement": asked.model_dump(),
                **settings.as_dict(),
            }
            explanation = given.consult("POST", "/v1/explanations", question)
    if as_json:
        output.print_json(explanation)
    else:
        _tell(explanation)


def _placement_of(job: str, given: Given) -> str:
    """The id of the newest placement of a job."""
    found = given.consult("GET", f"/v1/placements?limit=1&job={quote(job, safe='')}")
    if not found:
        raise InputError(
            f"no placement of a job {job} is known to you, expected the number of a placed job or the id in its comment"
        )
    return str(found[0]["id"])


def _explained(scene: Scene, problem_size: float, asked: PlacementTable, settings: Settings) -> dict[str, Any]:
    cluster = next((each for each in scene.clusters if each.name == asked.cluster), None)
    if cluster is None or asked.cluster not in scene.predictors:
        raise InputError(f"cluster {asked.cluster} of the placement has no description or no model")
    placement = asked.record()
    predictor = under(scene.predictors[asked.cluster], placement.resource_set.settings(settings))
    found = explained(placement, predictor, problem_size, cluster)
    return explanation_document(found, asked.costs)


def _tell(explanation: dict[str, Any]) -> None:
    chosen, harm = PlacementTable.model_validate(explanation).record(), explanation["costs"].get("harm") or 0.0
    taken, interval = chosen.resource_set, chosen.prediction.interval
    shown = Table(title=rankings.where(taken), title_justify="left", box=box.SIMPLE, show_footer=True)
    shown.add_column("part", footer="completion")
    shown.add_column("how", overflow="fold")
    shown.add_column("s", justify="right", footer=plain(chosen.completion))
    for part in explanation["parts"]:
        shown.add_row(part["name"], part["how"], plain(part["seconds"]))
    output.show(shown)
    least, narrowest = explanation["least_cpu"], explanation["narrowest"]
    for line in (
        f"CPU {taken.available_cpu:.3g} is that of {least}, "
        f"{plain(taken.available_bandwidth)} Mbit/s that of the {narrowest}",
        *explanation["notes"],
        f"with {interval.level:.0%} probability it runs {plain(interval.low)} to {plain(interval.high)} s "
        "without contention",
        *((f"jobs already running lose {plain(harm)} s in total",) if harm > 0 else ()),
        *filter(None, [energy_words(chosen)]),
        chosen.reason,
    ):
        output.say(line)
