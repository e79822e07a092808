"""A real Grid Engine on this machine: one master and four hosts, each in a network of its own that nobody else sees.

All of it runs in one folder and in name spaces of its own: hosts are network name spaces on a bridge, with names of
their own, and what was started ends with the first process. Needs root, and Debian's packages gridengine-master,
gridengine-exec, gridengine-client and iproute2, which `make system-test` installs.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from deployed_files import copy_deployed
from waiting import until

PROGRAMS = Path("/usr/lib/gridengine")
HOSTS = ("n1", "n2", "n3", "n4")
TIMEOUT = 120.0
NAMESPACES = ("--net", "--mount", "--uts", "--pid")

#: Makes the cell and leaves a shell that waits: its end is the end of all.
SETUP = """\
set -e
ulimit -n 4096
mount --bind {folder}/hosts /etc/hosts
hostname master
ip link set lo up
ip link add br0 type bridge
ip addr add 10.77.0.1/24 dev br0
ip link set br0 up
{programs}/spoolinit classic libspoolc "{folder}/default/common;{folder}/qmaster" init
{programs}/spooldefaults configuration {folder}/configuration
{programs}/spooldefaults complexes /usr/share/gridengine/util/resources/centry
{programs}/spooldefaults usersets /usr/share/gridengine/util/resources/usersets
{programs}/spooldefaults managers root
{programs}/sge_qmaster
until {programs}/qconf -as master; do sleep 0.2; done
for i in 1 2 3 4; do
  {programs}/qconf -ah n$i
  unshare --net --uts sleep infinity &
  while [ "$(readlink /proc/$!/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do sleep 0.02; done
  ip link add v$i type veth peer name eth0 netns $!
  ip link set v$i master br0 up
  nsenter -t $! --net --uts sh -c "hostname n$i; ip link set lo up; ip addr add 10.77.0.1$i/24 dev eth0; \\
    ip link set eth0 up; {programs}/sge_execd"
done
export EDITOR={folder}/edit
EDIT='s/^slots .*/slots 99/; s/^allocation_rule.*/allocation_rule $round_robin/' {programs}/qconf -ap mpi
for queue in old new; do
  [ $queue = old ] && hosts='n1 n2' turn=1 || hosts='n3 n4' turn=2
  EDIT="s/^hostlist.*/hostlist $hosts/; s/^seq_no.*/seq_no $turn/; s/^pe_list.*/pe_list mpi/;
    s/^slots.*/slots 2/; s/^shell .*/shell \\/bin\\/sh/; s/^load_thresholds.*/load_thresholds NONE/" \\
    {programs}/qconf -aq $queue
done
EDIT='s/^schedule_interval.*/schedule_interval 0:0:1/; s/^flush_\\(submit\\|finish\\)_sec.*/flush_\\1_sec 1/;
  s/^job_load_adj.*/job_load_adjustments NONE/; s/^queue_sort_method.*/queue_sort_method seqno/' \\
  {programs}/qconf -msconf
touch {folder}/ready
while :; do sleep 1; done
"""
BOOTSTRAP = """\
admin_user none
default_domain none
ignore_fqdn true
spooling_method classic
spooling_lib libspoolc
spooling_params {folder}/default/common;{folder}/qmaster
binary_path {folder}/bin
qmaster_spool_dir {folder}/qmaster
security_mode none
listener_threads 2
worker_threads 2
scheduler_threads 1
"""
#: What the cell's configuration says otherwise than Debian's.
CONFIGURATION = {
    "execd_spool_dir": "{folder}/exec",
    "epilog": "root@{folder}/hooks/metasched-epilog",
    "min_uid": "0",
    "min_gid": "0",
    "load_report_time": "00:00:02",
    "reporting_params": "accounting=true reporting=false flush_time=00:00:01 accounting_flush_time=00:00:00",
    "jsv_url": "{jsv}",
    "jsv_allowed_mod": "ac,h,i,e,o,j,M,N,p,w,l_hard",
}
#: What an administrator has not set yet.
UNSET = {"epilog": "none", "jsv_allowed_mod": "ac,h,i,e,o,j,M,N,p,w"}


def why_not() -> str:
    """Why Grid Engine cannot be run here, empty where it can."""
    if os.getuid() != 0:
        return "Grid Engine's daemons need root here"
    missing = [name for name in ("sge_qmaster", "sge_execd", "qstat", "qsub") if not (PROGRAMS / name).exists()]
    missing += [name for name in ("ip", "unshare", "nsenter") if not shutil.which(name)]
    if missing:
        return f"not installed: {' '.join(missing)} (`make system-test` installs them as root on Debian)"
    tried = subprocess.run(
        ["unshare", *NAMESPACES, "--fork", "ip", "link", "add", "v1", "type", "veth", "peer", "name", "v2"],
        check=False, capture_output=True,
    )  # fmt: skip
    return "this kernel lets nobody make networks" if tried.returncode else ""


class GridEngine:
    """A running cell."""

    def __init__(self, folder: Path, *, bare: bool = False) -> None:
        self.folder, self._bare = folder, bare
        #: Where its hooks and their settings are, and what is set by whom.
        self.hooks_folder = folder / "hooks"
        self._holder: subprocess.Popen[bytes] | None = None
        self.environment = {"SGE_ROOT": str(folder), "SGE_CELL": "default", "SGE_ARCH": "lx-amd64",
                            "SGE_QMASTER_PORT": "6444", "SGE_EXECD_PORT": "6445"}  # fmt: skip
        #: Commands that speak to this cell, for whoever looks for them on PATH.
        self.commands = folder / "commands"

    def start(self) -> None:
        """Start all daemons and wait until all hosts have reported their loads."""
        for name in ("default/common", "bin", "utilbin", "qmaster/job_scripts", "exec", "hooks", "state", "commands"):
            (self.folder / name).mkdir(parents=True)
        for name in ("bin/lx-amd64", "utilbin/lx-amd64"):
            (self.folder / name).symlink_to(PROGRAMS)
        (self.folder / "util").symlink_to("/usr/share/gridengine/util")
        addresses = {"localhost": "127.0.0.1", "master": "10.77.0.1"}
        addresses |= {host: f"10.77.0.1{number}" for number, host in enumerate(HOSTS, start=1)}
        (self.folder / "hosts").write_text("".join(f"{address} {host}\n" for host, address in addresses.items()))
        common = self.folder / "default" / "common"
        (common / "bootstrap").write_text(BOOTSTRAP.format(folder=self.folder))
        (common / "act_qmaster").write_text("master\n")
        jsv = "none" if self._bare else f"script:{self.folder}/hooks/metasched-jsv"
        text = Path("/usr/share/gridengine/default-configuration").read_text()
        for key, value in CONFIGURATION.items():
            value = UNSET.get(key, value) if self._bare else value
            line = f"{key} {value.format(folder=self.folder, jsv=jsv)}"
            text = re.sub(rf"(?m)^{key}\s.*$", line, text)
        (self.folder / "configuration").write_text(text)
        # Grid Engine takes a file for unchanged that is as old as before, in whole seconds.
        (self.folder / "edit").write_text('#!/bin/sh\nsed -i "$EDIT" "$1"\ntouch -d "+5 seconds" "$1"\n')
        (self.folder / "edit").chmod(0o755)
        copy_deployed(self.folder / "hooks", "gridengine", "hooks")
        self.hooks({"socket": str(self.folder / "nobody.sock")})
        (self.folder / "setup").write_text(SETUP.format(folder=self.folder, programs=PROGRAMS))
        with (self.folder / "setup.log").open("wb") as log:
            self._holder = subprocess.Popen(
                ["unshare", *NAMESPACES, "--fork", "--mount-proc", "--kill-child", "sh", str(self.folder / "setup")],
                env=os.environ | self.environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        self.wait(lambda: (self.folder / "ready").exists())
        inside = Path(f"/proc/{self._holder.pid}/task/{self._holder.pid}/children").read_text().strip()
        answer = " ".join(f"{name}={value}" for name, value in self.environment.items())
        for name in ("qsub", "qstat", "qconf", "qalter", "qacct", "qhost", "qmod", "qdel"):
            script = self.commands / name
            enter = f"nsenter -t {inside} --net --mount --uts --pid --wdns={self.folder}"
            script.write_text(f'#!/bin/sh\nexec {enter} env {answer} {PROGRAMS}/{name} "$@"\n')
            script.chmod(0o755)
        self.wait(lambda: self.run("qstat", "-f").count("lx-amd64") == len(HOSTS))

    def stop(self) -> None:
        """End all that was started."""
        if self._holder is not None:
            self._holder.kill()
            self._holder.wait()

    def hooks(self, settings: Mapping[str, str]) -> None:
        """Configure the hooks, which read their settings for each job."""
        every = {"state": str(self.folder / "state"), "cluster": "cell", "deadline": "1"} | settings
        fresh = self.hooks_folder / "hooks.new"
        fresh.write_text("".join(f"{key} = {value}\n" for key, value in every.items()))
        fresh.rename(self.hooks_folder / "hooks.conf")

    def run(self, *words: str, script: bytes = b"") -> str:
        """Run one of Grid Engine's commands and return what it prints."""
        return subprocess.run(
            [str(self.commands / words[0]), *words[1:]], input=script, capture_output=True, timeout=TIMEOUT, check=True
        ).stdout.decode(errors="replace")

    def qsub(self, *words: str, script: bytes = b"true\n") -> int:
        """Submit a job; its number."""
        said = self.run("qsub", "-terse", "-o", "/dev/null", "-j", "y", *words, script=script)
        return int(said.strip().partition(".")[0])

    def job(self, number: int) -> dict[str, str]:
        """What the master knows of a job that has not ended, line by line."""
        answer = self.run("qstat", "-j", str(number)).splitlines()
        return {key.strip(): value.strip() for key, found, value in (line.partition(":") for line in answer) if found}

    def wait(self, holds: Callable[[], object], timeout: float = TIMEOUT) -> None:
        """Wait until a condition holds."""
        until(holds, timeout, f"waited in vain; see {self.folder}", pause=0.1)

    def wait_for(self, jobs: set[int]) -> None:
        """Wait until none of these jobs is waiting or running."""

        def there() -> set[int]:
            lines = self.run("qstat", "-u", "*").splitlines()[2:]
            return {int(line.split()[0]) for line in lines if line.strip()}

        self.wait(lambda: not jobs & there(), 120.0)


@contextmanager
def running(folder: Path, *, bare: bool = False) -> Iterator[GridEngine]:
    """A cell for the duration of a block; a bare one knows nothing of metasched."""
    cell = GridEngine(folder, bare=bare)
    try:
        cell.start()
        yield cell
    finally:
        cell.stop()
