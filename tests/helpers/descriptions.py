"""Clusters from documents that name no files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from metasched.placement.clusters.description import Description, build_description


def description_of(document: Mapping[str, Any], where: str = "clusters") -> Description:
    """What a document describes."""
    return build_description(document, where=where, read=_nothing, entry=_nothing, folder=Path())


def _nothing(name: str) -> NoReturn:
    raise AssertionError(name)
