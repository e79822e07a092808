"""Two real computing elements of NorduGrid ARC on this machine, east before a real Slurm and west that forks.

All of it runs on the loopback interface, in one folder and in name spaces of its own for files and processes: what was
started ends with the first process. Certificates are made by ARC's own test CA. Needs root, and Debian's packages
nordugrid-arc-arex, nordugrid-arc-client and nordugrid-arc-plugins-python, which `make system-test` installs.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from waiting import until

from tests.free_ports import free_port
from tests.system.real_slurm import Slurm

ROOT = Path(__file__).resolve().parents[2]
#: The computing elements and the queues that they offer.
QUEUES = {"east": ("new", "old"), "west": ("fork",)}
TIMEOUT = 120.0
#: Jobs are run as this user: A-REX runs none as root.
USER, GROUP = "nobody", "nogroup"

#: Starts the services, both elements at a time, and leaves a shell that waits: its end is the end of all.
SETUP = """\
mount --bind {folder}/hosts /etc/hosts
mount --bind {folder}/run /run
export ARC_LOCATION={folder}/arc
for name in {names}; do
  export ARC_CONFIG={folder}/$name/arc.conf
  for service in arex arex-ws; do {folder}/arc/share/arc/arc-$service-start || exit; done &
done
wait
touch {folder}/ready
while :; do sleep 1; done
"""
#: A-REX would listen on all addresses.
ARCHED = """\
#!/bin/sh
sed -i 's|<tcp:Port>|<tcp:Interface>127.0.0.1</tcp:Interface>&|' "$2"
exec /usr/sbin/arched "$@"
"""
#: Both services of the user, as an installation's client.conf names them.
CLIENT = """
[computing/{name}]
url = https://{name}.example:{port}/arex
infointerface = org.nordugrid.arcrest
submissioninterface = org.nordugrid.arcrest
default = yes
"""
CONFIGURATION = """\
[common]
hostname = {name}.example
x509_host_key = {folder}/host-{name}.example-key.pem
x509_host_cert = {folder}/host-{name}.example-cert.pem
x509_cert_dir = {folder}/ca

[authgroup:all]
file = {folder}/subjects

[mapping]
map_to_user = all {user}:{group}
policy_on_nomap = stop

[lrms]
{lrms}

[arex]
controldir = {folder}/{name}/control
sessiondir = {folder}/{name}/session
logfile = {folder}/{name}/arex.log
joblog = {folder}/{name}/jobs.log
helperlog = {folder}/{name}/helper.log
pidfile = {folder}/{name}/arex.pid
tmpdir = {folder}/{name}/tmp
wakeupperiod = 1

[arex/data-staging]
logfile = {folder}/{name}/staging.log

[arex/ws]
wsurl = https://{name}.example:{port}/arex
logfile = {folder}/{name}/ws.log
pidfile = {folder}/{name}/ws.pid

[arex/ws/jobs]
allowaccess = all

[infosys]
logfile = {folder}/{name}/infosys.log
validity_ttl = 600

[infosys/glue2]

[infosys/cluster]
nodememory = 1000
homogeneity = True
architecture = x86_64
opsys = Debian
"""


def why_not() -> str:
    """Why ARC cannot be run here, empty where it can."""
    if os.getuid() != 0:
        return "A-REX needs root here"
    needed = (
        "/usr/share/arc/arc-arex-start",
        "/usr/bin/arcsub",
        "/usr/sbin/arcctl",
        "/usr/lib/arc/libaccPythonBroker.so",
    )
    missing = [name for name in needed if not Path(name).exists()]
    return f"not installed: {' '.join(missing)} (`make system-test` installs them as root on Debian)" if missing else ""


class Grid:
    """The running computing elements, and the commands of a user of theirs."""

    def __init__(self, folder: Path, slurm: Slurm) -> None:
        self.folder, self._slurm = folder, slurm
        self._holder: subprocess.Popen[bytes] | None = None
        self._inside = ""

    def start(self) -> None:
        """Start all services and wait until each tells of its queues."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)
        for name in ("run", "home/.arc", "broker", "arc/sbin"):
            (self.folder / name).mkdir(parents=True)
        names = " ".join(f"{name}.example" for name in QUEUES)
        (self.folder / "hosts").write_text(f"127.0.0.1 localhost {names} {socket.gethostname()}\n")
        self._certificates()
        shutil.copy(ROOT / "deploy" / "arc" / "metasched_broker.py", self.folder / "broker")
        self.asks(f"address = {self.folder}/nobody.sock")
        lrms = {"east": "lrms = slurm\nslurm_use_sacct = no\nslurm_wakeupperiod = 1",
                "west": "lrms = fork"}  # fmt: skip
        client = ""
        for name in QUEUES:
            port = free_port()
            client += CLIENT.format(name=name, port=port)
            for part in ("control", "session", "tmp"):
                (self.folder / name / part).mkdir(parents=True)
            for part in ("session", "tmp"):
                (self.folder / name / part).chmod(0o1777)
            text = CONFIGURATION.format(
                folder=self.folder, name=name, port=port, user=USER, group=GROUP, lrms=lrms[name]
            )
            queues = "".join(f"\n[queue:{queue}]\ncomment = {queue}\n" for queue in QUEUES[name])
            (self.folder / name / "arc.conf").write_text(text + queues)
            # A group that is well known: A-REX would compute one of its own for minutes.
            self._run(
                "openssl", "genpkey", "-genparam", "-algorithm", "DH", "-pkeyopt", "group:ffdhe4096",
                "-out", str(self.folder / name / "control" / "dhparam.pem"),
            )  # fmt: skip
        (self.folder / "home" / ".arc" / "client.conf").write_text(f"[common]\n{client}")
        for part in ("lib", "share"):
            (self.folder / "arc" / part).symlink_to(f"/usr/{part}")
        self._script(self.folder / "arc" / "sbin" / "arched", ARCHED)
        setup = self.folder / "setup"
        setup.write_text(SETUP.format(folder=self.folder, names=" ".join(QUEUES)))
        with (self.folder / "setup.log").open("wb") as log:
            self._holder = subprocess.Popen(
                ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", str(setup)],
                env=os.environ | {"SLURM_CONF": str(self._slurm.folder / "slurm.conf")},
                stdout=log, stderr=log, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        self.wait(lambda: (self.folder / "ready").exists())
        self._inside = Path(f"/proc/{self._holder.pid}/task/{self._holder.pid}/children").read_text().strip()
        made = self.run("arcproxy")
        assert made.returncode == 0, made.stderr

    def asks(self, settings: str) -> None:
        """Give the broker its settings: the lines of [daemon]."""
        sites = "".join(f"{name} = {name}.example\n" for name in QUEUES)
        (self.folder / "broker" / "broker.conf").write_text(f"[daemon]\nlibrary = {ROOT}\n{settings}\n[sites]\n{sites}")

    def arcsub(self, description: str) -> tuple[str, str]:
        """Submit a job by the broker: its address, empty where it was refused, and what was logged."""
        done = self.run("arcsub", "--debug=INFO", "--broker=PythonBroker:metasched_broker.Broker", "-e", description)
        found = re.search(r"jobid: (\S+)", done.stdout)
        return found.group(1) if found else "", done.stdout + done.stderr

    def stop(self) -> None:
        """End all that was started."""
        if self._holder is not None:
            self._holder.kill()
            self._holder.wait()

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command beside the services, as their user."""
        own = {
            "HOME": "home", "PYTHONPATH": "broker", "X509_CERT_DIR": "ca", "X509_USER_PROXY": "proxy.pem",
            "X509_USER_CERT": "client-somebody-cert.pem", "X509_USER_KEY": "client-somebody-key.pem",
        }  # fmt: skip
        environment = os.environ | {name: str(self.folder / value) for name, value in own.items()}
        return subprocess.run(
            ["nsenter", "-t", self._inside, "--mount", "--pid", f"--wdns={self.folder}/home", *words],
            env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False,
        )  # fmt: skip

    def wait(self, holds: Callable[[], object], timeout: float = TIMEOUT) -> None:
        """Wait until a condition holds."""
        until(holds, timeout, f"waited in vain; see {self.folder}", pause=0.2)

    def _certificates(self) -> None:
        authority = ("arcctl", "test-ca", "--ca-dir", str(self.folder / "ca"))
        self._run(*authority, "init")
        for name in QUEUES:
            self._run(*authority, "hostcert", "--hostname", f"{name}.example")
        self._run(*authority, "usercert", "--username", "somebody", "--no-auth")
        read = ("openssl", "x509", "-noout", "-subject", "-nameopt", "compat", "-in", "client-somebody-cert.pem")
        (self.folder / "subjects").write_text(f'"{self._run(*read).strip().removeprefix("subject=")}"\n')

    def _script(self, path: Path, text: str) -> None:
        path.write_text(text)
        path.chmod(0o755)

    def _run(self, *words: str) -> str:
        return subprocess.run(
            words, cwd=self.folder, check=True, capture_output=True, text=True, timeout=TIMEOUT
        ).stdout


@contextmanager
def running(folder: Path, slurm: Slurm) -> Iterator[Grid]:
    """Both computing elements for the duration of a block."""
    grid = Grid(folder, slurm)
    try:
        grid.start()
        yield grid
    finally:
        grid.stop()
