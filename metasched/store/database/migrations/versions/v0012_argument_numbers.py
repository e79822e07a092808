"""The numbers in the arguments and scripts of past jobs."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Add the column; of past jobs of before there are none until they are imported again."""
    op.add_column("past_jobs", sa.Column("numbers", sa.String))
