"""Sites that lend runs of an application to those that have few of it, when both are asked: :class:`Lenders`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from metasched.predictors.porting.platforms import ENOUGH, LENDS
from metasched.records import Run
from metasched.sites.lending import NEWEST, REMEMBERED, lent_document, lent_to, runs_in
from metasched.sites.offer import runs_known
from metasched.sites.settings import SiteTable
from metasched.sites.site_client import SiteAnswer, SiteClient


class Lenders:
    """The runs that sites can lend, as far as they were asked for of late."""

    def __init__(self, client: SiteClient, now: Callable[[], float]) -> None:
        self._client, self._now = client, now
        self._lendable: dict[tuple[str, str], tuple[tuple[Run, ...], float]] = {}

    def answers(
        self,
        asked: Sequence[SiteTable],
        questions: Mapping[str, tuple[str, str, Any]],
        heard: Mapping[str, SiteAnswer],
        until: float,
    ) -> tuple[dict[str, SiteAnswer], dict[str, tuple[str, ...]]]:
        """The answers, those of sites with few runs made again with runs of the others; and whose these are, by site.

        Parameters
        ----------
        asked : the sites.
        questions : method, path and document of the request for each, by name.
        heard : what each has answered, by name.
        until : when all must have answered (s, by the clock).
        """
        answers, lenders = dict(heard), {}
        known = {table.name: runs_known(heard[table.name].answer) for table in asked if not table.grid}
        poor = [table for table in asked if (count := known.get(table.name)) is not None and count < ENOUGH]
        if not poor or max(count or 0 for count in known.values()) < LENDS:
            return answers, {}
        application = questions[poor[0].name][2]["application"]
        rich = [table for table in asked if (known.get(table.name) or 0) >= LENDS]
        runs = self._runs_of(rich, application, until - self._now())
        again = {}
        for table in poor:
            if lent := lent_to(table.name, runs):
                method, path, document = questions[table.name]
                again[table.name] = method, path, document | {"lent": [lent_document(run) for run in lent]}
                lenders[table.name] = tuple(dict.fromkeys(run.cluster.partition("/")[0] for run in lent))
        tables = [table for table in poor if table.name in again]
        for name, answer in self._client.ask_all(tables, again, max(until - self._now(), 0.0)).items():
            if answer.why:  # its own answer is used
                del lenders[name]
            else:
                answers[name] = replace(answer, seconds=heard[name].seconds + answer.seconds)
        return answers, lenders

    def _runs_of(self, tables: Sequence[SiteTable], application: str, within: float) -> dict[str, tuple[Run, ...]]:
        """The runs of an application that sites can lend, asked for again when they are old."""
        now = self._now()
        for key in [key for key, (_, at) in [*self._lendable.items()] if now - at > REMEMBERED]:
            self._lendable.pop(key, None)
        missing = [table for table in tables if (table.name, application) not in self._lendable]
        path = f"/v1/runs?application={quote(application, safe='')}&last={NEWEST}"
        heard = self._client.ask_all(missing, {each.name: ("GET", path, None) for each in missing}, max(within, 0.0))
        for name, answer in heard.items():
            if not answer.why:
                self._lendable[name, application] = runs_in(answer.answer, name, application), now
        kept = {table.name: self._lendable.get((table.name, application)) for table in tables}
        return {name: found[0] for name, found in kept.items() if found is not None}
