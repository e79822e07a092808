"""The models in the database: a history of documents for each application on each platform."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Engine, bindparam, delete, func, insert, select, text, update

from metasched.predictors.contract import Saved
from metasched.records import InputError
from metasched.store.database.engine import name_of, reading, writing
from metasched.store.database.tables import ModelRow, RunRow, table

#: Number of stored versions of a model.
HISTORY = 20


class ModelRecords:
    """The models of all applications on all platforms."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def save(self, application: str, platform: str, document: Mapping[str, Any], *, learned: Iterable[str] = ()) -> int:
        """Store a model as the next version of its application on its platform; return the version, counted from 1.

        The newest ``HISTORY`` versions are kept. ``learned`` names stored runs, by their uid, that the model has
        learned and the version before had not.

        Raises
        ------
        InputError : when the document is not JSON (a number that is not finite is not), or the database refuses it.
        """
        try:
            plain = json.loads(json.dumps(dict(document), allow_nan=False))
        except (TypeError, ValueError) as error:
            why = "a number in it is not finite" if isinstance(error, ValueError) else error
            raise InputError(f"the model of {application} on {platform} is not JSON: {why}") from None
        of_this = (ModelRow.application == application, ModelRow.cluster == platform)
        with writing(self._engine) as connection:
            if self._engine.dialect.name == "postgresql":
                # Two writers must not find the same last version; SQLite has locked them out already.
                connection.execute(text("LOCK TABLE models IN SHARE ROW EXCLUSIVE MODE"))
            last = connection.scalar(select(func.max(ModelRow.version)).where(*of_this))
            version = (last or 0) + 1
            row = {
                "application": application,
                "cluster": platform,
                "version": version,
                "saved_at": time.time(),
                "document": plain,
            }
            connection.execute(insert(ModelRow), row)
            connection.execute(delete(ModelRow).where(*of_this, ModelRow.version <= version - HISTORY))
            if uids := [{"which": uid} for uid in learned]:
                marked = update(table(RunRow)).where(table(RunRow).c.uid == bindparam("which")).values(learned=True)
                connection.execute(marked, uids)
        return version

    def document(self, application: str, platform: str, version: int | None = None) -> dict[str, Any]:
        """The model of an application on a platform: the newest, or the version asked for.

        Raises
        ------
        InputError : when there is none.
        """
        query = select(ModelRow.document).where(ModelRow.application == application, ModelRow.cluster == platform)
        if version is not None:
            query = query.where(ModelRow.version == version)
        with reading(self._engine) as connection:
            document: dict[str, Any] | None = connection.scalar(query.order_by(ModelRow.version.desc()).limit(1))
        if document is None:
            which = "" if version is None else f" version {version}"
            raise InputError(f"holds no model{which} of {application} on {platform}", where=name_of(self._engine.url))
        return document

    def predictor(self, application: str, platform: str) -> Saved:
        """The newest model of an application on a platform, ready to predict.

        Raises
        ------
        InputError : when there is none, or it is no sound model of a known version.
        """
        from metasched.store import documents

        document = json.dumps(self.document(application, platform))
        where = f"{name_of(self._engine.url)}, model of {application} on {platform}"
        return documents.parse(document, where=where)

    def of_another_format(self) -> frozenset[tuple[str, str]]:
        """Applications and platforms whose newest model this version cannot read, by the model's header."""
        from metasched.store import documents

        newest = select(ModelRow.application, ModelRow.cluster, func.max(ModelRow.version).label("version"))
        last = newest.group_by(ModelRow.application, ModelRow.cluster).subquery()
        head = ModelRow.document["format"].as_string(), ModelRow.document["version"].as_integer()
        query = select(ModelRow.application, ModelRow.cluster, *head, ModelRow.document["method"].as_string()).join(
            last,
            (ModelRow.application == last.c.application)
            & (ModelRow.cluster == last.c.cluster)
            & (ModelRow.version == last.c.version),
        )
        with reading(self._engine) as connection:
            rows = connection.execute(query).all()
        return frozenset((row[0], row[1]) for row in rows if not documents.readable(*row[2:]))

    def documents_around(self, application: str, platform: str, time: float) -> tuple[dict[str, Any], ...]:
        """The latest version of a model up to a time (s) and the first one after it, as far as both are stored."""
        of_this = select(ModelRow.document).where(ModelRow.application == application, ModelRow.cluster == platform)
        before = of_this.where(ModelRow.saved_at <= time).order_by(ModelRow.version.desc()).limit(1)
        after = of_this.where(ModelRow.saved_at > time).order_by(ModelRow.version).limit(1)
        with reading(self._engine) as connection:
            return tuple(found for query in (before, after) if (found := connection.scalar(query)) is not None)

    def all(self) -> tuple[tuple[str, str, int, float], ...]:
        """The stored models: application, platform, newest version, and when it was saved."""
        newest = func.max(ModelRow.version)
        query = (
            select(ModelRow.application, ModelRow.cluster, newest, func.max(ModelRow.saved_at))
            .group_by(ModelRow.application, ModelRow.cluster)
            .order_by(ModelRow.application, ModelRow.cluster)
        )
        with reading(self._engine) as connection:
            return tuple((row[0], row[1], row[2], row[3]) for row in connection.execute(query))
