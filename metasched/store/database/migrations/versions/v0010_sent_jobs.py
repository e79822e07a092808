"""Jobs that a grid's daemon has sent to sites, and what they taught of these."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Add the tables of sent jobs and of what is known of sites."""
    op.create_table(
        "sent_jobs",
        sa.Column("uid", sa.String(32), primary_key=True),
        sa.Column("chosen_at", sa.Double, nullable=False),
        sa.Column("document", sa.JSON, nullable=False),
    )
    op.create_table(
        "known_sites",
        sa.Column("site", sa.String(64), primary_key=True),
        sa.Column("document", sa.JSON, nullable=False),
    )
