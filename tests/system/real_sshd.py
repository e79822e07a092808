"""A real sshd on the loopback interface, and commands that reach it: OpenSSH's own with a configuration of ours."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

SSHD = "/usr/sbin/sshd"
#: Stands in for the scheduler's command at the site: notes its words and what it reads, and says a number.
SBATCH = """#!/bin/sh
for word in "$@"; do printf '%s\\n' "$word"; done > {folder}/words
cat > {folder}/script
echo 4711
"""


def why_not() -> str:
    return "" if shutil.which("ssh") and Path(SSHD).exists() and os.getuid() == 0 else "no sshd, or not root"


class Sshd:
    """Takes one key. Where its users find a real Slurm, its slurm.conf is named; else sbatch is a stand-in of ours."""

    def __init__(self, folder: Path, slurm: Path | None = None) -> None:
        self.folder = folder
        for name in ("host", "user"):
            words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
            subprocess.run(words, check=True, timeout=60)
        (folder / "keys").write_text((folder / "user.pub").read_text())
        (folder / "there").mkdir()
        if slurm is None:
            (folder / "there" / "sbatch").write_text(SBATCH.format(folder=folder))
            (folder / "there" / "sbatch").chmod(0o755)
        variables = f"PATH={folder}/there:/usr/bin:/bin" + (f" SLURM_CONF={slurm}" if slurm else "")
        with socket.create_server(("127.0.0.1", 0)) as made:
            self.port = int(made.getsockname()[1])
        (folder / "sshd_config").write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/keys\n"
            f"PidFile none\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin prohibit-password\nStrictModes no\n"
            f"SetEnv {variables}\nSubsystem sftp internal-sftp\n"
        )
        known = (folder / "host.pub").read_text().split()
        (folder / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {known[0]} {known[1]}\n")
        (folder / "ssh_config").write_text(
            f"Host site\n HostName 127.0.0.1\n Port {self.port}\n User root\n IdentityFile {folder}/user\n"
            f" IdentitiesOnly yes\n UserKnownHostsFile {folder}/known_hosts\n"
            "Host gone\n HostName 127.0.0.1\n Port 1\n"
        )
        (folder / "here").mkdir()
        for name in ("ssh", "scp"):
            there = shutil.which(name)
            (folder / "here" / name).write_text(f'#!/bin/sh\nexec {there} -F {folder}/ssh_config "$@"\n')
            (folder / "here" / name).chmod(0o755)
        Path("/run/sshd").mkdir(exist_ok=True)
        words = [SSHD, "-D", "-e", "-f", str(folder / "sshd_config")]
        with (folder / "sshd.log").open("ab") as log:
            self._process = subprocess.Popen(words, stdout=log, stderr=log)
        end = time.monotonic() + 60.0
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1.0).close()
            except OSError:
                assert self._process.poll() is None, (folder / "sshd.log").read_text()
                assert time.monotonic() < end, "sshd does not listen"
                time.sleep(0.05)
            else:
                return

    @property
    def path(self) -> str:
        """The search path on which the commands that reach it come first."""
        return f"{self.folder}/here:{os.environ['PATH']}"

    def stop(self) -> None:
        """End it; the shared connection with it."""
        self._process.terminate()
        self._process.wait(60)
