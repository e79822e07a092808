"""Ended jobs whose scheduler has yet to confirm how they ended."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Add the table of ended jobs that wait."""
    op.create_table(
        "waiting_jobs",
        sa.Column("uid", sa.String(32), primary_key=True),
        sa.Column("ended_at", sa.Double, nullable=False),
        sa.Column("document", sa.JSON, nullable=False),
    )
