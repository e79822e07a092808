"""One thread that writes: many small requests share a transaction, and each is answered once it is safely stored.

Thousands of loads a second come in batches of a few; a transaction for each would spend its time on the disk. Whatever
has come in while the last transaction was written makes up the next one.

While the database takes nothing, a request waits for it once, and is refused: whoever sent it sends it again.
Placements have been answered already, so they are kept and stored when the database takes them. It is tried again from
time to time, whether anything comes in or not.
"""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from metasched.advised_placements import AdvisedPlacement
from metasched.records import Load
from metasched.store.database.ended_records import EndedRecord
from metasched.store.database.leadership import write_again
from metasched.store.database.run_records import RecordedRun
from metasched.store.database.store import Store
from metasched.store.errors import StoreError
from monitors.recurring_faults import RecurringFaults

_log = logging.getLogger(__name__)

#: Batches at most that share a transaction.
MOST_TOGETHER = 512
#: Seconds from one transaction to the next for each batch in the last one, and at most: the more comes in, the more
#: shares the next one, since most of what a transaction of a few batches costs is the transaction.
APART, LONGEST_APART = 0.02, 0.1
#: While the database takes nothing: what has waited so long is refused with what is tried, not tried itself (s); where
#: nothing comes in, it is tried every so often (s); and so many batches of placements are kept, the newest.
PATIENCE, RETRY, KEPT = 1.0, 5.0, 10_000


@dataclass(frozen=True, slots=True, eq=False)
class _Item:
    """Rows of one kind, and who waits for them."""

    kind: str
    rows: Sequence[Any]
    done: Future[Any] = field(default_factory=Future)
    since: float = field(default_factory=time.monotonic)


class WriteQueue:
    """Stores loads, runs, placements and ended jobs in the order in which they were handed in, kind by kind.

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
        self._store = store
        self._store_rows: Mapping[str, Callable[[Sequence[Any]], object]] = {
            "loads": store.loads.add,
            "runs": store.runs.add_all,
            "placements": store.placements.add,
            "ended": store.ended.add,
        }
        self._fault: StoreError | None = None
        self._faults = RecurringFaults()
        self._kept: deque[_Item] = deque()
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
    def failing(self) -> bool:
        """Whether the database took nothing the last time; the log says why."""
        return self._fault is not None

    @property
    def waiting(self) -> int:
        """Batches that wait to be written, those included that are kept for a database that takes nothing."""
        return self._queue.qsize() + len(self._kept)

    def loads(self, loads: Sequence[Load]) -> Future[None]:
        """Store loads; the future is done once they are safe, or fails where they cannot be stored."""
        return self._hand_in("loads", loads)

    def runs(self, runs: Sequence[RecordedRun]) -> Future[frozenset[str]]:
        """Store runs; the future holds the uids of those that were not stored before."""
        return self._hand_in("runs", runs)

    def placements(self, advised: Sequence[AdvisedPlacement]) -> Future[None]:
        """Store placements; the future is done when they are safely in the database, which may be away until then."""
        self._unwritten.update((each.uid, each) for each in advised)
        done = self._hand_in("placements", advised)
        done.add_done_callback(lambda _: [self._unwritten.pop(each.uid, None) for each in advised])
        return done

    def placement(self, uid: str) -> AdvisedPlacement | None:
        """A placement that waits to be written; to be asked before the database is, which has it next."""
        return self._unwritten.get(uid)

    def placements_between(self, since: float, until: float) -> list[AdvisedPlacement]:
        """Placements made in [since, until) (s) that wait to be written; to be asked before the database is."""
        return [each for each in list(self._unwritten.values()) if since <= each.made_at < until]

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
        due, ending = -math.inf, False
        while not ending:
            try:
                first = self._queue.get(timeout=RETRY if self._fault is not None or self._kept else None)
            except Empty:
                self._try_again()
                continue
            time.sleep(max(0.0, due - time.monotonic()))
            together, ending = self._together(first)
            left = together
            for kind in self._store_rows:
                left = self._patient(left)
                self._write(kind, [item for item in left if item.kind == kind])
                left = [item for item in left if item.kind != kind]
            due = time.monotonic() + min(APART * len(together), LONGEST_APART)
        if self._kept:
            self._try_again()
        if self._kept:
            _log.error("%d batches of placements are lost: %s", len(self._kept), self._fault)

    def _together(self, first: _Item | None) -> tuple[list[_Item], bool]:
        """What is written next, in its order, and whether it is the last."""
        items, item = [*self._kept], first
        self._kept.clear()
        while item is not None:
            items.append(item)
            if len(items) >= MOST_TOGETHER or self._queue.empty():
                return items, False
            item = self._queue.get()
        return items, True

    def _try_again(self) -> None:
        """See whether the database takes anything, and then what was kept for it."""
        try:
            write_again(self._store.engine)
        except StoreError as error:
            self._refuse([], error)
        else:
            self._fault = None
            kept = [*self._kept]
            self._kept.clear()
            self._write("placements", kept)

    def _patient(self, items: list[_Item]) -> list[_Item]:
        """Those who have not waited too long; the others are refused, and placements kept if nobody else is left."""
        if self._fault is None:
            return items
        late = time.monotonic() - PATIENCE
        kept = ["placements"] if any(item.since > late for item in items) else []
        self._refuse([item for item in items if item.since <= late and item.kind not in kept], self._fault)
        return [item for item in items if item.since > late or item.kind in kept]

    def _write(self, kind: str, items: Sequence[_Item]) -> None:
        if kind == "ended" and self._kept and self._fault is not None:
            self._refuse(items, self._fault)  # An outcome is stored with its placement, so not before it.
            return
        if not items:
            return
        try:
            new = self._store_rows[kind]([row for item in items for row in item.rows])
        except StoreError as error:
            self._log(kind, len(items), error)
            self._refuse(items, error)
        except Exception as error:
            if len(items) > 1:
                for item in items:  # What is wrong with one is not the others' fault.
                    self._write(kind, [item])
                return
            self._log(kind, 1, error)
            items[0].done.set_exception(error)
        else:
            self._fault = None
            for item in items:
                if not isinstance(new, frozenset):
                    item.done.set_result(None)
                    continue
                own = new & {row.uid for row in item.rows}
                new -= own  # of several that hand in the same run, one has stored it
                item.done.set_result(own)

    def _refuse(self, items: Sequence[_Item], fault: StoreError) -> None:
        """Say to those who wait what is wrong with the database; keep what nobody sends again."""
        self._fault = fault
        for item in items:
            if item.kind != "placements":
                item.done.set_exception(fault)
                continue
            self._kept.append(item)
            if len(self._kept) > KEPT:
                self._kept.popleft().done.set_exception(fault)

    def _log(self, kind: str, batches: int, error: Exception) -> None:
        if self._faults.to_log(str(error)):
            _log.error("%d batches of %s were not stored, as any that follow: %s", batches, kind, error)
