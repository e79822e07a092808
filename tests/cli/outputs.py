"""What verbs answer, which :mod:`tests.cli.test_whole_outputs` compares with those written down.

``make answers`` writes them down anew; read the difference before it is kept.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import re
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from metered_runs import made as metered

from metasched.cli.app import main
from metasched.cli.daemon import doctor
from metasched.doctor.findings import Finding
from metasched.records import Run
from metasched.store.database.run_records import RecordedRun
from metasched.store.database.store import Store
from metasched.store.files.runs import write_runs
from tests.cli.models.test_scale import PROFILES
from tests.cli.models.test_surface import APPLICATION
from tests.predictors.made import runs
from tests.predictors.porting.platforms import FAST, SLOW, campaign, idle
from tests.tracing.programs import compiler, script

ROOT = Path(__file__).parents[2]
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:[\d\u202f]*\d)?(?:\.\d+)?(?:e[-+]?\d+)?")
CLUSTERS = """
[[cluster]]
name = "east"
watts = 80.0
idle_watts = 10.0
queue_wait = [{ processors = 1, seconds = 0.0 }, { processors = 9, seconds = 120.0 }]
nodes = [
  { names = "e[1-3]", processors = 4, available_cpu = [0.9, 0.4, 0.7], available_bandwidth = 80.0, jobs = [0, 1, 0] },
  { names = "e4", processors = 4, available_bandwidth = 80.0 },
  { names = "e[5-6]", processors = 8, available_cpu = 0.5, available_bandwidth = 30.0, age = 1000.0 },
]
switches = [
  { name = "top", switches = "s1,s2" },
  { name = "s1", nodes = "e[1-3]", uplink = 40.0 },
  { name = "s2", nodes = "e[4-6]" },
]
running = [{ nodes = "e2", computation = 100.0, communication = 20.0, running_for = 50.0 }]

[[cluster]]
name = "west"
nodes = [{ names = "w[1-3]", processors = 2, speed = 1.5 }]

[[application]]
name = "made"
max_processors = 16
"""
#: The commands in their order: later ones read what earlier ones write.
COMMANDS = Path(__file__).parent / "commands.txt"
SERVERS = """
word_time = 8e-9
startup_time = 1e-4
server = [{ name = "fast", cores = 8, count = 2 }, { name = "slow", cores = 4, speed = 0.5 }]
"""
RACKS = """
[[cluster]]
name = "east"
nodes = [{ names = "n[1-4]" }]
switches = [
  { name = "top", switches = "a,b" },
  { name = "a", nodes = "n[1-2]" },
  { name = "b", nodes = "n[3-4]" },
]
"""

#: What the checks of an installation find.
FINDINGS = (
    Finding("database", "well", "holds 9 runs"), Finding("daemon", "wrong", "does not answer at port 8765", "start it"),
    Finding("agents", "watch", "2 of 10 nodes are silent [n1-2]", "metasched agent"), Finding("hook", "wrong", "no"),
)  # fmt: skip


def prepare(folder: Path) -> None:
    """Write the files that the commands read."""
    write_runs(folder / "runs.csv", runs(40, noise=0.05))
    write_runs(folder / "metered.csv", metered(30, seed=1))
    write_runs(folder / "slow.csv", campaign(SLOW, 40))
    write_runs(folder / "idle-slow.csv", idle(SLOW))
    write_runs(folder / "idle-fast.csv", idle(FAST, seed=1))
    (folder / "campaign").mkdir()
    judged = [replace(run, phase="train" if at < 30 else "predict") for at, run in enumerate(runs(45, noise=0.05))]
    write_runs(folder / "campaign" / "runs.csv", judged)
    (folder / "energies").mkdir()
    write_runs(folder / "energies" / "runs.csv", [*metered(30, seed=2), *metered(8, seed=3, phase="predict")])
    write_runs(folder / "both.csv", [*campaign(SLOW, 40), *campaign(FAST, 20)])
    write_runs(folder / "laid-out.csv", laid_out(runs(48, noise=0.05)))
    store(folder / "runs.db", runs(9, noise=0.05))
    (folder / "clusters.toml").write_text(CLUSTERS, encoding="utf-8")
    jobs = ["submit_time,wait,run_time,processors,requested_time,user,name"]
    for at in range(200):
        jobs.append(f"{100 * at},{13 * at % 300},{60 + 37 * at % 900},{1 + at % 4},3600,u{at % 3},n{at % 5}")
    (folder / "jobs.csv").write_text("\n".join([*jobs, ""]), encoding="utf-8")
    dated = [f"{1_700_000_000 + 100 * at},{at % 7},{60 + at},{1 + at % 8},,u1,sort" for at in range(120)]
    (folder / "dated.csv").write_text("\n".join([jobs[0], *dated, ""]), encoding="utf-8")
    for name, text in (
        ("profiles.csv", PROFILES), ("servers.toml", SERVERS), ("demo.toml", APPLICATION), ("racks.toml", RACKS),
    ):  # fmt: skip
        (folder / name).write_text(text, encoding="utf-8")
    pairs = [(one, other) for one in range(1, 5) for other in range(1, 5) if one != other]
    delays = [f"n{one},n{other},{one + other + 10 * ((one < 3) is not (other < 3))}" for one, other in pairs]
    (folder / "delays.csv").write_text("\n".join(["from,to,delay", *delays, ""]), encoding="utf-8")
    measured = ["block,value,data_size,nodes,threads,instructions"]
    measured += [f"p2p,{1e-5 + 1e-9 * size},{size},,," for size in (0, 10, 1000, 10_000, 100_000, 1_000_000)]
    (folder / "measured.csv").write_text("\n".join([*measured, ""]), encoding="utf-8")
    visits = {"batch": 3, "web": 1}
    stations = [
        {"name": "cpu", "kind": "queue", "servers": 4, "service": {"batch": 0.2, "web": 0.05}, "visits": visits},
        {"name": "bus", "kind": "queue", "rates": [1.0, 1.6, 1.9], "service": {"batch": 0.1}},
        {"name": "lan", "kind": "delay", "service": {"web": 0.5}},
    ]
    classes = [{"name": "batch", "population": 6, "think_time": 0}, {"name": "web", "population": 9, "think_time": 5}]
    network = {"name": "machine", "stations": stations, "classes": classes}
    (folder / "network.json").write_text(json.dumps(network), encoding="utf-8")
    fewer = network | {"name": "few", "classes": [each | {"population": 2} for each in classes]}
    script(folder / "launch", "cat launched.txt")
    compiler(folder)
    launched = ["host 0 a", "host 1 b", "host 2 a", "collective 1 1 2 2e-6", "collective 3 8 2 3e-6"]
    launched += [
        "collective 3 8 4 5e-6",
        "collective 3 8 16 9e-6",
        *(f"seen {at} {1e-6 * (1 + at % 7)}" for at in range(999)),
    ]
    (folder / "launched.txt").write_text("\n".join([*launched, "end 2.5", ""]), encoding="utf-8")
    (folder / "site.toml").write_text("", encoding="utf-8")
    (folder / "networks.json").write_text(json.dumps([network, fewer]), encoding="utf-8")


def laid_out(found: list[Run]) -> list[Run]:
    """Runs of which two of three say how their processes lay on nodes, which changes their times."""
    layouts = ({}, {"processes_per_node": "2"}, {"threads": "2", "parameter:steps": "10"})
    return [
        replace(run, extra=layouts[at % 3], execution_time=run.execution_time * (1.0, 1.2, 0.7)[at % 3])
        for at, run in enumerate(found)
    ]


def store(path: Path, found: list[Run]) -> None:
    """A database of runs of two applications and users, of which some failed, or lack a load, or have an energy."""
    records = []
    for at, run in enumerate(found):
        application, user = ("made", "other")[at % 4 == 3], ("ada", "bob")[at % 2]
        cpu = math.nan if at == 4 else run.min_avg_avail_cpu
        extra = {"user": user} | ({"energy": "1250.5"} if at in (2, 6) else {})
        stored = replace(run, application=application, min_avg_avail_cpu=cpu, extra=extra, nodes=("n1", f"n{at}"))
        records.append(RecordedRun(stored, exit_status=int(at == 5), learnable=at != 5, uid=f"{at:032x}"))
    with Store.open(str(path)) as opened:
        opened.runs.add_all(records)


def outputs() -> dict[str, Any]:
    """Of each command the status, what it prints, how many lines it prints and says, and how wide a text is.

    What is printed is a document, or the numbers of a text in their order.
    """
    found: dict[str, Any] = {}
    drawn: list[Any] = []
    really, Figure.savefig = Figure.savefig, lambda figure, *words, **more: drawn.append([shown(figure), more["dpi"]])  # type: ignore[method-assign]
    checked, doctor._findings = doctor._findings, lambda settings: iter(FINDINGS)
    before, environment = Path.cwd(), dict(os.environ)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name in [name for name in os.environ if name.startswith(("METASCHED_", "XDG_"))]:
            del os.environ[name]
        os.environ |= {"COLUMNS": "120", "HOME": folder}
        try:
            prepare(Path(folder))
            for line in COMMANDS.read_text(encoding="utf-8").splitlines():
                status, printed, said = called(line.format(root=ROOT).split())
                if line.startswith("rank") and line.endswith("model made.json --json"):
                    Path("answer.json").write_text(printed, encoding="utf-8")
                document = json.loads(printed) if "--json" in line and printed else printed
                if line.startswith("history") and isinstance(document, dict):
                    document.pop("seconds", None)
                if drawn:
                    found[f"{line} (drawn)"] = [without_words(each) for each in drawn]
                    drawn.clear()
                lines = [len(text.splitlines()) for text in (printed, said)]
                if printed and "--json" not in line:
                    lines.append(max(map(len, printed.splitlines())))
                found[line] = [status, without_words(document), without_words(said), lines]
        finally:
            os.chdir(before)
            Figure.savefig = really  # type: ignore[method-assign]
            doctor._findings = checked
            os.environ.clear()
            os.environ.update(environment)
    return found


def shown(figure: Figure) -> list[Any]:
    """What a picture shows, axes by axes: some points of each line and of each cloud of points, bars, texts, and looks.

    Looks are sizes, limits and scales of axes, and the colour, width and transparency of each line and cloud.
    """
    found: list[Any] = [figure.get_size_inches().tolist()]
    for axes in figure.axes:
        lines = [np.column_stack(line.get_data())[:: max(1, len(line.get_xdata()) // 5)] for line in axes.lines]
        points = [np.asarray(cloud.get_offsets())[::7] for cloud in axes.collections]
        bars = [float(each.get_height()) for each in axes.patches if hasattr(each, "get_height")]
        texts = [axes.get_title(), axes.get_xlabel(), axes.get_ylabel(), *(each.get_text() for each in axes.texts)]
        if (legend := axes.get_legend()) is not None:
            texts += [each.get_text() for each in (legend.get_title(), *legend.get_texts())]
        plain = [[[float(number) for number in row] for row in each] for each in (*lines, *points)]
        grid = axes.get_gridspec()
        looks = [
            [*axes.get_xlim(), *axes.get_ylim(), axes.get_xscale() == "log", axes.get_yscale() == "log"],
            [] if grid is None else [*grid.get_height_ratios(), *grid.get_width_ratios()],
            *(
                [*to_rgba(line.get_color()), line.get_alpha(), line.get_linewidth(), line.get_markersize()]
                for line in axes.lines
            ),
            *([cloud.get_alpha(), *np.ravel(cloud.get_facecolor())[:4].tolist()] for cloud in axes.collections),
            [each.get_fontsize() for each in axes.texts],
        ]  # fmt: skip
        found.append([plain, bars, texts, looks])
    return found


def without_words(part: Any) -> Any:
    """A document with the numbers of each text in place of the text: words may change."""
    if isinstance(part, dict):
        return {key: without_words(value) for key, value in part.items() if key != "fit_seconds"}
    if isinstance(part, list):
        return [without_words(each) for each in part]
    if isinstance(part, str):
        return [float(number.replace("\u202f", "")) for number in NUMBER.findall(part)]
    return float(f"{part:.8g}") if isinstance(part, float) else part


def called(words: list[str]) -> tuple[int, str, str]:
    """The status of the command line, and what it prints to stdout and stderr."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(words)
        except SystemExit as left:
            return int(left.code or 0), out.getvalue(), err.getvalue()
    return 0, out.getvalue(), err.getvalue()


if __name__ == "__main__":
    lines = (f"{json.dumps(name)}: {json.dumps(value)}" for name, value in outputs().items())
    print("{\n" + ",\n".join(lines) + "\n}")
