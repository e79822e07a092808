"""Placements with their outcomes, and tokens: what the daemon keeps."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the two tables, and find runs by their start."""
    op.create_table(
        "placements",
        sa.Column("uid", sa.String(32), primary_key=True),
        sa.Column("made_at", sa.Double, nullable=False),
        sa.Column("application", sa.String, nullable=False),
        sa.Column("question", sa.JSON, nullable=False),
        sa.Column("answer", sa.JSON, nullable=False),
        sa.Column("outcome", sa.JSON),
    )
    op.create_index("placements_by_time", "placements", ["made_at"])
    op.create_table(
        "tokens",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("digest", sa.String(64), nullable=False, unique=True),
        sa.Column("role", sa.String, nullable=False),
        sa.Column("node", sa.String),
        sa.Column("made_at", sa.Double, nullable=False),
    )
    op.create_index("runs_by_start", "runs", ["start_time"])
