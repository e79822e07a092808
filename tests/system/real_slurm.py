"""A real Slurm on this machine: one controller, eight virtual nodes in two partitions, on the loopback interface only.

Everything lives in one folder, and only processes started here are ended. Needs root, and Debian's packages
slurmctld slurmd slurm-client munge lua-socket lua-cjson, which `make system-test` installs.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from waiting import until

from tests.free_ports import free_ports

if TYPE_CHECKING:
    from tests.system.real_accounting import Accounting

DEPLOYED = Path(__file__).resolve().parents[2] / "deploy" / "slurm"
SHARED = [DEPLOYED.parent / "hooks" / f"metasched_{name}.py" for name in ("hooks", "numbers")]
LUA, LUA_ROOTS = ("socket.lua", "cjson.so"), ("/usr/share", "/usr/lib")
NODES = ("a1", "a2", "a3", "a4", "b1", "b2", "b3", "b4")
TIMEOUT = 120.0
PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"
#: The host name of a second controller, and how long after the first one's last sign of life it takes over (s).
BACKUP, TAKEOVER = "spare", 5

CONFIGURATION = """
ClusterName=proof
SlurmctldHost={host}(127.0.0.1)
{backup}
SlurmctldPort={port}
SlurmdPort={first}
SrunPortRange={srun}-{last_srun}
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
SlurmctldDebug=info
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
TopologyPlugin=topology/tree
{plugins}
JobCompType=jobcomp/none
PrologSlurmctld={folder}/metasched-prolog
EpilogSlurmctld={folder}/metasched-epilog
{accounting}
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=1,sched_min_interval=100000,batch_sched_delay=0
SlurmctldTimeout={takeover}
SlurmdTimeout=60
InactiveLimit=0
KillWait=2
MinJobAge={memory}
CompleteWait=0
NodeName=DEFAULT CPUs=4 Boards=1 SocketsPerBoard=1 CoresPerSocket=4 ThreadsPerCore=1 RealMemory=1000 State=UNKNOWN
GresTypes=gpu
NodeName=a[1-2] Gres=gpu:a100:2 NodeHostname={host} NodeAddr=127.0.0.1 Port={first}-{second} Feature=old
NodeName=a[3-4] Gres=gpu:2 NodeHostname={host} NodeAddr=127.0.0.1 Port={third}-{fourth} Feature=old
NodeName=b[1-4] NodeHostname={host} NodeAddr=127.0.0.1 Port={fifth}-{eighth} Feature=new
PartitionName=old Nodes=a[1-4] MaxTime=60 DefaultTime=5 State=UP Default=YES
PartitionName=new Nodes=b[1-4] MaxTime=60 DefaultTime=5 State=UP
"""
#: Any two devices: nothing is done with them.
GPUS = "AutoDetect=off\n" + "".join(
    f"NodeName={nodes} Name=gpu {kind}File={device}\n"
    for nodes, kind in (("a[1-2]", "Type=a100 "), ("a[3-4]", ""))
    for device in ("/dev/null", "/dev/zero")
)
NO_ACCOUNTING = "AccountingStorageType=accounting_storage/none"
TOPOLOGY = """
SwitchName=sa Nodes=a[1-4]
SwitchName=sb Nodes=b[1-4]
SwitchName=top Switches=sa,sb
"""


def why_not() -> str:
    """Why Slurm cannot be run here, empty where it can."""
    if os.getuid() != 0:
        return "Slurm's daemons need root here"
    programs = ("slurmctld", "slurmd", "munged", "sbatch")
    missing = [name for name in programs if not shutil.which(name, path=PATH)]
    missing += [name for name in LUA if not any(any(Path(root).glob(f"**/lua/5.*/{name}")) for root in LUA_ROOTS)]
    return f"not installed: {' '.join(missing)} (`make system-test` installs them as root on Debian)" if missing else ""


@dataclass(frozen=True)
class Submitted:
    """What sbatch said: how long it took (s), the job's number (0 where it was refused), and its complaints."""

    seconds: float
    job: int
    said: str


class Slurm:
    """A running Slurm."""

    def __init__(
        self,
        folder: Path,
        *,
        hook: bool = True,
        bare: bool = False,
        memory: int = 600,
        accounting: Accounting | None = None,
        backup: bool = False,
    ) -> None:
        self.folder, self._accounting, self._backup = folder, accounting, backup
        self._memory = memory
        self._hook, self._bare = hook and not bare, bare
        self._loads = 0
        self.chained = False
        self.environment = dict(os.environ, SLURM_CONF=str(folder / "slurm.conf"))

    def start(self) -> None:
        """Start all daemons and wait until all nodes are idle."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for name in ("state", "spool", "hooks"):
            (self.folder / name).mkdir()
        if not self._bare:
            for name in ("metasched-prolog", "metasched-epilog"):
                shutil.copy(DEPLOYED / name, self.folder)
            for path in SHARED:
                shutil.copy(path, self.folder)
            self.hooks({})
        port = free_ports(120)[0]
        (self.folder / "slurm.conf").write_text(
            CONFIGURATION.format(
                host=socket.gethostname().split(".")[0], folder=self.folder, port=port, first=port + 1, second=port + 2,
                third=port + 3, fourth=port + 4,
                fifth=port + 5, eighth=port + 8, srun=port + 10, last_srun=port + 110,
                backup=f"SlurmctldHost={BACKUP}(127.0.0.2)" if self._backup else "",
                takeover=TAKEOVER if self._backup else 60,
                plugins="JobSubmitPlugins=lua" if self._hook else "", memory=self._memory,
                accounting=self._accounting.lines if self._accounting else NO_ACCOUNTING,
            )
        )  # fmt: skip
        if self._bare:
            conf = self.folder / "slurm.conf"
            kept = [line for line in conf.read_text().splitlines() if "/metasched-" not in line]
            conf.write_text("\n".join(kept) + "\n")
        (self.folder / "topology.conf").write_text(TOPOLOGY)
        (self.folder / "gres.conf").write_text(GPUS)
        key = self.folder / "munge.key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o400)
        self.folder.chmod(0o755)
        names = {"key-file": key, "socket": "munge.sock", "pid-file": "munged.pid", "log-file": "munged.log"}
        names["seed-file"] = "munge.seed"
        self._call("munged", "--force", *(f"--{name}={self.folder / value}" for name, value in names.items()))
        if self._accounting:
            self._accounting.start(self.environment, self.folder / "slurm.conf")
            self.run("sacctmgr", "--immediate", "add", "cluster", "proof")
            self.run("sacctmgr", "--immediate", "add", "account", "site")
            self.run("sacctmgr", "--immediate", "add", "user", "root", "account=site")
        self._call("slurmctld", "-f", str(self.folder / "slurm.conf"), "-i")
        if self._backup:
            self._start_backup()
        for node in NODES:
            (self.folder / "spool" / node).mkdir()
            self._call("slurmd", "-f", str(self.folder / "slurm.conf"), "-N", node)
        self.wait(lambda: self.run("sinfo", "-h", "-N", "-t", "idle", "-o", "%N").count("\n") == len(NODES))

    def stop(self) -> None:
        """End what was started, known by its process id and by this folder in its command line or environment."""
        # A slurmd whose job is still about to end would wait for a controller that is gone.
        with suppress(subprocess.SubprocessError, AssertionError):
            self.run("scancel", "--user=root")
            self.wait(lambda: not self.run("squeue", "--noheader"), 5.0)
        # Munge last: the others would wait for it.
        munge = self.folder / "munged.pid"
        for paths in ([path for path in self.folder.glob("*.pid") if path != munge], [munge]):
            alive = [pid for path in paths if (pid := self._pid(path)) is not None]
            for number in (signal.SIGTERM, signal.SIGKILL):
                for pid in alive:
                    with suppress(ProcessLookupError):
                        os.kill(pid, number)
                end = time.monotonic() + 10.0
                while (alive := [pid for pid in alive if _lives(pid)]) and time.monotonic() < end:
                    time.sleep(0.02)

    def hooks(self, settings: Mapping[str, str], rules: str = "return {}\n") -> None:
        """Configure the hooks; the controller reads its script again, since its time has changed."""
        every = {"state": str(self.folder / "hooks"), "cluster": "proof", "partitions": "any"} | settings
        (self.folder / "hooks.conf").write_text("".join(f"{key} = {value}\n" for key, value in every.items()))
        (self.folder / "rules.lua").write_text(rules)
        if not self.chained:
            for name in ("job_submit.lua", "job_numbers.lua"):
                shutil.copy(DEPLOYED / name, self.folder)
        self._loads += 1
        os.utime(self.folder / "job_submit.lua", (1e9 + self._loads, 1e9 + self._loads))

    def stand_still(self, still: bool = True) -> None:
        """Let no job start, so that each is looked at as it was submitted, or let them start again."""
        for partition in ("old", "new"):
            self.run("scontrol", "update", f"PartitionName={partition}", f"State={'DOWN' if still else 'UP'}")

    def restart(self) -> None:
        """Start the controller anew, as after a change of slurm.conf."""
        self.end()
        self.resume()
        self.wait(lambda: self.run("sinfo", "-h", "-N", "-t", "idle", "-o", "%N").count("\n") == len(NODES))

    def remember(self, seconds: int) -> None:
        """Let the controller remember jobs for so long after their end."""
        conf = self.folder / "slurm.conf"
        conf.write_text(re.sub(r"(?m)^MinJobAge=.*$", f"MinJobAge={seconds}", conf.read_text()))
        self.run("scontrol", "reconfigure")

    def _start_backup(self) -> None:
        """Start a second controller, which takes itself for another host: it has a name and an address of its own."""
        conf = (self.folder / "slurm.conf").read_text()
        for own in ("slurmctld.pid", "slurmctld.log"):
            conf = conf.replace(f"{self.folder}/{own}", f"{self.folder}/backup.{own}")
        (self.folder / "backup.conf").write_text(conf)
        (self.folder / "hosts").write_text(f"127.0.0.1 localhost\n127.0.0.2 {BACKUP}\n")
        words = f'hostname {BACKUP} && mount --bind "$1" /etc/hosts && exec "$2" -f "$0"'
        program = shutil.which("slurmctld", path=PATH) or "slurmctld"
        more = (str(self.folder / name) for name in ("backup.conf", "hosts"))
        self._call("unshare", "--uts", "--mount", "sh", "-c", words, *more, program)

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End the first controller, which saves its state first."""
        pid = self._pid(self.folder / "slurmctld.pid")
        assert pid is not None, "no controller runs"
        os.kill(pid, number)
        self.wait(lambda: not _lives(pid))

    def kill(self) -> None:
        """End the first controller without a chance to tidy up."""
        self.end(signal.SIGKILL)

    def resume(self) -> None:
        """Start the first controller again, which takes control back."""
        self._call("slurmctld", "-f", str(self.folder / "slurm.conf"))

    def lose_state(self) -> None:
        """Kill the controller and start it anew without its state: jobs are numbered from 1 on again."""
        self.kill()
        shutil.rmtree(self.folder / "state")
        (self.folder / "state").mkdir()
        self._call("slurmctld", "-f", str(self.folder / "slurm.conf"), "-c")
        self.wait(lambda: self.run("sinfo", "-h", "-N", "-t", "idle", "-o", "%N").count("\n") == len(NODES))

    def chain(self, own: str) -> None:
        """Give the site a hook of its own that loads metasched's, which lies in a folder of its own then."""
        folder = self.folder / "metasched"
        folder.mkdir()
        for name in ("job_submit.lua", "job_numbers.lua", "rules.lua", "hooks.conf"):
            (self.folder / name).rename(folder / name)
        self.chained = True
        line = f'pcall(dofile, "{folder}/job_submit.lua")'
        (self.folder / "job_submit.lua").write_text(f"{own}\n{line}\nreturn slurm.SUCCESS\n")
        self._loads += 1
        os.utime(self.folder / "job_submit.lua", (1e9 + self._loads, 1e9 + self._loads))

    def run(self, *words: str) -> str:
        """Run one of Slurm's commands and return what it prints."""
        return subprocess.run(
            words, env=self.environment, capture_output=True, timeout=TIMEOUT, check=True, text=True, errors="replace"
        ).stdout

    def run_epilog(self, *words: str) -> None:
        """Run the epilog as a service manager does."""
        subprocess.run(
            [str(self.folder / "metasched-epilog"), *words], check=True, timeout=TIMEOUT, capture_output=True
        )

    def sbatch(self, *words: str | bytes, script: bytes = b"#!/bin/sh\ntrue\n") -> Submitted:
        """Submit a job."""
        began = time.perf_counter()
        done = subprocess.run(
            ["sbatch", "--parsable", "--output=/dev/null", *words],
            input=script, env=self.environment, capture_output=True, timeout=TIMEOUT, check=False, cwd=self.folder,
        )  # fmt: skip
        took = time.perf_counter() - began
        number = done.stdout.decode(errors="replace").strip().split(";")[0]
        return Submitted(took, int(number) if number.isdigit() else 0, done.stderr.decode(errors="replace"))

    def job(self, number: int) -> dict[str, str]:
        """What the controller knows of a job, field by field; the comment only up to its first blank."""
        told = self.run("scontrol", "--oneliner", "show", "job", str(number))
        return dict(word.split("=", 1) for word in told.split() if "=" in word)

    def wait(self, holds: Callable[[], object], timeout: float = TIMEOUT) -> None:
        """Wait until a condition holds."""
        until(holds, timeout, f"waited in vain; see {self.folder}", pause=0.1)

    def wait_for(self, jobs: Sequence[int]) -> None:
        """Wait until none of these jobs is waiting or running."""
        wanted = {str(job) for job in jobs}
        self.wait(lambda: not wanted & set(self.run("squeue", "-h", "-o", "%A").split()), 180.0)

    def _call(self, program: str, *words: str) -> None:
        path = shutil.which(program, path=PATH) or program
        subprocess.run(
            [path, *words], env=self.environment, check=True, timeout=TIMEOUT, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def _pid(self, path: Path) -> int | None:
        with suppress(OSError, ValueError):
            pid = int(path.read_text())
            known = Path(f"/proc/{pid}/cmdline").read_bytes() + Path(f"/proc/{pid}/environ").read_bytes()
            if os.fsencode(self.folder) in known:
                return pid
        return None


@contextmanager
def running(
    folder: Path,
    *,
    hook: bool = True,
    bare: bool = False,
    memory: int = 600,
    accounting: Accounting | None = None,
    backup: bool = False,
) -> Iterator[Slurm]:
    """A Slurm for the duration of a block, which forgets jobs some time after they ended: MinJobAge (s).

    A bare one knows nothing of metasched. A backup is a second controller, for when the first is killed.
    """
    slurm = Slurm(folder, hook=hook, bare=bare, memory=memory, accounting=accounting, backup=backup)
    try:
        slurm.start()
        yield slurm
    finally:
        slurm.stop()


def _lives(pid: int) -> bool:
    """Whether a process has not ended yet; whoever adopted it may look at its end seconds later."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
