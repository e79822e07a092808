"""Modes that were set on the running daemon."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add the table of the modes of the daemon."""
    op.create_table(
        "modes",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("set_at", sa.Double, nullable=False),
        sa.Column("mode", sa.String, nullable=False),
        sa.Column("configured", sa.String, nullable=False),
        sa.Column("set_by", sa.String, nullable=False),
    )
