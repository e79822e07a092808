"""Jobs that a grid's daemon has sent to sites, in the database, with what was learned about the sites."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import Connection, Engine, delete, select

from metasched.store.database.engine import reading, writing
from metasched.store.database.rows import put
from metasched.store.database.tables import KnownSiteRow, SentJobRow, table


class SentJobRecords:
    """The jobs that were sent, and the state of each site, each as a JSON document.

    >>> from metasched.store.database.store import Store
    >>> with Store.open(":memory:") as store:
    ...     store.sent_jobs.save("0a", 1.5e9, {"state": "chosen"}, {"east": {"ratios": []}})
    ...     store.sent_jobs.save("0a", 1.5e9, {"state": "ended"}, {"east": {"ratios": [1.1]}})
    ...     store.sent_jobs.jobs(), store.sent_jobs.sites()
    ({'0a': {'state': 'ended'}}, {'east': {'ratios': [1.1]}})
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def save(
        self,
        uid: str,
        chosen_at: float,
        document: Mapping[str, Any],
        sites: Mapping[str, Mapping[str, Any]],
        forgotten: Collection[str] = (),
    ) -> None:
        """Store the present state of a job, with what was learned about sites, in one transaction.

        Parameters
        ----------
        uid : names the job.
        chosen_at : when a site was chosen for it (s since 1970).
        document : all that is known of it.
        sites : what is known of sites now, by name.
        forgotten : uids of jobs to be deleted.
        """
        with writing(self._engine) as connection:
            put(connection, table(SentJobRow), "uid", uid, {"document": dict(document)}, chosen_at=chosen_at)
            _put_sites(connection, sites)
            if forgotten:
                connection.execute(delete(SentJobRow).where(SentJobRow.uid.in_(list(forgotten))))

    def save_sites(self, sites: Mapping[str, Mapping[str, Any]]) -> None:
        """Store the present state of sites, by name, in one transaction."""
        with writing(self._engine) as connection:
            _put_sites(connection, sites)

    def jobs(self) -> dict[str, dict[str, Any]]:
        """The documents of all jobs by uid, the oldest first."""
        query = select(SentJobRow.uid, SentJobRow.document).order_by(SentJobRow.chosen_at, SentJobRow.uid)
        with reading(self._engine) as connection:
            return {row[0]: row[1] for row in connection.execute(query)}

    def sites(self) -> dict[str, dict[str, Any]]:
        """The documents of all sites by name."""
        with reading(self._engine) as connection:
            return {row[0]: row[1] for row in connection.execute(select(KnownSiteRow.site, KnownSiteRow.document))}


def _put_sites(connection: Connection, sites: Mapping[str, Mapping[str, Any]]) -> None:
    for site, known in sites.items():
        put(connection, table(KnownSiteRow), "site", site, {"document": dict(known)})
