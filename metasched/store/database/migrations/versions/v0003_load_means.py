"""Means of loads over five minutes and over hours, which stay when the samples go."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make the table of the means of loads over time."""
    op.create_table(
        "load_means",
        sa.Column("step", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("time", sa.Double, primary_key=True),
        sa.Column("node", sa.String, primary_key=True),
        sa.Column("available_cpu", sa.Double, nullable=False),
        sa.Column("available_bandwidth", sa.Double, nullable=False),
        sa.Column("samples", sa.Integer, nullable=False),
        sqlite_with_rowid=False,
    )
