"""Minutes of loads packed, one row for all nodes, so that the last hour is read at once."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "load_blocks",
        sa.Column("minute", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("nodes", sa.Text, nullable=False),
        sa.Column("samples", sa.LargeBinary, nullable=False),
    )
