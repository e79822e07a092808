"""Runs whose loads were not measured."""

from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Let the two minima of a run be unknown; what ran before this was possible keeps its values."""
    with op.batch_alter_table("runs") as runs:
        runs.alter_column("min_avg_avail_cpu", nullable=True)
        runs.alter_column("min_avg_avail_bw", nullable=True)
