"""``metasched surface``: the speedup surface of an SPMD application with I/O, and its parameters from observations."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from metasched.arrays import Floats
from metasched.cli import figures, output
from metasched.cli.models.surface_figures import speedup_surface
from metasched.cli.options import JsonOption, whole_numbers
from metasched.cli.written_files import WRITTEN
from metasched.predictors.analytic.spmd.application import Application
from metasched.predictors.analytic.spmd.fitting import PARAMETERS, SurfaceFit, fit_surface
from metasched.predictors.analytic.spmd.surface import execution_time
from metasched.records import InputError
from metasched.store.files.spmd import ObservedSurface, read_application, read_surface


def surface(
    application: Annotated[Path, typer.Argument(help="Application (TOML); with --observed, its known values.")],
    observed: Annotated[
        Path | None, typer.Option(help="CSV of processors, disks and execution_time or speedup; fits the parameters.")
    ] = None,
    processors: Annotated[str, typer.Option(help="Numbers of processors, separated by commas.")] = "1,2,4,8,16,32,64",
    disks: Annotated[str, typer.Option(help="Numbers of disks, separated by commas.")] = "1,2,4,8",
    reference: Annotated[
        float | None, typer.Option(help="T_1 that speedups refer to (s); by default that of the application.")
    ] = None,
    picture: Annotated[Path | None, WRITTEN, typer.Option("-o", "--output", help="PNG file to write.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Time and speedup of an SPMD application over processors and disks."""
    shape = read_application(application)
    points = read_surface(observed) if observed is not None else None
    fit = None
    if points is not None:
        if len(shape.phases) != 1:
            raise InputError(f"has {len(shape.phases)} phases, expected one to fit", where=str(application))
        with output.working("fitting the seven parameters"):
            fit = fit_surface(shape.phases[0], points.processors, points.disks, points.time)
        shape = replace(shape, phases=(fit.phase,))
    if reference is not None and not 0 < reference < float("inf"):
        raise InputError(f"--reference is {reference:g}, expected a number of seconds above 0")
    p, d = (np.array(whole_numbers(*each), dtype=float) for each in (("--processors", processors), ("--disks", disks)))
    time = execution_time(shape, p[:, None], d)
    speedup = np.asarray((reference or shape.reference_time) / time)
    if picture is not None:
        figures.save(
            speedup_surface(p, d, speedup, f"{shape.name}: speedup", _scaled(points, reference, shape)), picture
        )
    if as_json:
        output.print_json(_document(shape, p, d, time, speedup, fit, picture))
    else:
        _show(shape, p, d, speedup, fit, picture)


def _scaled(points: ObservedSurface | None, reference: float | None, shape: Application) -> ObservedSurface | None:
    """The observations in units of the reference time, as the speedups are drawn."""
    return points and replace(points, time=points.time / (reference or shape.reference_time))


def _document(
    shape: Application,
    p: Floats,
    d: Floats,
    time: Floats,
    speedup: Floats,
    fit: SurfaceFit | None,
    picture: Path | None,
) -> dict[str, Any]:
    document: dict[str, Any] = {
        "application": shape.name,
        "phases": [asdict(phase) for phase in shape.phases],
        "processors": p.astype(int),
        "disks": d.astype(int),
        "execution_time": time,
        "speedup": speedup,
        "picture": picture and str(picture),
    }
    if fit is not None:
        document["fit"] = {
            "parameters": {name: getattr(fit.phase, name) for name in PARAMETERS},
            "standard_error": fit.standard_error,
            "covariance": fit.covariance,
            "average_error": fit.average_error,
            "rms_error": fit.rms_error,
            "notes": fit.notes,
        }
    return document


def _show(
    shape: Application, p: Floats, d: Floats, speedup: Floats, fit: SurfaceFit | None, picture: Path | None
) -> None:
    if fit is not None:
        found = Table("parameter", "value", "standard error")
        for name in PARAMETERS:
            found.add_row(name, f"{getattr(fit.phase, name):.4g}", f"{fit.standard_error[name]:.2g}")
        output.show(found)
        output.out.print(f"average error {fit.average_error:.2%}, root mean square error {fit.rms_error:.2%}")
        for note in fit.notes:
            output.say(note)
    table = Table("processors", *(f"d = {count:g}" for count in d), title=f"speedup of {shape.name}")
    for count, row in zip(p, speedup, strict=True):
        table.add_row(f"{count:g}", *("-" if np.isnan(value) else f"{value:.4g}" for value in row))
    output.show(table)
    if picture is not None:
        output.say(f"picture written to {picture}")
