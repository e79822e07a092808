"""Numbers and spans of time as people read them: every line and page of the project spells them alike."""

from __future__ import annotations


def plain(value: float, digits: int = 4) -> str:
    """A number with at least four significant digits, where it is large without a power of ten, up to 1e15.

    Parameters
    ----------
    value : the number.
    digits : in place of the four.

    Examples
    --------
    >>> [plain(value) for value in (0.012345, 93.456, 9999.4, 9999.6, 123_456.7, 1e30, float("inf"))]
    ['0.01235', '93.46', '9999', '10000', '123457', '1e+30', 'inf']
    """
    text = f"{value:.{digits}g}"
    return f"{value:.0f}" if "e+" in text and abs(value) < 1e15 else text


def span(seconds: float | None) -> str:
    """A span of time in the unit that suits it; a dash where it is not known.

    >>> [span(seconds) for seconds in (0.0312, 12.34, 754.0, 12_000.0, 1e30, None)]
    ['0.031 s', '12.3 s', '12.6 min', '3.3 h', '2.778e+26 h', '–']
    """
    if seconds is None:
        return "–"
    if seconds < 0.1:
        return f"{seconds:.2g} s"
    if seconds < 100:
        return f"{seconds:.1f} s"
    if seconds < 600:
        return f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.1f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 1e12 else f"{plain(seconds / 3600)} h"


def number_of(number: int, noun: str, nouns: str = "", separator: str = "") -> str:
    """A number with its noun.

    >>> number_of(1, "run"), number_of(3, "run"), number_of(0, "search", "searches"), number_of(2048, "node", "", ",")
    ('1 run', '3 runs', '0 searches', '2,048 nodes')
    """
    digits = f"{number:,}".replace(",", separator)
    return f"{digits} {noun if number == 1 else nouns or noun + 's'}"


def processes(number: int, threads: int = 1) -> str:
    """A number of processes that each take some processors, with their threads; of one thread each is a processor.

    >>> processes(8), processes(1, 4), processes(8, 2)
    ('8 processors', '1 process of 4 threads', '8 processes of 2 threads')
    """
    if threads == 1:
        return number_of(number, "processor")
    return f"{number_of(number, 'process', 'processes')} of {threads} threads"
