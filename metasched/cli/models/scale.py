"""``metasched scale``: how far an MPI application scales over servers, from profiles of small runs."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from metasched.arrays import Ints
from metasched.cli import figures, output
from metasched.cli.models.scale_figures import scaling_over_servers
from metasched.cli.options import JsonOption, whole_numbers
from metasched.cli.written_files import WRITTEN
from metasched.plain_numbers import plain
from metasched.predictors.analytic.cloud.baseline import ScalabilityAnalysis
from metasched.predictors.analytic.cloud.hardware import Hardware
from metasched.predictors.analytic.cloud.model import CloudModel
from metasched.predictors.analytic.cloud.scaling import Scaling
from metasched.records import InputError
from metasched.store.files.cloud import ProfiledRun, read_hardware
from metasched.store.files.profiles import read_any_profiles


class Method(StrEnum):
    """Queueing networks that can predict: the refined one, and that of the paper."""

    synchronous = "synchronous"
    published = "published"


class Spread(StrEnum):
    """Ways to distribute processes over servers."""

    spread = "spread"
    fill = "fill"


def scale(
    profiles: Annotated[list[Path], typer.Argument(help="Profiles: one CSV, or reports of mpiP.")],
    hardware: Annotated[Path, typer.Option(help="Servers to run on (TOML).")],
    profiled_on: Annotated[
        Path | None, typer.Option(help="Servers of the profiled runs (TOML); by default those of --hardware.")
    ] = None,
    processes: Annotated[str, typer.Option(help="Numbers of processes, separated by commas.")] = "1,2,4,8,16,32,64",
    placement: Annotated[
        Spread, typer.Option(help="Spread processes evenly over the servers, or fill servers one by one.")
    ] = Spread.fill,
    distribution: Annotated[
        str | None, typer.Option(help="Processes on each server, separated by commas; replaces --processes.")
    ] = None,
    method: Annotated[Method, typer.Option(help="Queueing network to solve.")] = Method.synchronous,
    picture: Annotated[Path | None, WRITTEN, typer.Option("-o", "--output", help="PNG file to write.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Time, speedup and efficiency against processes, and the number up to which more processes are worthwhile."""
    servers = read_hardware(hardware)
    runs = [run for path in profiles for run in read_any_profiles(path)]
    model = _fit(runs, read_hardware(profiled_on) if profiled_on is not None else servers, method)
    baseline = ScalabilityAnalysis.fit([run.profile for run in runs])

    explicit = None
    if distribution is not None:
        explicit = np.array(whole_numbers("--distribution", distribution, least=0), dtype=np.int64)
        servers.check(explicit)

    def place(count: int) -> Ints:
        if explicit is not None and count == explicit.sum():
            return explicit
        return servers.fill(count) if placement is Spread.fill or count == 1 else servers.spread(count)

    counts = np.array([explicit.sum()]) if explicit is not None else np.unique(whole_numbers("--processes", processes))
    scaling = Scaling.of(counts, lambda n: model.execution_time(servers, place(n)))
    analysis = Scaling.of(counts, lambda n: float(baseline.execution_time(servers, n)))
    if picture is not None:
        title = f"{method.value} network over {len(servers.servers)} servers"
        drawn = scaling_over_servers({method.value: scaling, "scalability analysis": analysis}, title)
        figures.save(drawn, picture)
    if as_json:
        output.print_json(_document(model, scaling, analysis, [place(int(n)) for n in counts], picture))
    else:
        _show(model, scaling, analysis, [place(int(n)) for n in counts], picture)


def _fit(runs: list[ProfiledRun], hardware: Hardware, method: Method) -> CloudModel:
    distributions = []
    for run in runs:
        if run.servers > len(hardware.servers):
            raise InputError(f"a profile ran on {run.servers} servers, expected at most {len(hardware.servers)}")
        distribution = np.zeros(len(hardware.servers), dtype=np.int64)
        first = replace(hardware, servers=hardware.servers[: run.servers])
        distribution[: run.servers] = first.spread(run.profile.processes)
        distributions.append(distribution)
    return CloudModel.fit([run.profile for run in runs], hardware, distributions, method.value)


def _document(
    model: CloudModel, scaling: Scaling, analysis: Scaling, places: list[Ints], picture: Path | None
) -> dict[str, Any]:
    return {
        "method": model.method,
        "processes": scaling.processes,
        "distribution": [place.tolist() for place in places],
        "execution_time": scaling.execution_time,
        "speedup": scaling.speedup,
        "efficiency": scaling.efficiency,
        "pays_until": scaling.pays_until,
        "fastest": scaling.fastest,
        "baseline": {"name": "scalability analysis", "execution_time": analysis.execution_time},
        "cpu_constant": model.cpu_constant,
        "net_constant": model.net_constant,
        "message_size": str(model.workload.message_size),
        "sends": str(model.workload.sends),
        "profiling_error": model.profiling_error,
        "notes": model.notes,
        "picture": picture and str(picture),
    }


def _show(model: CloudModel, scaling: Scaling, analysis: Scaling, places: list[Ints], picture: Path | None) -> None:
    columns = ("processes", "distribution", "time (s)", "speedup", "efficiency", "scalability analysis (s)")
    table = Table(*columns, title=f"{model.method} network")
    for row in zip(
        scaling.processes,
        places,
        scaling.execution_time,
        scaling.speedup,
        scaling.efficiency,
        analysis.execution_time,
        strict=True,
    ):
        count, place, time, speedup, efficiency, other = row
        blocks = "+".join(str(block) for block in place if block)
        table.add_row(str(count), blocks, plain(time), f"{speedup:.3g}", f"{efficiency:.0%}", plain(other))
    output.show(table)
    output.out.print(scaling.verdict)
    output.out.print(
        f"CPU_Constant {model.cpu_constant:.4g}, Net_Constant {model.net_constant:.4g}, "
        f"error on the profiles {model.profiling_error:.1%}; m(n) = {model.workload.message_size} bytes, "
        f"s(n) = {model.workload.sends}"
    )
    for note in model.notes:
        output.say(note)
    if picture is not None:
        output.say(f"picture written to {picture}")
