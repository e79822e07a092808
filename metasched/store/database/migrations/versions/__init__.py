"""Alembic revisions. A revision that was released is never edited; a change to the tables is a new file here."""
