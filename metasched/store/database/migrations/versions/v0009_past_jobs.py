"""Jobs that accounting tells of."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Add the table of jobs that ended in the past."""
    op.create_table(
        "past_jobs",
        sa.Column("uid", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("cluster", sa.String, nullable=False),
        sa.Column("submit_time", sa.Double, nullable=False),
        sa.Column("run_time", sa.Double, nullable=False),
        sa.Column("processors", sa.Integer, nullable=False),
        sa.Column("requested_time", sa.Double),
        sa.Column("wait", sa.Double),
        *(
            sa.Column(name, sa.String)
            for name in ("user", "account", "name", "partition", "qos", "executable", "state")
        ),
    )
