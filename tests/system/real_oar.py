"""A real OAR on this machine: one server with its database and four nodes, in a network that nobody else sees.

All of it runs in one folder and in name spaces of its own, and ends with the first process. The nodes are names only:
in place of ssh a script starts the jobs of all of them here. Needs root, and Debian's packages oar-server,
oar-server-pgsql, oar-user-pgsql, oar-node and postgresql, which `make system-test` installs.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.system.real_postgresql import BINARIES

PROGRAMS = Path("/usr/lib/oar")
TIMEOUT = 180.0
#: Who submits jobs: OAR takes none of root.
USER = "nobody"
#: The nodes by the value of the property that makes partitions, each with two processors.
CLUSTERS = {"old": ("n1", "n2"), "new": ("n3", "n4")}

#: Starts the database and the server, and leaves a shell that waits: its end is the end of all.
SETUP = """\
set -e
mount --bind {folder}/etc /etc/oar
mount --bind {folder}/lib /var/lib/oar
mount --bind {folder}/log /var/log
mount --bind {folder}/run /run
mount --bind {folder}/hosts /etc/hosts
mount --bind {folder}/passwd /etc/passwd
hostname master
ip link set lo up
cd {folder}/database
setpriv --reuid=postgres --regid=postgres --clear-groups sh -c "{binaries}/initdb -D data -U postgres -A trust \\
  --no-sync >/dev/null && {binaries}/pg_ctl start -w -D data -l log -o '-c listen_addresses=127.0.0.1 \\
  -c unix_socket_directories={folder}/database -c fsync=off' >/dev/null"
export PGHOST=127.0.0.1
psql -q -U postgres -c "CREATE ROLE oar LOGIN SUPERUSER" -c "CREATE ROLE oar_ro LOGIN SUPERUSER" \\
  -c "CREATE DATABASE oar OWNER oar"
for file in pg_structure pg_default_admission_rules default_data; do
  psql -q -U oar -d oar -f {programs}/database/$file.sql
done
psql -q -U oar -d oar -c "ALTER TABLE resources ADD core integer, ADD cluster varchar(255)" {resources}
/usr/sbin/Almighty &
touch {folder}/ready
while :; do sleep 1; done
"""
#: What stands for ssh: its options and the host are passed over.
SSH = """\
#!/bin/sh
while :; do
  case "$1" in -e | -p | -l) shift 2 ;; -*) shift ;; *) break ;; esac
done
shift
exec /bin/sh -c "$*"
"""
CONFIGURATION = {
    "DB_BASE_PASSWD": "oar", "DB_BASE_PASSWD_RO": "oar_ro", "OPENSSH_CMD": "/var/lib/oar/ssh",
    "SCHEDULER_JOB_SECURITY_TIME": "1", "SCHEDULER_MIN_TIME_BETWEEN_2_CALLS": "1",
}  # fmt: skip


def why_not() -> str:
    """Why OAR cannot be run here, empty where it can."""
    if os.getuid() != 0:
        return "OAR's server needs root here"
    missing = [str(name) for name in (PROGRAMS / "Almighty", PROGRAMS / "oarsub") if not name.exists()]
    missing += [name for name in ("unshare", "nsenter", "setpriv", "ip", "psql") if not shutil.which(name)]
    missing += [] if BINARIES else ["postgresql"]
    return f"not installed: {' '.join(missing)} (`make system-test` installs them as root on Debian)" if missing else ""


class Oar:
    """A running server, which knows nothing of metasched."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        #: Where the rule's files and settings are, once they are installed.
        self.hooks_folder = folder / "etc" / "metasched"
        self._holder: subprocess.Popen[bytes] | None = None
        self._inside = ""
        #: Commands that speak to this server, for whoever looks for them on PATH.
        self.commands = folder / "commands"

    def start(self) -> None:
        """Start all daemons and wait until the server answers."""
        for name in ("log", "run", "database", "commands", "home"):
            (self.folder / name).mkdir()
        shutil.copytree("/etc/oar", self.folder / "etc")
        shutil.copytree("/var/lib/oar", self.folder / "lib")
        for name in ("log", "home"):
            (self.folder / name).chmod(0o777)
        shutil.chown(self.folder / "database", "postgres")
        names = " ".join(node for nodes in CLUSTERS.values() for node in nodes)
        (self.folder / "hosts").write_text(f"127.0.0.1 localhost master {names}\n")
        users = re.sub(r"(?m)^(oar|nobody):(.*):[^:]*$", r"\1:\2:/bin/sh", Path("/etc/passwd").read_text())
        (self.folder / "passwd").write_text(users)
        text = (self.folder / "etc" / "oar.conf").read_text()
        for key, value in CONFIGURATION.items():
            text = re.sub(rf"(?m)^#?{key}=.*$", f'{key}="{value}"', text)
        # Without it jobs are not put into control groups of the kernel.
        text = re.sub(r"(?m)^JOB_RESOURCE_MANAGER_PROPERTY_DB_FIELD", "#\\g<0>", text)
        (self.folder / "etc" / "oar.conf").write_text(text)
        (self.folder / "lib" / "ssh").write_text(SSH)
        (self.folder / "lib" / "ssh").chmod(0o755)
        for name in ("etc/oar.conf", "lib", "lib/.ssh"):
            shutil.chown(self.folder / name, "oar", "oar")
        rows = [
            f'-c "INSERT INTO resources (network_address, type, state, core, cluster) '
            f"VALUES ('{node}', 'default', 'Alive', {number}, '{cluster}')\""
            for number, (cluster, node) in enumerate(
                ((cluster, node) for cluster, nodes in CLUSTERS.items() for node in nodes for _ in range(2)), start=1
            )
        ]
        setup = self.folder / "setup"
        setup.write_text(
            SETUP.format(folder=self.folder, programs=PROGRAMS, binaries=BINARIES, resources=" ".join(rows))
        )
        with (self.folder / "setup.log").open("wb") as log:
            self._holder = subprocess.Popen(
                ["unshare", "--net", "--mount", "--uts", "--pid", "--fork", "--mount-proc", "--kill-child",
                 "sh", str(setup)],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        self.wait(lambda: (self.folder / "ready").exists())
        self._inside = Path(f"/proc/{self._holder.pid}/task/{self._holder.pid}/children").read_text().strip()
        for name in ("oarstat", "oarnodes", "oarsub", "oardel", "oaradmissionrules"):
            user = (
                f"setpriv --reuid={USER} --regid={pwd.getpwnam(USER).pw_gid} --clear-groups" if name == "oarsub" else ""
            )
            enter = f"nsenter -t {self._inside} --net --mount --uts --pid --wdns={self.folder}/home"
            (self.commands / name).write_text(
                f'#!/bin/sh\nexec {enter} env PWD={self.folder}/home {user} {shutil.which(name)} "$@"\n'
            )
            (self.commands / name).chmod(0o755)
        self.wait(lambda: "Alive" in self.run("oarnodes", "-J"))

    def stop(self) -> None:
        """End all that was started."""
        if self._holder is not None:
            self._holder.kill()
            self._holder.wait()

    def hooks(self, settings: Mapping[str, str]) -> None:
        """Configure the rule, which reads its settings for each job."""
        every = {"cluster": "oar", "deadline": "1", "property": "cluster", "partitions": "old, new"} | settings
        text = "".join(f"{key} = {value}\n" for key, value in every.items())
        (self.hooks_folder / "hooks.conf").write_text(text)

    def run(self, *words: str) -> str:
        """Run one of OAR's commands and return what it prints."""
        done = subprocess.run(
            [str(self.commands / words[0]), *words[1:]], capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def oarsub(self, *words: str) -> int:
        """Submit a job; its number."""
        found = re.search(r"OAR_JOB_ID=(\d+)", said := self.run("oarsub", *words))
        assert found, said
        return int(found[1])

    def wait(
        self, holds: Callable[[], object], timeout: float = TIMEOUT, *, otherwise: Callable[[], str] = str
    ) -> None:
        """Wait until a condition holds; ``otherwise`` tells more where it does not come to hold."""
        end = time.monotonic() + timeout
        while not holds():
            assert self._holder is None or self._holder.poll() is None, (self.folder / "setup.log").read_text()
            assert time.monotonic() < end, (self.folder / "setup.log").read_text() + otherwise()
            time.sleep(0.2)


@contextmanager
def running() -> Iterator[Oar]:
    """A server for the duration of a block, in a folder that its users may enter."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        oar = Oar(folder)
        try:
            oar.start()
            yield oar
        finally:
            oar.stop()
