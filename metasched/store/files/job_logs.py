"""Job logs in files, packed or not: streamed, so that a log of any length costs the memory of its columns only."""

from __future__ import annotations

import csv
import gzip
import io
import os
import zlib
from collections.abc import Iterator
from pathlib import Path

from metasched.history.job_log import JobLog
from metasched.history.log_formats import read_log
from metasched.records import InputError
from metasched.store.files.whole_files import refusal

#: Longest valid line (bytes).
LONGEST_LINE = 1 << 20


def read_job_log(path: str | os.PathLike[str]) -> JobLog:
    """The jobs of a log in SWF, CSV or as sacct prints them, packed by gzip or not.

    Raises
    ------
    InputError : when there is no such file, it may not be read, is torn while packed, or holds no jobs.
    """
    try:
        with Path(path).open("rb") as file:
            packed = file.peek(2)[:2] == b"\x1f\x8b"  # no seeking: it may be a pipe
            return read_log(_lines(gzip.GzipFile(fileobj=file) if packed else file))
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"is not a whole gzip file ({error})", where=str(path)) from None
    except csv.Error as error:
        raise InputError(f"is not CSV ({error})", where=str(path)) from None
    except InputError as error:
        raise InputError(str(error), where=str(path)) from None
    except OSError as error:
        raise InputError(refusal(error), where=str(path)) from None


def _lines(stream: io.BufferedIOBase) -> Iterator[str]:
    while line := stream.readline(LONGEST_LINE):
        yield line.decode("utf-8", "replace")
