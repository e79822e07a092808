"""The command line: one module a verb or group of verbs, which holds no logic of its own."""

from __future__ import annotations

from metasched.cli.app import main

__all__ = ["main"]
