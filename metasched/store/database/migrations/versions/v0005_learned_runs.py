"""Which runs the saved model of their application has learned, so that none is learned twice and none left out."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add the column; a model that was saved has learned what was stored, but perhaps for the last minute."""
    op.add_column("runs", sa.Column("learned", sa.Boolean, nullable=False, server_default=sa.false()))
    runs = sa.table("runs", *(sa.column(name) for name in ("application", "cluster", "learnable", "learned")))
    models = sa.table("models", sa.column("application"), sa.column("cluster"))
    known = sa.exists().where(models.c.application == runs.c.application, models.c.cluster == runs.c.cluster)
    op.execute(runs.update().where(runs.c.learnable, known).values(learned=sa.true()))
