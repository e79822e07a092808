"""``metasched signature``: scalability from a handful of small runs."""

from __future__ import annotations

import typer

from metasched.cli.signatures.extraction import extract_verb
from metasched.cli.signatures.marking import mark_verb
from metasched.cli.signatures.prediction import plot_verb, predict_verb
from metasched.cli.signatures.recording import record_verb
from metasched.cli.signatures.rules import expand_verb, fit_verb
from metasched.cli.signatures.sizes import resize_verb
from metasched.cli.signatures.synthetic import run_verb

signature = typer.Typer(help="Expand traces of message-passing applications to more processes.", no_args_is_help=True)

signature.command("record", context_settings={"allow_interspersed_args": False})(record_verb)
signature.command("extract")(extract_verb)
signature.command("mark")(mark_verb)
signature.command("fit")(fit_verb)
signature.command("expand")(expand_verb)
signature.command("resize")(resize_verb)
signature.command("run")(run_verb)
signature.command("predict")(predict_verb)
signature.command("plot")(plot_verb)
