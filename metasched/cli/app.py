"""The Typer application, and the one place where errors become exit statuses."""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, get_args, get_type_hints

import typer
from threadpoolctl import threadpool_limits
from typer.core import TyperCommand, TyperGroup

from metasched.cli import output
from metasched.cli.written_files import without_loss
from metasched.records import InputError
from metasched.store.errors import StoreError

#: Base of Typer's usage errors. Newer releases of Typer carry their own copy of click, so it is found through Typer.
_ClickError = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")

#: Where each verb stands in this package, module and name, in the groups and the order in which ``metasched --help``
#: shows them. A module is loaded when one of its verbs is called, so that no verb waits for the libraries of another.
GROUPS = {
    "For users": {
        "run": "runs.run",
        "runs": "runs.runs",
        "fit": "models.fit.fit",
        "predict": "models.fit.predict",
        "plan": "models.plan.plan_verb",
        "rank": "placements.rank.rank_verb",
        "explain": "placements.explain.explain",
        "whatif": "placements.whatif.whatif",
        "submit": "placements.submit.submit",
        "walltime": "placements.walltime.walltime",
        "wait": "placements.wait.wait",
        "advise-running": "placements.advise_running.advise_running",
        "status": "daemon.status.status",
        "sites": "placements.sites.sites",
    },
    "For administrators": {
        "setup": "daemon.setup.setup",
        "doctor": "daemon.doctor.doctor",
        "serve": "daemon.serve.serve_verb",
        "agent": "daemon.agent.agent",
        "mode": "daemon.status.mode",
        "token": "daemon.serve.token",
        "db": "daemon.database.db",
    },
    "For research": {
        "evaluate": "models.evaluate.evaluate_verb",
        "plot": "models.plot.plot",
        "port": "models.port.port_verb",
        "network": "network.network",
        "solve": "solve.solve_verb",
        "surface": "models.surface.surface",
        "scale": "models.scale.scale",
        "hardware": "hardware.hardware",
        "history": "history.history.history",
        "simulate": "simulations.simulate.simulate_verb",
        "signature": "signatures.signature.signature",
    },
}
#: What the help calls a value of each type; flags have none.
VALUES = {bool: "", str: "TEXT", Path: "PATH", int: "INTEGER", float: "NUMBER"}
VERBS = {verb: place for verbs in GROUPS.values() for verb, place in verbs.items()}


def load(verb: str) -> Any:
    """The command of a verb, with its module."""
    module, name = VERBS[verb].rsplit(".", 1)
    found = getattr(importlib.import_module(f"metasched.cli.{module}"), name)
    app = typer.Typer()
    app.callback()(lambda: None)
    if isinstance(found, typer.Typer):
        app.add_typer(found, name=verb)
    else:
        # What follows the command of ``run`` is the command's, with or without -- before it.
        app.command(verb, context_settings={"allow_interspersed_args": verb != "run"})(found)
    return _prepared(typer.main.get_group(app).commands[verb])


def _prepared(command: Any) -> Any:
    """A command, with those in its group, that writes over no input, and whose help names kinds of values by words."""
    types = get_type_hints(command.callback, include_extras=True) if command.callback else {}
    command.format_help = partial(_help_in_full, command.format_help)
    without_loss(command, types)
    types["help"] = bool
    for parameter in command.get_params(typer.Context(command)):
        parts = _parts(types.get(parameter.name))
        word = next((VALUES[kind] for kind in VALUES if kind in parts), None)
        if word is not None and (parameter.metavar is None or parameter.param_type_name == "argument"):
            # Not by its metavar, which is how the help names an argument itself.
            parameter.display_type_rich = lambda ctx, word=word: word
    for inner in getattr(command, "commands", {}).values():
        _prepared(inner)
    return command


def _help_in_full(show: Callable[..., None], *where: Any) -> None:
    """Show the help of a command, in tables that cut no name of an option."""
    from typer import rich_utils

    from metasched.cli.help_tables import HelpTable

    setattr(rich_utils, "Table", HelpTable)  # noqa: B010
    show(*where)


def _parts(kind: Any) -> set[Any]:
    """A type and those it is made of, such as ``str`` and ``None`` of ``list[str] | None``."""
    return {kind}.union(*map(_parts, get_args(kind)))


def summary(verb: str) -> str:
    """What a verb does, in a line: read from the source of its module, which is not loaded for it."""
    module, name = VERBS[verb].rsplit(".", 1)
    for node in ast.parse(
        Path(__file__).parent.joinpath(*module.split(".")).with_suffix(".py").read_text(encoding="utf-8")
    ).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return (ast.get_docstring(node) or "").partition("\n\n")[0]
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name and isinstance(node.value, ast.Call):
            return str(next(ast.literal_eval(each.value) for each in node.value.keywords if each.arg == "help"))
    raise LookupError(f"{VERBS[verb]} is not in its module")


class _Verbs(TyperGroup):
    """The group of all verbs; only the module of the verb that is called is loaded."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*VERBS]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in VERBS:
            return None
        group = next(group for group, verbs in GROUPS.items() if cmd_name in verbs)
        return self.commands.get(cmd_name) or TyperCommand(cmd_name, help=summary(cmd_name), rich_help_panel=group)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] in VERBS:
            self.commands[args[0]] = load(args[0])
            # The matrices are small and the machine is shared: more threads of linear algebra cost more than they give.
            threadpool_limits(limits=1)
        return super().resolve_command(ctx, args)


def build() -> typer.Typer:
    """Make the Typer application, with every verb listed and none loaded."""
    app = typer.Typer(
        name="metasched",
        cls=_Verbs,
        help="Predict the execution time of parallel applications, and choose where to run them.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
    )
    app.callback()(_version)
    return app


def _show_version(value: bool) -> None:
    if value:
        from metasched import __version__

        typer.echo(f"metasched {__version__}")
        raise typer.Exit


def _version(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    pass


def _wrong_value(error: Exception) -> str:
    """One line about a value that an option or argument cannot have; empty for other errors of a call's words."""
    if error.__cause__ is None or (parameter := getattr(error, "param", None)) is None:
        return ""
    from pydantic import ValidationError

    from metasched.validation import first_error

    if not isinstance(error.__cause__, ValidationError):
        return ""
    name = max(parameter.opts, key=len)
    said = first_error(error.__cause__, name)
    if said.startswith(name):
        return said
    # Of one word among several, which Typer checks itself.
    return re.sub(r"^('.*') is not (one of .*?)\.?$", rf"{name} is \1, expected \2", said)


def main(argv: list[str] | None = None) -> None:
    """Run the command line and leave with its status: 0 done, 1 failed, 2 wrong usage or input."""
    if argv is None:
        output.prepare()
    try:
        status = _run(sys.argv[1:] if argv is None else argv)
        output.flush()
    except OSError as error:
        status = output.refused(error)
    sys.exit(status)


def _run(argv: list[str]) -> int:
    """Run a verb; its status, with a line on stderr where it is not 0."""
    try:
        status = build()(args=argv, standalone_mode=False)
    except InputError as error:
        output.to_stderr(str(error))
        return 2
    except UnicodeEncodeError as error:
        if not any("\udc80" <= each <= "\udcff" for each in error.object):
            raise
        output.to_stderr(f"{error.object!a}: expected UTF-8, in a locale whose characters are UTF-8")
        return 2
    except (OverflowError, MemoryError, RecursionError) as error:
        output.to_stderr(f"the input is too large to compute with: {str(error) or type(error).__name__}")
        return 2
    except StoreError as error:
        output.to_stderr(str(error))
        return 1
    except RuntimeError as error:
        from metasched.client.connection import DaemonError

        if not isinstance(error, DaemonError):
            raise
        output.to_stderr(str(error))
        return 1
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # Rich and Typer leave by themselves where nobody reads on
            raise error.__context__ from None
        raise
    except (typer.Abort, KeyboardInterrupt):
        output.to_stderr("interrupted")
        return 130
    except Exception as error:
        if not isinstance(error, _ClickError):
            raise
        said = _wrong_value(error) or getattr(error, "format_message", error.__str__)()
        if said:  # nothing where the help was shown instead
            output.to_stderr(said)
        return 2
    return status if isinstance(status, int) else 0
