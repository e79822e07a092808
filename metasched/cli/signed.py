"""Options for signature predictors: the rules, and the hardware to predict on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from metasched.records import InputError, Run

if TYPE_CHECKING:
    from metasched.predictors.analytic.signature import SignaturePredictor

SignatureOption = Annotated[
    Path | None,
    typer.Option("--signature", help="Application of metasched signature fit, for signature and the tournament."),
]
SignatureSizeOption = Annotated[
    float | None, typer.Option(help="Problem size N of the signature; by default that of the runs, if they have one.")
]
SignatureHardwareOption = Annotated[
    str | None,
    typer.Option(help="Hardware (a name, or a file) of the signature's runs; by default an assumed machine."),
]
SignatureNetworkOption = Annotated[
    str | None, typer.Option(help="Entry of its network; by default the hardware's own.")
]
#: Makes a signature predictor for an application and a cluster, whose runs say which problem size it is of.
Signed = Callable[[str, str, Sequence[Run]], "SignaturePredictor"]


def signed_by(path: Path | None, size: float | None, hardware: str | None, network: str | None) -> Signed | None:
    """Makes signature predictors from the options; None where none of them is given."""
    if path is None:
        if size is not None or hardware is not None or network is not None:
            raise InputError("--signature-size, --signature-hardware and --signature-network need --signature")
        return None
    if network is not None and hardware is None:
        raise InputError("--signature-network needs --signature-hardware")
    from metasched.predictors.analytic.signature import SignaturePredictor
    from metasched.signature.prediction import assumed
    from metasched.signature.reporting import unruled
    from metasched.store.files.hardware import hardware_of
    from metasched.store.files.signatures import measured_in, read_application

    rules, document = read_application(path)
    timed, notes = measured_in(document, path), unruled(document)
    where = assumed() if hardware is None else hardware_of(hardware, network, 1)

    def made(application: str, cluster: str, runs: Sequence[Run]) -> SignaturePredictor:
        sizes = sorted({run.problem_size for run in runs})
        if size is None and len(sizes) != 1:
            several = ", ".join(f"{each:g}" for each in sizes[:4])
            raise InputError(f"the runs have problem sizes {several or 'that are not known'}, give --signature-size")
        return SignaturePredictor(
            rules,
            where,
            problem_size=sizes[0] if size is None else size,
            timed=timed,
            application=application,
            cluster=cluster,
            notes=notes,
        )

    return made
