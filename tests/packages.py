"""Builds the packages, installs each into an environment of its own, and does a piece of work there.

``python -m tests.packages [--keep FOLDER] [whole] [agent] [deb] [rpm]`` says what each package is and how large its
installation: the wheel and the source archive of metasched, the agent alone, Debian packages of both, and an RPM.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
import venv
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGING = ROOT / "deploy" / "packages"
#: What the agent and all that it needs may take on a disk (MB).
MOST_AGENT = 60.0
RUNS = "application,cluster,problem_size,processors,min_avg_avail_cpu,min_avg_avail_bw,execution_time\n"
RUNS += "".join(f"cg,c8,{n},{p},1.0,100.0,{1e-3 * n / p}\n" for n in range(100, 900, 100) for p in (1, 2, 4))


def run(*words: str | Path, cwd: Path | None = None, **more: str) -> str:
    """Run a command outside of the checkout and return what it prints."""
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")} | more
    done = subprocess.run(list(map(str, words)), cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))} failed:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def environment(folder: Path, *packages: str | Path) -> Path:
    """The interpreter of a new environment with some packages."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages)
    return python


def megabytes(python: Path) -> float:
    """What is installed in an environment, without pip (MB)."""
    found = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    own = [path for path in Path(found).iterdir() if not path.name.startswith(("pip", "setuptools", "_distutils"))]
    files = [each for path in own for each in (path.rglob("*") if path.is_dir() else [path]) if each.is_file()]
    return sum(path.stat().st_size for path in files) / 1e6


def sources(folder: Path, *, agent: bool = False) -> Path:
    """A copy of what belongs to a package, as a checkout without the rest has it."""
    names = run("git", "-C", ROOT, "ls-files").splitlines()
    wanted = ("monitors/", "LICENSE") if agent else (*TOPS, "pyproject.toml", "README.md", "LICENSE", "deploy/")
    for name in names:
        if name.startswith(wanted):
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target)
    if agent:
        shutil.copy(PACKAGING / "agent" / "pyproject.toml", folder)
    return folder


READ = "from metasched.service.configuration import read_configuration as read"
TOPS = ("metasched/", "monitors/", "candidate_functions/")


def build(tools: Path, source: Path, target: Path) -> tuple[Path, Path]:
    """The wheel, made from the source archive, and the source archive."""
    run(tools, "-m", "build", "--outdir", target, source)
    (wheel,), (archive,) = target.glob("*.whl"), target.glob("*.tar.gz")
    return wheel, archive


def whole(tools: Path, work: Path, keep: Path) -> None:
    """The wheel and the source archive of metasched: fit, predict, the hooks, the daemon's pages."""
    wheel, archive = build(tools, sources(work / "source"), keep)
    python = environment(work / "whole", wheel)
    metasched = python.with_name("metasched")
    (work / "runs.csv").write_text(RUNS)
    run(metasched, "fit", work / "runs.csv", "-o", work / "cg.json", cwd=work)
    words = ("--problem-size", "1000", "--processors", "4", "--cpu", "1", "--bandwidth", "100", "--json")
    document = json.loads(run(metasched, "predict", work / "cg.json", *words, cwd=work))
    assert 0.2 < document["execution_time"] < 0.3, document
    (work / "slurm.conf").write_text("ClusterName=c8\nSlurmUser=root\n")
    conf = ("--slurm-conf", work / "slurm.conf", "--config", work / "m.toml", "--state", work / "hooks")
    assert "metasched-epilog" in run(metasched, "setup", "slurm", "--plan", *conf, cwd=work)
    run(python, "-c", "from metasched.service.app import make_app; import metasched.service.dashboard.pages")
    print(
        f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, installed {megabytes(python):.0f} MB; fit, predict, setup"
    )
    print(f"{archive.name}: {archive.stat().st_size / 1e6:.1f} MB, the wheel was made from it")


def agent(tools: Path, work: Path, keep: Path) -> None:
    """The agent alone: small, and its samples arrive."""
    wheel, _ = build(tools, sources(work / "agent-source", agent=True), keep / "agent")
    python = environment(work / "agent", wheel)
    size, took = megabytes(python), arrives([python.with_name("metasched-agent")], work)
    assert size <= MOST_AGENT, f"{size:.0f} MB"
    print(f"{wheel.name}: installed {size:.0f} MB; its first samples arrive after {took:.1f} s")


def arrives(words: Sequence[str | Path], work: Path) -> float:
    """How long it takes until an agent's samples arrive (s)."""
    heard = threading.Event()

    class Daemon(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if document.get("samples"):
                heard.set()
            answer = b'{"stored": 1, "refused": 0}'
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Daemon)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    settings = work / f"agent-{os.getpid()}-{time.monotonic_ns()}.toml"
    settings.write_text(
        f'node = "n0"\ndaemon = "http://127.0.0.1:{server.server_address[1]}"\ninterval = 0.5\n'
        f'spool = "{settings}.spool"\ntoken = "none"\n'
    )
    began = time.monotonic()
    process = subprocess.Popen([*map(str, words), str(settings)], cwd=work)
    try:
        assert heard.wait(60.0), "no samples arrived"
    finally:
        process.terminate()
        process.wait(30.0)
        server.shutdown()
    return time.monotonic() - began


def deb(tools: Path, work: Path, keep: Path) -> None:
    """Debian packages by Debian's tools: an environment in /opt/metasched, the units, the hooks and man pages."""
    if not shutil.which("dpkg-deb"):
        print("no Debian packages: dpkg-deb is not installed")
        return
    if not [*keep.glob("metasched-*.whl")] or not [*(keep / "agent").glob("*.whl")]:
        sys.exit(f"{keep} has no wheels for deb, expected whole and agent to be named as well")
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    architecture = run("dpkg", "--print-architecture").strip()
    for name, wheels in (
        ("metasched", keep.glob("metasched-*.whl")),
        ("metasched-agent", (keep / "agent").glob("*.whl")),
    ):
        for wheel in wheels:
            tree = work / name
            package = keep / f"{name}_{version}_{architecture}.deb"
            run("sh", PACKAGING / "debian" / "build", name, version, architecture, wheel, tree, package)
            shutil.rmtree(tree)
            unpacked = work / f"{name}-unpacked"
            run("dpkg-deb", "-x", package, unpacked)
            python = unpacked / "opt" / name / "bin" / "python"
            if name == "metasched":
                done = run(python, "-m", "metasched", "--version")
            else:
                done = f"its first samples arrive after {arrives([python, '-m', 'monitors.agent'], work):.1f} s"
            script = (unpacked / "opt" / name / "bin" / name).read_text()
            assert script.startswith(f"#!/opt/{name}/bin/python"), script[:80]
            if name == "metasched":
                run(python, "-c", f"{READ}; read('metasched.toml')", cwd=unpacked / "etc" / "metasched")
            for unit in (unpacked / "lib" / "systemd" / "system").glob("*.service"):
                assert f"/opt/{name}/" in unit.read_text()
            size, files = package.stat().st_size / 1e6, len(run("dpkg-deb", "-c", package).splitlines())
            print(f"{package.name}: {size:.0f} MB, {files} files; {done.strip()}")


def rpm(tools: Path, work: Path, keep: Path) -> None:
    """The RPM by its own tools: installed in a folder of its own, an environment, the unit, settings and man pages."""
    if not shutil.which("rpmbuild"):
        print("no RPM: rpmbuild is not installed (Debian: rpm)")
        return
    if not [*keep.glob("metasched-*.whl")]:
        sys.exit(f"{keep} has no wheel for rpm, expected whole to be named as well")
    places = {"_sourcedir": keep, "_rpmdir": keep, "_topdir": work / "rpm"}
    places |= {"_rpmfilename": "%{NAME}-%{VERSION}.%{ARCH}.rpm"}
    defined = [word for name, place in places.items() for word in ("--define", f"{name} {place}")]
    run("rpmbuild", "-bb", "--quiet", *defined, PACKAGING / "rpm" / "metasched.spec", cwd=work)
    (package,) = keep.glob("metasched-*.rpm")
    asked, root = run("rpm", "-qp", "--requires", package).splitlines(), work / "rpm-root"
    version = run("/usr/bin/python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()
    assert f"python(abi) = {version}" in asked, asked
    words = ("--nodeps", "--noscripts", "--force-debian") if shutil.which("dpkg") else ("--nodeps", "--noscripts")
    run("rpm", "-i", *words, "--root", root, package)
    python = root / "opt" / "metasched" / "bin" / "python"
    assert str(python.resolve()).startswith("/usr/bin/"), "another user could not run it"
    done = run(python, "-m", "metasched", "--version")
    settings = root / "etc" / "metasched"
    run(python, "-c", f"{READ}; assert not read('metasched.toml').slurm", cwd=settings)
    for text in (python.with_name("metasched").read_text(), next(root.rglob("metasched.service")).read_text()):
        assert "/opt/metasched/bin/" in text, text
        assert str(work) not in text, text
    assert [*root.glob("usr/share/man/man1/metasched.1*")]
    size, files = package.stat().st_size / 1e6, len(run("rpm", "-qpl", package).splitlines())
    print(f"{package.name}: {size:.0f} MB, {files} files; {done.strip()}")


KINDS = {"whole": whole, "agent": agent, "deb": deb, "rpm": rpm}


def main() -> None:
    """Build and try what the command line names, all by default."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--keep", type=Path, help="folder for the packages; by default they are not kept")
    parser.add_argument("packages", nargs="*", choices=[*KINDS, []], default=[])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        keep = (arguments.keep or work / "dist").absolute()
        keep.mkdir(parents=True, exist_ok=True)
        tools = environment(work / "tools", "build>=1,<2")
        for each in arguments.packages or KINDS:
            KINDS[each](tools, work, keep)


if __name__ == "__main__":
    main()
