"""What forecasts of waits have missed, of each scheduler."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Add the table of the errors of waits."""
    op.create_table(
        "wait_errors",
        sa.Column("scheduler", sa.String, primary_key=True),
        sa.Column("document", sa.JSON, nullable=False),
    )
