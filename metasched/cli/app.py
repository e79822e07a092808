"""The Typer application, and the one place where errors become exit statuses."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

import typer
from threadpoolctl import threadpool_limits

from metasched.cli import output
from metasched.records import InputError

#: Base of Typer's usage errors. Newer releases of Typer carry their own copy of click, so it is found through Typer.
_ClickError = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")

#: Modules of verb groups, in the order that ``metasched --help`` shows them.
GROUPS: tuple[str, ...] = (
    "models",
    "plot",
    "rank",
    "runs",
    "explain",
    "whatif",
    "solve",
    "surface",
    "scale",
    "agent",
    "service",
    "status",
    "database",
    "doctor",
    "submitting",
    "walltime",
    "porting",
)

#: The group of a verb, where it is known: then only that one is loaded, and the verb starts in half the time.
VERBS = {
    "fit": "models",
    "predict": "models",
    "evaluate": "models",
    "plot": "plot",
    "rank": "rank",
    "run": "runs",
    "runs": "runs",
    "agent": "agent",
    "serve": "service",
    "status": "status",
    "mode": "status",
    "token": "service",
    "db": "database",
    "doctor": "doctor",
    "submit": "submitting",
    "walltime": "walltime",
}


def build(groups: Sequence[str] = GROUPS) -> typer.Typer:
    """Make the application with the verbs of every group, or of some."""
    app = typer.Typer(
        name="metasched",
        help="Learn how long parallel applications take, and choose where they should run.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.callback()(_version)
    for group in groups:
        importlib.import_module(f"metasched.cli.{group}").register(app)
    return app


def _show_version(value: bool) -> None:
    if value:
        from metasched import __version__

        typer.echo(f"metasched {__version__}")
        raise typer.Exit


def _version(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Print the version and leave."
    ),
) -> None:
    pass


def main(argv: list[str] | None = None) -> None:
    """Run the command line and leave with its status: 0 done, 1 failed, 2 wrong usage or input."""
    argv = sys.argv[1:] if argv is None else argv
    groups = (VERBS[argv[0]],) if argv and argv[0] in VERBS else GROUPS
    app = build(groups)
    # The matrices are small and the machine is shared: more threads of linear algebra would cost more than they give.
    threadpool_limits(limits=1)
    try:
        status = app(args=argv, standalone_mode=False)
    except InputError as error:
        output.complain(str(error))
        sys.exit(2)
    except (typer.Abort, KeyboardInterrupt):
        output.complain("interrupted")
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(1)
    except Exception as error:
        if not isinstance(error, _ClickError):
            raise
        output.complain(getattr(error, "format_message", error.__str__)())
        sys.exit(2)
    sys.exit(status if isinstance(status, int) else 0)
