"""A real slurmdbd with its MariaDB on this machine, as the accounting of a :class:`tests.system.real_slurm.Slurm`.

Everything lives in one folder; MariaDB listens on a Unix socket there alone, slurmdbd on the loopback interface. Needs
root, and Debian's packages slurmdbd and mariadb-server, which `make system-test` installs.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.free_ports import free_port
from tests.system.real_slurm import TIMEOUT

DATABASE = """AuthType=auth/munge
AuthInfo=socket={munge}
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={port}
SlurmUser=root
PidFile={folder}/slurmdbd.pid
LogFile={folder}/slurmdbd.log
CommunicationParameters=NoInAddrAny
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageLoc=accounting
StorageUser=root
PurgeEventAfter=13months
MaxQueryTimeRange=300-0
"""
#: Slurm's own lines: limits are enforced, comments are kept, and GPUs counted, of all types together.
LINES = """AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={port}
AccountingStoragePass={munge}
AccountingStorageEnforce=associations,limits,qos
AccountingStoreFlags=job_comment
AccountingStorageTRES=gres/gpu
"""
#: What has the processor time of jobs recorded, from samples a second apart.
GATHERING = """JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
"""
PROGRAMS = ("slurmdbd", "mariadbd", "mariadb-install-db", "mariadb", "sacct", "sacctmgr")


def why_not() -> str:
    """Why it cannot be run here, empty where it can."""
    missing = [name for name in PROGRAMS if not _path(name)]
    return f"not installed: {' '.join(missing)} (`make system-test` installs them as root on Debian)" if missing else ""


class Accounting:
    """MariaDB and slurmdbd, started once munge answers.

    Parameters
    ----------
    folder : where all of it is.
    munge : munge's socket.
    gathering : whether the processor time of jobs is recorded.
    """

    def __init__(self, folder: Path, munge: Path, gathering: bool = False) -> None:
        self.folder, self._munge, self._gathering = folder, munge, gathering
        self._port = free_port()
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def lines(self) -> str:
        """What slurm.conf says of it."""
        return LINES.format(port=self._port, munge=self._munge) + GATHERING * self._gathering

    def start_database(self) -> None:
        """Make an empty database and start MariaDB."""
        data, socket = self.folder / "data", self.folder / "mariadb.sock"
        defaults = ["--no-defaults", f"--datadir={data}", "--user=root"]
        self._call("mariadb-install-db", *defaults, "--auth-root-authentication-method=normal", "--skip-test-db")
        self._start("mariadbd", *defaults, f"--socket={socket}", "--skip-networking", "--innodb-buffer-pool-size=32M",
                    "--innodb-lock-wait-timeout=900", f"--pid-file={self.folder}/mariadb.pid")  # fmt: skip
        self._answers("mariadb", "--no-defaults", f"--socket={socket}", "--execute=CREATE DATABASE accounting")

    def start(self, environment: dict[str, str], conf: Path) -> None:
        """Start slurmdbd with its configuration beside slurm.conf."""
        path = conf.parent / "slurmdbd.conf"
        path.write_text(DATABASE.format(folder=self.folder, port=self._port, munge=self._munge))
        path.chmod(0o600)
        self.resume(environment)

    def resume(self, environment: dict[str, str]) -> None:
        """Start slurmdbd, again where it was ended."""
        # The library that slurmdbd speaks to MariaDB by finds the socket by this variable.
        own = environment | {"MYSQL_UNIX_PORT": str(self.folder / "mariadb.sock")}
        self._start("slurmdbd", "-D", environment=own)
        self._answers("sacctmgr", "--immediate", "show", "cluster", environment=environment)

    def end(self) -> None:
        """End slurmdbd, and leave the database running."""
        process = self._processes.pop()
        process.send_signal(signal.SIGTERM)
        process.wait(TIMEOUT)

    def stop(self) -> None:
        """End what was started, slurmdbd first."""
        for process in reversed(self._processes):
            process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(10.0)
            process.kill()
            process.wait()

    def _start(self, program: str, *words: str, environment: dict[str, str] | None = None) -> None:
        with (self.folder / f"{program}.out").open("ab") as log:
            self._processes.append(
                subprocess.Popen([_path(program), *words], env=environment, stdout=log, stderr=log, stdin=log)
            )

    def _call(self, program: str, *words: str, environment: dict[str, str] | None = None) -> None:
        subprocess.run(
            [_path(program), *words], env=environment, check=True, timeout=TIMEOUT, capture_output=True,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def _answers(self, program: str, *words: str, environment: dict[str, str] | None = None) -> None:
        """Ask until there is an answer."""
        end = time.monotonic() + TIMEOUT
        while True:
            try:
                self._call(program, *words, environment=environment)
            except subprocess.CalledProcessError:
                assert time.monotonic() < end, f"asked {program} in vain; see {self.folder}"
                time.sleep(0.2)
            else:
                return


@contextmanager
def keeping(folder: Path, munge: Path, gathering: bool = False) -> Iterator[Accounting]:
    """An accounting for the duration of a block, its database begun; slurmdbd waits for munge."""
    folder.mkdir(parents=True)
    accounting = Accounting(folder, munge, gathering)
    try:
        accounting.start_database()
        yield accounting
    finally:
        accounting.stop()


def _path(program: str) -> str:
    return shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") or ""
