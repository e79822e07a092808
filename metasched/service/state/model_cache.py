"""The predictors in memory: read from the database when first asked for, and dropped when long unused."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from threading import RLock

from metasched.predictors.contract import Saved

Key = tuple[str, str]


class ModelCache(Mapping[Key, Saved]):
    """All predictors by application and platform, of which only so many are in memory.

    A site has thousands of applications, of which few are in use: reading all of them would take the start of a daemon
    half a minute, and a gigabyte.

    Parameters
    ----------
    read : reads a predictor that is not in memory; None where it is not sound, after which there is none. What it
        raises reaches whoever asks, and the predictor is read again when it is asked for again.
    holds : whether a predictor differs from what can be read, so that it must not be dropped.
    most : predictors that are in memory at most, where none of them is held.

    Examples
    --------
    >>> from metasched.predictors.robust.predictor import RobustPredictor
    >>> cache = ModelCache(lambda key: RobustPredictor(*key), lambda key: False, most=1)
    >>> cache.know([("cg", "east"), ("cg", "west")])
    >>> cache["cg", "east"].name, cache["cg", "west"].name, len(cache), cache.full
    ('robust', 'robust', 2, True)
    """

    def __init__(self, read: Callable[[Key], Saved | None], holds: Callable[[Key], bool], *, most: int = 2000) -> None:
        self._read, self._holds, self._most = read, holds, most
        self._platforms: dict[str, set[str]] = {}
        #: Those in memory, the one unused longest first.
        self._loaded: OrderedDict[Key, Saved] = OrderedDict()
        self._lock = RLock()

    def know(self, keys: Iterable[Key]) -> None:
        """Take up predictors that can be read, or that can be read again."""
        with self._lock:
            for key in keys:
                self._platforms.setdefault(key[0], set()).add(key[1])
                if not self._holds(key):
                    self._loaded.pop(key, None)

    def __getitem__(self, key: Key) -> Saved:
        with self._lock:
            found = self._loaded.get(key)
            if found is None:
                if key not in self:
                    raise KeyError(key)
                found = self._read(key)
                if found is None:
                    self.pop(key)
                    raise KeyError(key)
                self[key] = found
            else:
                self._loaded.move_to_end(key)
            return found

    def __setitem__(self, key: Key, predictor: Saved) -> None:
        with self._lock:
            self._platforms.setdefault(key[0], set()).add(key[1])
            self._loaded[key] = predictor
            self._loaded.move_to_end(key)
            self._drop()

    def pop(self, key: Key) -> None:
        """Have no such predictor any more."""
        with self._lock:
            self._loaded.pop(key, None)
            platforms = self._platforms.get(key[0], set())
            platforms.discard(key[1])
            if not platforms:
                self._platforms.pop(key[0], None)

    def platforms(self, application: str) -> list[str]:
        """The platforms that an application has predictors on."""
        with self._lock:
            return sorted(self._platforms.get(application, ()))

    def __contains__(self, key: object) -> bool:
        return isinstance(key, tuple) and len(key) == 2 and key[1] in self._platforms.get(key[0], ())

    def __iter__(self) -> Iterator[Key]:
        with self._lock:
            return iter([(name, platform) for name in sorted(self._platforms) for platform in self.platforms(name)])

    def __len__(self) -> int:
        with self._lock:
            return sum(map(len, self._platforms.values()))

    @property
    def full(self) -> bool:
        """Whether one more would have another dropped."""
        return len(self._loaded) >= self._most

    def _drop(self) -> None:
        """Drop what was unused longest; the last one, just asked for, stays."""
        spare = [key for key in [*self._loaded][:-1] if not self._holds(key)] if len(self._loaded) > self._most else []
        for key in spare[: len(self._loaded) - self._most]:
            del self._loaded[key]
