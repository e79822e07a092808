"""What the daemon does with its advice."""

from __future__ import annotations

from typing import Literal

#: shadow: advise nobody, only note what would have been advised; advise: tell the user; act: change the job.
Mode = Literal["shadow", "advise", "act"]
