"""The services of the packages for Debian and RPM under a real systemd: installed, started, upgraded and removed.

It runs in namespaces of its own, over a view of this host that forgets what is written.

``python -m tests.services FOLDER`` takes the packages that ``python -m tests.packages --keep FOLDER`` has built.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

#: Everything takes at most so long (s).
TIMEOUT = 600.0
#: As root in new namespaces: $1 is a folder that both sides see, $2 holds the packages.
START = r"""set -eu
mount -t tmpfs -o size=4g tmpfs "$1/view"
mkdir "$1/view/upper" "$1/view/work" "$1/view/root"
root="$1/view/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/view/upper,workdir=$1/view/work" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount --rbind /dev "$root/dev"
for folder in run tmp mnt; do mount -t tmpfs -o mode=0755 tmpfs "$root/$folder"; done
chmod 1777 "$root/tmp"
mkdir "$root/mnt/told" "$root/mnt/packages"
mount --bind "$1/told" "$root/mnt/told"
mount --bind "$2" "$root/mnt/packages"
# No other service of this host, and nothing that was installed or left here before.
rm -rf "$root"/etc/systemd/system/*.wants "$root"/opt/metasched* "$root"/etc/metasched "$root"/var/lib/metasched*
rm -rf "$root/var/lib/private"
cat >"$root/etc/systemd/system/life.service" <<'UNIT'
[Service]
Type=oneshot
ExecStart=/bin/bash /mnt/told/life
StandardOutput=file:/mnt/told/facts
StandardError=file:/mnt/told/errors
ExecStopPost=/bin/touch /mnt/told/end
TimeoutStartSec=infinity
UNIT
# Folders of credentials reach the services only from where mounts are shared.
mount --make-rshared "$root"
cd "$root"
exec chroot "$root" /usr/bin/env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin \
  /usr/lib/systemd/systemd --system --unit=life.service --log-target=null
"""
#: What the lives of all packages begin with.
LIFE = r"""set -eu
export DEBIAN_FRONTEND=noninteractive
command=/opt/metasched/bin/metasched settings=/etc/metasched/agent.toml
until_() { for _ in $(seq 120); do if "$@" >/dev/null 2>&1; then return 0; fi; sleep 0.5; done; "$@"; }
answers() { "$command" status; }
reports() { "$command" status | grep -q '^nodes  *1 report loads'; }
other() { [ "$(systemctl show -P MainPID "$1")" != "$2" ] && systemctl is-active "$1"; }
main() { systemctl show -P MainPID "$1"; }
left() { find /etc/metasched /opt/metasched* /usr/bin/metasched* -type f -o -type l 2>/dev/null | sort | paste -sd" "; }
"""
DEBIAN = r"""
install() { dpkg -i /mnt/packages/metasched_*.deb /mnt/packages/metasched-agent_*.deb >/dev/null 2>&1; }
install
echo "after installing: $(systemctl is-active metasched metasched-agent | sort -u)"
systemctl enable --quiet --now metasched
until_ answers
sed -i 's,^daemon = .*,daemon = "http://127.0.0.1:8765",; s,^interval.*,interval = 1.0,' $settings
sed -i 's,^# node = .*,node = "n0",' $settings
(umask 077; "$command" token add n0 --role agent --node n0 >/etc/metasched/agent.token)
systemctl enable --quiet --now metasched-agent
until_ reports
echo "started: daemon and agent, samples arrive"
for each in metasched metasched-agent; do
  killed=$(main $each); kill -9 "$killed"; until_ other $each "$killed"
done
until_ answers; until_ reports
echo "killed: both run again"
daemon=$(main metasched) agent=$(main metasched-agent)
install
until_ other metasched "$daemon"; until_ other metasched-agent "$agent"; until_ answers; until_ reports
echo "upgraded: both run again"
systemctl stop metasched metasched-agent
echo "stopped: $(systemctl show -P Result metasched metasched-agent | sort -u | grep .)"
systemctl start metasched metasched-agent
dpkg -r metasched-agent metasched >/dev/null 2>&1
echo "removed: $(systemctl is-active metasched metasched-agent | sort -u), left $(left)"
dpkg -P metasched-agent metasched >/dev/null 2>&1
echo "purged: left $(left)$(ls -d /etc/metasched 2>/dev/null), kept $(ls /var/lib/metasched/metasched.db)"
"""
RPM = r"""
force=$(command -v dpkg >/dev/null && echo --force-debian || true)
rpm_() { rpm "$@" --nodeps $force /mnt/packages/metasched-*.rpm >/dev/null 2>&1; }
rpm_ -i
echo "after installing: $(systemctl is-active metasched), user $(id -un metasched)"
systemctl enable --quiet --now metasched
until_ answers
echo "started: daemon"
daemon=$(main metasched)
echo "# mine" >>/etc/metasched/metasched.toml
rpm_ -U --force
until_ other metasched "$daemon"; until_ answers
echo "upgraded: it runs again, $(systemctl is-enabled metasched), $(tail -n 1 /etc/metasched/metasched.toml)"
rpm -e metasched >/dev/null 2>&1
echo "removed: $(systemctl is-active metasched), left $(left), kept $(ls /var/lib/metasched/metasched.db)"
"""
#: What the names of packages end with: what they live through, and what is said of it.
LIVES = {
    "deb": (DEBIAN, """after installing: inactive
started: daemon and agent, samples arrive
killed: both run again
upgraded: both run again
stopped: success
removed: inactive, left /etc/metasched/agent.token /etc/metasched/agent.toml /etc/metasched/metasched.toml
purged: left , kept /var/lib/metasched/metasched.db
"""),
    "rpm": (RPM, """after installing: inactive, user metasched
started: daemon
upgraded: it runs again, enabled, # mine
removed: inactive, left /etc/metasched/metasched.toml.rpmsave, kept /var/lib/metasched/metasched.db
"""),
}  # fmt: skip


def why_not() -> str | None:
    """Why there can be no systemd of our own on this host; None where there can."""
    if os.geteuid():
        return "only root can make its namespaces"
    if not Path("/usr/lib/systemd/systemd").exists():
        return "systemd is not installed"
    return None if _cgroup() else "there is no cgroup2 here"


def _cgroup() -> Path | None:
    found = subprocess.run(["findmnt", "-nro", "TARGET", "-t", "cgroup2"], capture_output=True, text=True, check=False)
    return Path(found.stdout.splitlines()[0]) / f"metasched-{os.getpid()}" if found.stdout else None


def lives(packages: Path, kind: str) -> str:
    """What became of the services of the packages of one of :data:`LIVES` in a folder, line by line.

    Raises
    ------
    ChildProcessError : when one of the steps fails.
    TimeoutError : when they do not come to an end.
    """
    cgroup = _cgroup()
    assert cgroup is not None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for each in ("view", "told"):
            (folder / each).mkdir()
        (folder / "told" / "life").write_text(LIFE + LIVES[kind][0])
        cgroup.mkdir()
        words = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--uts", "--ipc", "--net", "--cgroup"]
        process = subprocess.Popen(
            [*words, "--propagation", "private", "bash", "-c", START, "start", folder, packages],
            preexec_fn=lambda: (cgroup / "cgroup.procs").write_text(str(os.getpid())), start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        try:
            return _told(process, folder / "told")
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            _remove(cgroup)


def _told(process: subprocess.Popen[bytes], told: Path) -> str:
    end = time.monotonic() + TIMEOUT
    while not (told / "end").exists():
        if process.poll() is not None:
            assert process.stderr is not None
            raise ChildProcessError(process.stderr.read().decode(errors="replace"))
        if time.monotonic() > end:
            raise TimeoutError(f"the services had not come to an end after {TIMEOUT:g} s")
        time.sleep(0.2)
    facts = (told / "facts").read_text()
    if "kept " not in facts:
        raise ChildProcessError(facts + (told / "errors").read_text())
    return facts


def _remove(cgroup: Path) -> None:
    for folder, _, _ in os.walk(cgroup, topdown=False):
        for _ in range(50):
            try:
                Path(folder).rmdir()
                break
            except OSError:  # its processes are about to be gone
                time.sleep(0.1)


def main() -> None:
    """Say what becomes of the services of the packages in a folder, and whether that is what is expected."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("packages", type=Path, help="folder with both packages, as `python -m tests.packages` keeps it")
    packages = parser.parse_args().packages.absolute()
    if why := why_not():
        print(f"not tried: {why}")
        return
    for kind, (_, expected) in LIVES.items():
        if not shutil.which({"deb": "dpkg"}.get(kind, kind)) or not [*packages.glob(f"*.{kind}")]:
            print(f"{kind}: not tried, there is none, or no tool for it")
            continue
        facts = lives(packages, kind)
        print(f"{kind}:\n{facts}", end="")
        if facts != expected:
            sys.exit(f"expected\n{expected}")


if __name__ == "__main__":
    main()
