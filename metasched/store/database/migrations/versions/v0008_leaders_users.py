"""Which daemon leads, and whose jobs a reader's token shows."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add the table and the column; tokens of before are of no user."""
    op.create_table(
        "leaders",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("since", sa.Double, nullable=False),
    )
    op.add_column("tokens", sa.Column("user", sa.String))
