"""What the hooks of all schedulers share: their settings, asking the daemon, and telling it of jobs that have ended.

Lies beside the hooks of a scheduler. Needs nothing but the standard library of any Python from 3.6 on.
"""

import fcntl
import json
import os
import re
import socket
import stat
import sys
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

#: How long the daemon may take in all to take jobs (s), and how many jobs one epilog tells of.
PATIENCE, MOST = 5.0, 50
#: The deadline where hooks.conf sets none above 0, and the longest that is taken from it, well below any scheduler's
#: own patience with its hooks (s).
DEADLINE, LONGEST = 0.2, 2.0
#: Statuses that say that a job itself cannot be taken, whenever it is sent. All others may be different tomorrow.
REFUSED = (400, 413, 422)
#: Bytes of a script that count, and of an answer that are read.
MOST_SCRIPT, MOST_ANSWER = 65536, 262144
#: Bytes of a comment that are sent, and of a report, of which a comment and the names of nodes are the longest parts.
MOST_COMMENT, MOST_REPORT = 65536, 1048576


def settings(here: Path, name: str = "hooks.conf") -> Dict[str, str]:
    """What hooks.conf in a folder says, or another file of its form.

    Its lines are ``key = value``. Blanks around both do not count; of a key that is given twice the last counts; a line
    that begins with # is a comment, and a # further on belongs to the value. All hooks, and the doctor, read it so.
    """
    found = {"address": "127.0.0.1:8765", "state": "/var/lib/metasched/hooks", "off": str(here / "metasched.off")}
    with suppress(OSError):
        for line in (here / name).read_bytes().split(b"\n"):
            key, equals, value = (part.strip().decode("utf-8", "surrogateescape") for part in line.partition(b"="))
            if equals and not key.startswith("#"):
                found[key] = value
    return found


def number(text: str) -> float:
    """The number that a text holds, as all hooks and the daemon read one.

    Raises
    ------
    ValueError
        Where it is none: Python alone would read 1_000, and digits of all scripts.
    """
    if not re.match(r"[0-9.eE+-]+\Z", text):
        raise ValueError("{!r} is no number".format(text))
    return float(text)


def plain(name: bytes) -> str:
    """A job's name as all hooks tell it."""
    return "".join(chr(byte) if 32 <= byte < 127 else "?" for byte in name[:255])


def digest(text: bytes) -> str:
    """What a script is known by: hooks and daemon compute the same."""
    value = 0
    for byte in text[:MOST_SCRIPT]:
        value = (value * 257 + byte + 1) % 17592186044399
    return "{:x}-{:x}".format(len(text), value) if text else ""


def authorized(found: Dict[str, str]) -> Dict[str, str]:
    """The headers of a request."""
    headers = {"Content-Type": "application/json"}
    if "token_file" in found:
        headers["Authorization"] = "Bearer " + Path(found["token_file"]).read_text().strip()
    return headers


def ask(found: Dict[str, str], path: str, document: Any, ends: float) -> Any:
    """Post a document to the daemon, or get what it has where there is none, and return its answer, a JSON document.

    Parameters
    ----------
    found : what hooks.conf says.
    path, document : what is asked.
    ends : when the time is over for all of it, by the monotonic clock (s).

    Raises
    ------
    OSError, ValueError
        When there is no such answer in time, or it is longer than is read.
    """
    status, answer = exchange(found, path, None if document is None else json.dumps(document).encode(), ends)
    if status != 200:
        raise ValueError("the daemon answers {}".format(status))
    return json.loads(answer.decode())


def exchange(found: Dict[str, str], path: str, body: Optional[bytes], ends: float) -> Tuple[int, bytes]:
    """Post a body to the daemon, or get a path where there is none; the status and the body of its answer.

    Parameters and errors are those of :func:`ask`.
    """
    headers = dict(authorized(found), Host="metasched", Connection="close")
    headers["Content-Length"] = str(len(body or b""))
    lines = ["{} {} HTTP/1.0".format("GET" if body is None else "POST", path)]
    lines += ["{}: {}".format(*each) for each in headers.items()]
    request = "\r\n".join([*lines, "", ""]).encode() + (body or b"")
    with _connected(found, ends) as connection:
        connection.settimeout(_left(ends))
        connection.sendall(request)
        received = b""
        while not _whole(received):
            # The time that is left of the whole, so that single bytes do not start it again.
            connection.settimeout(_left(ends))
            part = connection.recv(65536)
            if not part:
                break
            received += part
            if len(received) > MOST_ANSWER:
                raise ValueError("the answer is too long")
    head, ended, answer = received.partition(b"\r\n\r\n")
    status = re.match(rb"HTTP/1\.\d (\d{3})\s", head + b"\r\n")
    if not ended or not status:
        raise ValueError("the daemon answers {!r}".format(head[:60]))
    return int(status.group(1)), answer


def _connected(found: Dict[str, str], ends: float) -> socket.socket:
    if "socket" not in found:
        return socket.create_connection(_host_and_port(found), _left(ends))
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(_left(ends))
        connection.connect(found["socket"])
    except BaseException:
        connection.close()
        raise
    return connection


def _host_and_port(found: Dict[str, str]) -> Tuple[str, int]:
    host, _, port = found["address"].rpartition(":")
    return host, int(port)


def _left(ends: float) -> float:
    left = ends - time.monotonic()
    if left <= 0:
        raise OSError("no answer in time")
    return left


def _whole(received: bytes) -> bool:
    """Whether all that the answer's header promises has come."""
    head, found, body = received.partition(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n") if found else ():
        name, _, value = line.partition(b":")
        if name == b"content-length" and value.strip().isdigit():
            return len(body) >= int(value.strip()[:12])
    return False


def check(found: Dict[str, str]) -> None:
    """Raise an error where jobs could not be kept, or not be sent to the daemon."""
    trial = Path(found["state"]) / "check.{}".format(os.getpid())
    trial.write_text("")
    trial.unlink()
    reach(found)


def reach(found: Dict[str, str]) -> None:
    """Raise an error where the daemon does not answer, or would not answer what hooks ask."""
    status, text = exchange(found, "/v1/health", None, time.monotonic() + PATIENCE)
    if status != 200:
        raise OSError("the daemon answers {}".format(status))
    role = json.loads(text.decode() or "{}").get("role", "scheduler")  # a daemon of an earlier version says nothing
    if role not in ("scheduler", "admin"):
        how = "put this user into the daemon's group" if "socket" in found else "make such a token"
        raise OSError("the daemon takes this for a {}, expected a scheduler: {}".format(role or "stranger", how))


#: The report of a job, or the file in which it is kept.
Kept = Union[Path, bytes]


def tell(found: Dict[str, str], waiting: Sequence[Kept]) -> None:
    """Tell the daemon of jobs, in their order, until it does not answer or the time is over.

    A job that it cannot take now is kept and goes to the end of the queue: it holds up no other, nor does a file that
    cannot be read.
    """
    over, sent = time.monotonic() + PATIENCE, 0
    for each in waiting:
        with ExitStack() as held:
            report = each if isinstance(each, bytes) else _report(each, held)
            if report is None:
                continue
            status = 0
            try:
                status = send(found, report)
            finally:
                _settle(each, status)
        sent += 1
        if sent == MOST or time.monotonic() > over:
            return


def _settle(kept: Kept, status: int) -> None:
    """Remove a job's file if it was taken, put it aside if it was refused, else let it be the last one next time."""
    if isinstance(kept, Path):
        with suppress(FileNotFoundError):
            if status == 200:
                kept.unlink()
            elif status in REFUSED:
                kept.rename(kept.with_suffix(".refused"))
            else:
                os.utime(str(kept))


def send(found: Dict[str, str], report: bytes) -> int:
    """Tell the daemon of one job; the status of its answer."""
    return exchange(found, "/v1/jobs", report, time.monotonic() + PATIENCE)[0]


def _report(path: Path, held: ExitStack) -> Optional[bytes]:
    """What a file of a job says; None where it cannot be read, or another epilog sends it or has sent it.

    As long as it is held no other sends it: of many that run at once each would send the jobs of all.
    """
    try:
        if path.stat().st_size > MOST_REPORT:
            path.rename(path.with_suffix(".refused"))
            return None
        file = held.enter_context(path.open("rb"))
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        except OSError:  # of a file system without locks: better sent twice than never
            pass
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        print("metasched: {}".format(error), file=sys.stderr)
        return None


def keep(found: Dict[str, str], job: Optional[Dict[str, Any]]) -> List[Kept]:
    """Keep a job that has ended in a file; the files of all jobs that are kept, oldest first.

    Where it cannot be kept, as on a full disk, its report comes before them.
    """
    state, unkept = Path(found["state"]), []  # type: Tuple[Path, List[Kept]]
    if job is not None and "metasched:off" not in str(job["comment"]):
        path = state / "ended.{}.{}.json".format(job["job"], job["start"])
        fresh = path.with_suffix(".{}.new".format(os.getpid()))  # its own: another epilog of the job may run as well
        try:
            if not path.exists():  # else the epilog has run before, and knew the end better
                _put(fresh, json.dumps(job))
                fresh.rename(path)
                _flush(str(state))
        except OSError as error:
            print("metasched: {}".format(error), file=sys.stderr)
            with suppress(OSError):
                fresh.unlink()
            unkept.append(json.dumps(job).encode())
    _recover(state)
    kept = []
    for path in state.glob("ended.*.json"):
        with suppress(OSError):
            there = path.stat()
            if stat.S_ISREG(there.st_mode):
                kept.append((there.st_mtime, path))
    return unkept + [path for _, path in sorted(kept)]


def _recover(state: Path) -> None:
    """Keep what an epilog had written that was killed before it gave the file its name; what it had begun goes."""
    for fresh in state.glob("ended.*.new"):
        with suppress(OSError):
            if time.time() - fresh.stat().st_mtime < 60.0:  # it may be at work
                continue
            path = fresh.with_suffix("").with_suffix(".json")
            with suppress(ValueError):
                json.loads(fresh.read_bytes().decode())
                if not path.exists():  # else the epilog has run again
                    fresh.rename(path)
                    continue
            fresh.unlink()


def _put(path: Path, text: str) -> None:
    """Write a file that a failure of the machine leaves as a whole once it has another name."""
    with path.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _flush(folder: str) -> None:
    """Let a failure of the machine leave the names in a folder as they are."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


#: What a thread that is waited for came to: results, and what went wrong.
Outcome = Tuple[List[Any], List[str]]


def begin(work: Callable[[], Any]) -> Tuple[threading.Thread, Outcome]:
    """Begin some work in a thread, to be waited for no longer than there is time: names are looked up without end."""
    results = []  # type: List[Any]
    wrong = []  # type: List[str]

    def run() -> None:
        try:
            results.append(work())
        except Exception as error:
            wrong.append(str(error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, (results, wrong)


def deadline_of(found: Dict[str, str]) -> float:
    """How long a scheduler is kept waiting at most (s)."""
    try:
        deadline = number(found.get("deadline", ""))
    except ValueError:
        deadline = 0.0
    return min(deadline, LONGEST) if deadline > 0 else DEADLINE


#: Tells of the job that has ended, None where there is none: given the folder of kept jobs, the settings and the time.
Ended = Callable[[Path, Dict[str, str], float], Optional[Dict[str, Any]]]


def host_loads(here: Path, name: str = "hooks.conf") -> Dict[str, float]:
    """What the agent of this host measured last: available_cpu and available_bandwidth (Mbit/s), each if it is known.

    Nothing is known where the agent does not answer in time, or its sample is too old.

    Parameters
    ----------
    here, name : folder and name of the file that says where the agent listens.
    """
    found = settings(here, name)

    def asked() -> Dict[str, float]:
        sample = ask(found, "/sample", None, time.monotonic() + deadline_of(found))
        if not abs(time.time() - float(sample["time"])) <= number(found.get("oldest", "120")):
            return {}
        most = {"available_cpu": 1.0, "available_bandwidth": 1e9}
        return {key: float(sample[key]) for key in most if _within(sample.get(key), most[key])}

    thread, (results, wrong) = begin(asked)
    thread.join(deadline_of(found) + 0.1)
    if wrong or not results:
        print("metasched: {}".format(" ".join(wrong) or "no answer in time"), file=sys.stderr)
    return results[0] if results else {}


def _within(value: Any, most: float) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= most


def epilog(here: Path, ended: Ended, forget: Callable[[Path], None] = lambda state: None) -> None:
    """Keep the job that has ended, then tell of all that are kept; ``--tell`` and ``--check`` do one of it.

    A scheduler that is restarted kills the epilogs that run, and runs them again: what was noted of the job in the
    folder of kept jobs is forgotten, by ``forget``, only when the job is kept.
    """
    now, found = time.time(), settings(here)
    if sys.argv[1:] == ["--check"]:
        check(found)
        return
    off, state = os.path.exists(found["off"]), Path(found["state"])
    telling = sys.argv[1:] == ["--tell"]
    kept = [] if off else keep(found, None if telling else ended(state, found, now))
    if not telling:  # Also where the hooks are off: what was noted must not be left to a later job of its number.
        forget(state)
    tell(found, kept)


def run(main: Callable[[], None], status: int = 0) -> None:
    """Run a hook, and leave with a status where it fails: by default with 0, since most must never fail.

    With ``--check`` that is 1.
    """
    try:
        main()
    except Exception as error:
        print("metasched: {}".format(error), file=sys.stderr)
        sys.exit(1 if sys.argv[1:] == ["--check"] else status)


if __name__ == "__main__":  # with --check, for hooks that have no such option themselves
    run(lambda: reach(settings(Path(__file__).resolve().parent)))
