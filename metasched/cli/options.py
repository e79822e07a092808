"""Options that several verbs share, spelled once."""

from __future__ import annotations

from typing import Annotated

import typer

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
ApplicationOption = Annotated[str | None, typer.Option(help="Only runs of this application.")]
ClusterOption = Annotated[str | None, typer.Option(help="Only runs on this cluster.")]
