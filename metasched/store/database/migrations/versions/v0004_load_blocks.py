"""Minutes of loads packed, so that the last hour is read at once, and the slots whose means late samples have changed."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Make the table of loads in blocks of samples."""
    op.create_table(
        "load_blocks",
        sa.Column("minute", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("nodes", sa.Text, nullable=False),
        sa.Column("samples", sa.LargeBinary, nullable=False),
    )
    op.create_table("late_slots", sa.Column("slot", sa.BigInteger, primary_key=True, autoincrement=False))
