"""The first schema: runs, loads and models."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the three tables of runs, loads and models."""
    op.create_table(
        "runs",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("uid", sa.String(32), nullable=False, unique=True),
        sa.Column("application", sa.String, nullable=False),
        sa.Column("cluster", sa.String, nullable=False),
        sa.Column("problem_size", sa.Double, nullable=False),
        sa.Column("processors", sa.Integer, nullable=False),
        sa.Column("min_avg_avail_cpu", sa.Double, nullable=False),
        sa.Column("min_avg_avail_bw", sa.Double, nullable=False),
        sa.Column("execution_time", sa.Double, nullable=False),
        sa.Column("start_time", sa.Double),
        sa.Column("nodes", sa.String, nullable=False),
        sa.Column("phase", sa.String),
        sa.Column("extra", sa.JSON, nullable=False),
        sa.Column("exit_status", sa.Integer, nullable=False),
        sa.Column("learnable", sa.Boolean, nullable=False),
    )
    op.create_index("runs_of_application", "runs", ["application", "cluster", "id"])
    op.create_table(
        "loads",
        sa.Column("node", sa.String, primary_key=True),
        sa.Column("time", sa.Double, primary_key=True),
        sa.Column("available_cpu", sa.Double, nullable=False),
        sa.Column("available_bandwidth", sa.Double, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "models",
        sa.Column("application", sa.String, primary_key=True),
        sa.Column("cluster", sa.String, primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True),
        sa.Column("saved_at", sa.Double, nullable=False),
        sa.Column("document", sa.JSON, nullable=False),
    )
