"""The lines of accounting logs: SWF, CSV, and what ``sacct`` prints; torn ones are counted and left out.

SWF is the Standard Workload Format of the Parallel Workloads Archive (Feitelson, Tsafrir & Krakov, "Experience with
using the Parallel Workloads Archive", 2014, Section 2): 18 numbers a job, -1 where one is not known.
"""

from __future__ import annotations

import csv
import math
import re
from array import array
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain

import numpy as np

from metasched.history.argument_numbers import in_arguments, in_sbatch
from metasched.history.job_log import (
    AT_LIMIT,
    CANCELLED,
    COMPLETED,
    FAILED,
    LABELS,
    TIMEOUT,
    JobLog,
    digest_of,
    job_key,
)
from metasched.records import InputError
from metasched.slurm_times import span

#: Numbers beyond these are torn or made up: seconds since 1970, seconds of a run, processors.
LATEST, LONGEST, MOST_PROCESSORS = 1e11, 1e9, 10_000_000
#: Longest name that is distinguished from others.
LONGEST_NAME = 1000
#: Longest state: there are arrays of states, in which each takes as much memory as the longest.
LONGEST_STATE = 40
#: Longest row whose cells hold line breaks (characters).
LONGEST_ROW = 100_000
#: Names of the columns in CSV files, as other programs write them.
OTHER_NAMES = {"job_id": "job", "jobid": "job", "submit": "submit_time", "runtime": "run_time", "cpus": "processors",
               "wait_time": "wait", "job_name": "name", "queue": "partition", "group": "account", "timelimit":
               "requested_time", "nodes_allocated": "nodes", "args": "arguments"}  # fmt: skip
REQUIRED = ("submit_time", "run_time", "processors")
#: What programs write in a CSV file where a number is not known, or there is none: Python, R, SQL, spreadsheets, Slurm.
UNKNOWN = ("", "none", "na", "null", "n/a", "unlimited", "infinite", "partition_limit")

TORN = "torn or unreadable"
NOT_RUN = "never ran"
PARTIAL = "listed in part, as a whole elsewhere"
NO_PROCESSORS = "without processors"
DOUBLE = "listed twice"
CLOCK = "submitted before the job above (clock went back; sorted)"
ZERO = "with a run time of 0 (kept)"
OVERRUN = "with a request below the run time (kept)"
NO_REQUEST = "without a request (kept)"
RUNNING = "not ended yet"
#: States of jobs that have not ended, and of those of which accounting has a record for each part.
ONGOING = frozenset({"RUNNING", "PENDING", "SUSPENDED", "CONFIGURING", "COMPLETING"})
IN_PARTS = frozenset({"REQUEUED", "RESIZING", "REVOKED"})
#: What the queue and epilogs know by another number, so that it is stored a second time where they report it.
UNNUMBERED = "of arrays or heterogeneous jobs, without JobIDRaw, by which a daemon knows them (kept)"
TELESCOPED = "with a separator in the name (mended)"


@dataclass(slots=True)
class Columns:
    """The columns of a log while it is read; a row costs some hundred bytes.

    Parameters
    ----------
    wrong : how often each defect was met.
    capacity : processors of the cluster, 0 if the log does not state them.
    unread : the first cell that could not be read, to be named where no job could.

    >>> columns = Columns()
    >>> columns.add("1", 0.0, 60.0, 4, 300.0, {"user": "ada"})
    True
    >>> columns.add("2", 9.0, 30.0, 4, math.nan, {"user": "bob"})
    True
    >>> log = columns.log()
    >>> log.labels["user"].tolist(), dict(log.wrong)
    ([0, 1], {'without a request (kept)': 1})
    """

    wrong: Counter[str] = field(default_factory=Counter)
    capacity: int = 0
    unread: str = ""
    _numbers: array[float] = field(default_factory=lambda: array("d"))
    _codes: array[int] = field(default_factory=lambda: array("q"))
    _names: dict[str, dict[str, int]] = field(default_factory=lambda: {name: {} for name in LABELS})
    _keys: array[int] = field(default_factory=lambda: array("q"))
    _seen: set[int] = field(default_factory=set)
    _alike: Counter[int] = field(default_factory=Counter)

    def add(
        self, job: str, submit: float, run: float, processors: float, request: float, labels: Mapping[str, str],
        wait: float = math.nan,
    ) -> bool:  # fmt: skip
        """Add a job, or count its defect.

        Parameters
        ----------
        job : its number, empty where there is none; a job is listed twice where number, submission and start agree.
        submit, run, request, wait : seconds, as in :class:`JobLog`; not a number, or below 0, where not known.
        processors : likewise.
        labels : its names, and its state as Slurm spells it.

        Returns
        -------
        Whether it was added.
        """
        state, known = labels.get("state", ""), 0 <= wait <= LONGEST
        if state in ONGOING:
            self.wrong[RUNNING] += 1
        elif state in IN_PARTS:
            self.wrong[PARTIAL] += 1
        elif not abs(submit) <= LATEST or run > LONGEST or processors > MOST_PROCESSORS:
            self.wrong[TORN] += 1
        elif not run >= 0 or (run == 0 and state == CANCELLED):  # it was cancelled while it waited
            self.wrong[NOT_RUN] += 1
        elif not processors >= 1 or processors != int(processors):
            self.wrong[NO_PROCESSORS] += 1
        else:
            if job:
                key = job_key(job, submit + wait if known else submit)
                if key in self._seen:
                    self.wrong[DOUBLE] += 1
                    return False
                self._seen.add(key)
            else:  # the second of two that are alike is another job, the same whenever the log is read
                named = sorted((label, name) for label, name in labels.items() if label != "numbers")
                alike = digest_of(f"{submit} {run} {processors} {request} {wait} {named}")
                self._alike[alike] += 1
                key = digest_of(f"{alike} {self._alike[alike]}")
            self._keys.append(key)
            limit = request if 0 < request <= LONGEST else math.nan
            self._numbers.extend((submit, run, processors, limit, wait if known else math.nan))
            for label, names in self._names.items():
                name = labels.get(label, "")
                self._codes.append(names.setdefault(name[:LONGEST_NAME], len(names)) if name else -1)
            return True
        return False

    def log(self) -> JobLog:
        """The jobs in the order they were submitted.

        Raises
        ------
        InputError : when there is none.
        """
        if not self._numbers:
            said = "; ".join(f"{count} {reason}" for reason, count in self.wrong.items())
            said += f", {self.unread}" if self.unread else ""
            raise InputError(f"holds no job that ran{f' ({said})' if said else ''}, expected some")
        numbers = np.frombuffer(self._numbers, dtype=np.float64).reshape(-1, 5)
        codes = np.frombuffer(self._codes, dtype=np.int64).reshape(-1, len(LABELS))
        wrong = Counter(self.wrong)
        wrong[CLOCK] = int((np.diff(numbers[:, 0]) < 0).sum())
        wrong[ZERO] = int((numbers[:, 1] == 0).sum())
        wrong[OVERRUN] = int((numbers[:, 1] > numbers[:, 3]).sum())
        wrong[NO_REQUEST] = int(np.isnan(numbers[:, 3]).sum())
        order = np.argsort(numbers[:, 0], kind="stable")
        numbers, codes, keys = numbers[order], codes[order], np.frombuffer(self._keys, dtype=np.int64)[order]
        return JobLog(
            numbers[:, 0].copy(), numbers[:, 1].copy(), numbers[:, 2].astype(np.int64), numbers[:, 3].copy(),
            numbers[:, 4].copy(),
            {name: codes[:, place].copy() for place, name in enumerate(LABELS) if self._names[name]},
            self.capacity, {reason: count for reason, count in wrong.items() if count},
            {label: tuple(names) for label, names in self._names.items() if names}, keys,
        )  # fmt: skip


def read_log(lines: Iterable[str]) -> JobLog:
    """The jobs of a log, whichever of the three formats its first line is of.

    Parameters
    ----------
    lines : of the file, with or without their ends.

    Raises
    ------
    InputError : when the first line is of no format, a column is missing, or no job ran.

    Examples
    --------
    >>> log = read_log(["submit_time,run_time,processors,requested_time,user", "0,60,4,300,ada", "1,6", "7,20,1,,bob"])
    >>> log.run_time.tolist(), dict(log.wrong)
    ([60.0, 20.0], {'torn or unreadable': 1, 'without a request (kept)': 1})
    """
    rest = iter(lines)
    first = next((line for line in rest if line.strip()), "").lstrip("\ufeff")
    if "\0" in first:
        raise InputError("holds NUL bytes, expected text in UTF-8, not in UTF-16", where="row 1")
    columns = Columns()
    if first.startswith(";") or re.fullmatch(r"\s*-?\d+(\s+\S+){4,}\s*", first):
        _read_swf(columns, first, rest)
    elif "|" in first:
        found = re.match(r"\w+(\|\d+\|)", first, re.ASCII)
        _read_sacct(columns, first, found[1] if found else "|", rest)
    elif "," in first:
        _read_csv(columns, next(csv.reader([first])), rest)
    else:
        begins = f"begins with {first.strip()[:60]!r}" if first.strip() else "is empty"
        raise InputError(f"{begins}, expected SWF, CSV with a header, or output of sacct -P")
    return columns.log()


#: How a job ended, by the status of SWF; -1 means unknown. It has none for those that were ended by their limits.
SWF_STATES = {0: FAILED, 1: COMPLETED, 5: CANCELLED}


def _read_swf(columns: Columns, first: str, rest: Iterator[str]) -> None:
    labels = {11: "user", 12: "account", 13: "executable", 14: "qos", 15: "partition"}
    began = 0.0  # seconds since 1970, from which the times of jobs count
    for line in chain([first], rest):
        if line.startswith(";"):
            if found := re.match(r";\s*UnixStartTime:\s*(\d{1,10})\b", line):
                began = float(found[1])
            found = re.match(r";\s*Max(Procs|Nodes):\s*(\d{1,9})\b", line)
            if found and (found[1] == "Procs" or not columns.capacity):
                columns.capacity = int(found[2])
            continue
        cells = line.split(None, 18)
        if not cells:
            continue
        try:
            submit, wait, run, used, request = (float(cells[place]) for place in (1, 2, 3, 4, 8))
            asked, status = float(cells[7]), float(cells[10])
        except (ValueError, IndexError):
            columns.wrong[TORN] += 1
            continue
        if status in (2, 3, 4):
            columns.wrong[PARTIAL] += 1
            continue
        names = {label: cells[place] for place, label in labels.items() if len(cells) > place and cells[place] != "-1"}
        if status in SWF_STATES:
            state = SWF_STATES[int(status)]
            cut = state != COMPLETED and 0 < AT_LIMIT * request <= run
            names["state"] = TIMEOUT if cut else state
        columns.add(cells[0], began + submit, run, used if used > 0 else asked, request, names, wait)


def _read_csv(columns: Columns, header: Sequence[str], rest: Iterator[str]) -> None:
    names = [OTHER_NAMES.get(name.strip().lower(), name.strip().lower()) for name in header]
    if missing := [name for name in REQUIRED if name not in names]:
        raise InputError(f"column{'s' if len(missing) > 1 else ''} {', '.join(missing)} missing", where="row 1")
    if twice := [name for name in names if names.count(name) > 1]:
        raise InputError(f"column {twice[0]} is given twice", where="row 1")
    place = {name: names.index(name) for name in names}
    submit, run, processors = (place[name] for name in REQUIRED)
    request, wait, job = (place.get(name, -1) for name in ("requested_time", "wait", "job"))
    labels = [(label, place[label]) for label in LABELS if label in place and label != "numbers"]
    arguments = place.get("arguments", -1)
    for cells in _rows_of_csv(rest, len(names), columns.wrong):
        try:
            columns.add(
                cells[job].strip() if job >= 0 else "", _moment(cells[submit]), _seconds(cells[run]),
                _number(cells[processors]), _seconds(cells[request]) if request >= 0 else math.nan,
                _with_state({label: cells[where].strip() for label, where in labels})
                | ({"numbers": in_arguments(cells[arguments])} if arguments >= 0 else {}),
                _seconds(cells[wait]) if wait >= 0 else math.nan,
            )  # fmt: skip
        except ValueError as error:
            columns.wrong[TORN] += 1
            columns.unread = columns.unread or str(error)


def _rows_of_csv(lines: Iterator[str], size: int, wrong: Counter[str]) -> Iterator[list[str]]:
    """The cells of each row: a line break in quotes belongs to its cell, quotes that never end tear one line only."""
    unread: deque[str] = deque()

    def following() -> str | None:
        return unread.popleft() if unread else next(lines, None)

    while (line := following()) is not None:
        if '"' not in line:
            cells = line.rstrip("\r\n").split(",")
            if len(cells) == size:
                yield cells
            elif cells != [""]:
                wrong[TORN] += 1
            continue
        row, length, quotes = [line], len(line), line.count('"')
        found = _unquoted(line, size)
        while found is None and quotes % 2 and length <= LONGEST_ROW and (more := following()) is not None:
            row.append(more)
            length += len(more)
            quotes += more.count('"')
            if quotes % 2 == 0:
                found = _unquoted("\n".join(row), size)
        if found is None:
            wrong[TORN] += 1
            unread.extendleft(reversed(row[1:]))
        else:
            yield found


def _unquoted(row: str, size: int) -> list[str] | None:
    """The cells of a row in which there are quotes; None if it is no row of so many cells."""
    try:
        cells = next(csv.reader([row], strict=True), [])
    except csv.Error:
        return None
    return [_in_one_line(cell) for cell in cells] if len(cells) == size else None


#: Columns of sacct that are read, by what they tell, the first that is there.
SACCT = {
    "job": ("JobIDRaw", "JobID"), "submit": ("Submit",), "eligible": ("Eligible",), "start": ("Start",),
    "end": ("End",),
    "run": ("ElapsedRaw", "Elapsed"), "processors": ("AllocCPUS", "NCPUS", "ReqCPUS"),
    "request": ("TimelimitRaw", "Timelimit"), "state": ("State",), "user": ("User",), "account": ("Account",),
    "name": ("JobName",), "partition": ("Partition",), "qos": ("QOS",), "line": ("SubmitLine",),
}  # fmt: skip


def _read_sacct(columns: Columns, head: str, separator: str, rest: Iterator[str]) -> None:
    names = [name.strip() for name in head.rstrip("\r\n").split(separator)]
    place = {
        what: names.index(found) for what, known in SACCT.items()
        if (found := next((name for name in known if name in names), None)) is not None
    }  # fmt: skip
    if missing := [SACCT[what][0] for what in ("job", "submit", "start", "processors") if what not in place]:
        raise InputError(f"column{'s' if len(missing) > 1 else ''} {', '.join(missing)} missing", where="row 1")
    if "run" not in place and "end" not in place:
        raise InputError("columns ElapsedRaw and End missing, expected one", where="row 1")
    raw = names[place["job"]] == "JobIDRaw"
    in_seconds = "run" in place and names[place["run"]] == "ElapsedRaw"
    if separator == "|":
        loose = -1 if "line" in place else place.get("name", -1)  # which of the two holds separators is unknown
        rows = _lines_of_cells(rest, len(names), loose, columns.wrong)
    else:
        rows = _rows_of_cells(rest, separator, len(names), columns.wrong)
    for cells in rows:
        fields = {what: cells[where].strip() for what, where in place.items()}
        if "." in fields["job"]:
            continue  # a step of a job
        submit, eligible, start, end = (clock(fields.get(what, "")) for what in ("submit", "eligible", "start", "end"))
        if eligible > submit:  # what waits for another job, or for its time, does not wait for processors
            submit = eligible
        if start < submit:  # the clock was set back: it is known by its start, as the queue and epilogs tell it
            submit = start
        run = (clock if in_seconds else _spanned)(fields["run"]) if "run" in fields else end - start
        cpus = fields["processors"]
        labels = {label: fields[label] for label in LABELS if label in fields}
        labels["numbers"] = in_sbatch(fields.get("line", ""))
        added = columns.add(
            fields["job"], submit, math.nan if math.isnan(start) else run,
            float(cpus) if cpus.isdecimal() and cpus.isascii() else math.inf, _spanned(fields.get("request", "")),
            _with_state(labels), start - submit,
        )  # fmt: skip
        if added and not raw and not fields["job"].isdecimal():
            columns.wrong[UNNUMBERED] += 1


def _lines_of_cells(lines: Iterable[str], size: int, loose: int, wrong: Counter[str]) -> Iterator[list[str]]:
    """The cells of each line; the name, at place ``loose``, may hold separators, but no line breaks."""
    for line in lines:
        cells = line.rstrip("\r\n").split("|")
        if cells == [""]:
            continue
        more = len(cells) - size
        if more == 1 and not cells[-1]:  # sacct -p ends each row with a separator
            cells.pop()
        elif more > 0 and loose >= 0:
            cells[loose : loose + more + 1] = ["|".join(cells[loose : loose + more + 1])]
            wrong[TELESCOPED] += 1
        if len(cells) == size:
            yield cells
        else:
            wrong[TORN] += 1


def _rows_of_cells(lines: Iterable[str], separator: str, size: int, wrong: Counter[str]) -> Iterator[list[str]]:
    """The cells of each row, with a separator that no user foresaw: a line break in a cell belongs to it."""
    begun = ""
    for line in lines:
        row = (begun + line.rstrip("\r\n")).split(separator)
        if begun and len(row) > size:  # what had begun was torn
            wrong[TORN] += 1
            row = line.rstrip("\r\n").split(separator)
        begun = ""
        if len(row) == size:
            yield [_in_one_line(cell) for cell in row]
        elif 1 < len(row) < size and sum(map(len, row)) <= LONGEST_ROW:
            begun = separator.join(row) + "\n"
        elif row != [""]:
            wrong[TORN] += 1
    if begun:
        wrong[TORN] += 1


def clock(text: str) -> float:
    """A time as sacct prints it, in seconds since 1970 or as an ISO date of this host's zone; not a number for none.

    >>> clock("86400"), clock("1970-01-02T01:00:00+01:00"), clock("Unknown")
    (86400.0, 86400.0, nan)
    """
    if text.isdecimal() and text.isascii():
        return float(text)
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        return math.nan


def _state(text: str) -> str:
    """The state without its details: ``CANCELLED`` of ``CANCELLED by 1000``."""
    return text.partition(" ")[0].rstrip("+").upper()[:LONGEST_STATE]


def _with_state(labels: dict[str, str]) -> dict[str, str]:
    if "state" in labels:
        labels["state"] = _state(labels["state"])
    return labels


def _spanned(text: str) -> float:
    """A duration in seconds; NaN if it is empty."""
    return math.nan if (found := span(text)) is None else found


def _in_one_line(cell: str) -> str:
    return " ".join(cell.split()) if "\n" in cell else cell


def _number(text: str) -> float:
    """The number in a cell, not a number where none is known; ValueError where it is something else."""
    try:
        return float(text)
    except ValueError:
        if text.strip().lower() in UNKNOWN:
            return math.nan
        raise ValueError(f"such as {text.strip()[:40]!r} for a number") from None


def _seconds(text: str) -> float:
    """The seconds in a cell, also if they are written as a span like 1-12:00:00; otherwise as :func:`_number`."""
    found = span(text) if ":" in text else None
    return _number(text) if found is None else found


def _moment(text: str) -> float:
    """The time in a cell, in seconds or as an ISO date (:func:`clock`); ValueError where it is neither."""
    try:
        return float(text)
    except ValueError:
        if math.isnan(found := clock(text.strip())):
            raise ValueError(f"such as {text.strip()[:40]!r} for seconds or an ISO date") from None
        return found
