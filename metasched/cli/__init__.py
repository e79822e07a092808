"""The command line: one module a verb group, no logic of its own.

A verb group is a module with a function ``register(app)`` that adds its verbs to the Typer application.
"""

from __future__ import annotations

from metasched.cli.app import main

__all__ = ["main"]
