"""The tables of ``--help``, which cut no word that a user has to type."""

from __future__ import annotations

from typing import Any

from rich.columns import Columns
from rich.table import Table
from rich.text import Text


class HelpTable(Table):
    """A table of options or verbs on a narrow terminal.

    Names of options keep their width, at the cost of the columns beside them, and a word that is longer than its column
    continues in the next line, such as a path.
    """

    def add_row(self, *cells: Any, **how: Any) -> None:
        """Add the cells of an option or a verb, see :meth:`rich.table.Table.add_row`."""
        super().add_row(*cells, **how)
        for column, cell in zip(self.columns, cells, strict=False):
            column.overflow = "fold"
            for part in cell.renderables if isinstance(cell, Columns) else ():
                if isinstance(part, Text):
                    part.overflow = "fold"
            column.no_wrap |= isinstance(cell, Text) and cell.plain.startswith("--")
