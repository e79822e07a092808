"""The history of the database's schema, one Alembic revision a file in ``versions``.

:mod:`metasched.store.database.schema` walks it. Revisions are numbered 0001, 0002, ... so that a newer schema differs
from an older one at sight.
"""
