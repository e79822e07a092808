"""One thread that writes: many small requests share a transaction, and each is answered once it is safely stored.

Thousands of loads a second come in batches of a few; a transaction for each would spend its time on the disk. Whatever
has come in while the last transaction was written makes up the next one.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Thread
from typing import Any

from metasched.advised_placements import AdvisedPlacement
from metasched.records import Load
from metasched.service.recurring_faults import RecurringFaults
from metasched.store.database.ended_records import EndedRecord
from metasched.store.database.run_records import RecordedRun
from metasched.store.database.store import Store
from metasched.store.errors import StoreError

_log = logging.getLogger(__name__)

#: Batches at most that share a transaction.
MOST_TOGETHER = 512
#: Seconds from one transaction to the next for each batch in the last one, and at most: the more comes in, the more
#: shares the next one, since most of what a transaction of a few batches costs is the transaction.
APART, LONGEST_APART = 0.02, 0.1


@dataclass(frozen=True, slots=True)
class _Item:
    """Rows of one kind, and who waits for them."""

    kind: str
    rows: Sequence[Any]
    done: Future[Any] = field(default_factory=Future)


class WriteQueue:
    """Stores loads, runs, placements and ended jobs in the order in which they were handed in, kind by kind.

    Attributes
    ----------
    failing : whether the database took nothing the last time; the log says why.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Store.open(pathlib.Path(folder.name, "metasched.db")) as store:
    ...     writer = WriteQueue(store)
    ...     writer.start()
    ...     writer.loads([Load(0.0, "n0", 0.5, 90.0)]).result()
    ...     writer.stop()
    ...     len(store.loads.all())
    1
    >>> folder.cleanup()
    """

    def __init__(self, store: Store) -> None:
        self._store_rows: Mapping[str, Callable[[Sequence[Any]], object]] = {
            "loads": store.loads.add,
            "runs": store.runs.add_all,
            "placements": store.placements.add,
            "ended": store.ended.add,
        }
        self.failing = False
        self._faults = RecurringFaults()
        self._unwritten: dict[str, AdvisedPlacement] = {}
        self._queue: SimpleQueue[_Item | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name="metasched-writer", daemon=True)

    def start(self) -> None:
        """Begin to write, in a thread of its own."""
        self._thread.start()

    def stop(self) -> None:
        """Write what is still waiting, and end."""
        self._queue.put(None)
        self._thread.join()

    @property
    def waiting(self) -> int:
        """Batches that wait to be written."""
        return self._queue.qsize()

    def loads(self, loads: Sequence[Load]) -> Future[None]:
        """Store loads; the future is done once they are safe, or fails where they cannot be stored."""
        return self._hand_in("loads", loads)

    def runs(self, runs: Sequence[RecordedRun]) -> Future[frozenset[str]]:
        """Store runs; the future holds the uids of those that were not stored before."""
        return self._hand_in("runs", runs)

    def placements(self, advised: Sequence[AdvisedPlacement]) -> Future[None]:
        """Store placements; the future is done when they are safely in the database."""
        self._unwritten.update((each.uid, each) for each in advised)
        done = self._hand_in("placements", advised)
        done.add_done_callback(lambda _: [self._unwritten.pop(each.uid, None) for each in advised])
        return done

    def placement(self, uid: str) -> AdvisedPlacement | None:
        """A placement that waits to be written; to be asked before the database is, which has it next."""
        return self._unwritten.get(uid)

    def ended(self, job: EndedRecord) -> Future[frozenset[str]]:
        """Store a job that has ended, with its placement's outcome; the future holds its uid unless it was known."""
        return self._hand_in("ended", [job])

    def _hand_in(self, kind: str, rows: Sequence[Any]) -> Future[Any]:
        item = _Item(kind, rows)
        # Rows are stored even where who waits for them has gone: a future that can be cancelled could not be answered.
        item.done.set_running_or_notify_cancel()
        self._queue.put(item)
        return item.done

    def _run(self) -> None:
        due = -math.inf
        while (first := self._queue.get()) is not None:
            time.sleep(max(0.0, due - time.monotonic()))
            items, ending = [first], False
            while len(items) < MOST_TOGETHER and not self._queue.empty():
                item = self._queue.get()
                if item is None:
                    ending = True
                    break
                items.append(item)
            for kind in self._store_rows:
                self._write(kind, [item for item in items if item.kind == kind])
            due = time.monotonic() + min(APART * len(items), LONGEST_APART)
            if ending:
                return

    def _write(self, kind: str, items: Sequence[_Item]) -> None:
        if not items:
            return
        try:
            new = self._store_rows[kind]([row for item in items for row in item.rows])
        except Exception as error:
            if len(items) > 1 and not isinstance(error, StoreError):
                for item in items:  # What is wrong with one is not the others' fault.
                    self._write(kind, [item])
                return
            self._note(kind, len(items), error)
            for item in items:
                item.done.set_exception(error)
        else:
            self.failing = False
            for item in items:
                if not isinstance(new, frozenset):
                    item.done.set_result(None)
                    continue
                own = new & {row.uid for row in item.rows}
                new -= own  # of several that hand in the same run, one has stored it
                item.done.set_result(own)

    def _note(self, kind: str, batches: int, error: Exception) -> None:
        self.failing = self.failing or isinstance(error, StoreError)
        if self._faults.to_log(str(error)):
            _log.error("%d batches of %s were not stored, as any that follow: %s", batches, kind, error)
