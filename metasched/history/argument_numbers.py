"""Numbers in the arguments and scripts of jobs, each with its place there: all that is kept of them.

A place is the option before the number (``-n``, ``--size``), the variable it is given to (``size=``), or the position
of its word after the program (``$2``); ``script:`` stands before one in the script, and ``.2`` after that of the second
number in one place. Users write what they like, so all is bounded, and nothing is expanded or run.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from metasched.sbatch_words import script_at

#: Characters of arguments, of a script, and of a word that are read, words of a command, and numbers that are kept.
LONGEST_LINE, LONGEST_SCRIPT, LONGEST_WORD, MOST_WORDS, MOST_NUMBERS = 10_000, 65_536, 200, 100, 16
#: Characters of the numbers of a job as a text.
LONGEST_TEXT = 1000
#: Digits of a number: more are a date or an identifier.
MOST_DIGITS = 12
#: The prefix of places in a script.
SCRIPT = "script:"

#: Longer names of options, or ones of other characters, may say something of their user.
_NAME = r"[A-Za-z][A-Za-z0-9_-]{0,39}"
_OPTION = re.compile(rf"--?{_NAME}")
#: An option or a variable with its value in the same word.
_GIVEN = re.compile(rf"(--?{_NAME})=(.+)|({_NAME}=)(.+)|(-[A-Za-z])([0-9].*)", re.DOTALL)
_NUMBER = re.compile(r"[0-9]{1,12}(\.[0-9]{0,12})?([eE][+-]?[0-9]{1,2})?")
_DIGITS = re.compile(r"[0-9]+")
#: A quantity with a unit, or a time: its digits alone are not its value.
_QUANTITY = re.compile(r"[0-9.]+[A-Za-z%]{1,3}|[0-9:.-]*:[0-9:.-]*")
#: Options whose numbers are nobody's business.
_PRIVATE = re.compile(r"pass|secret|token|key|cred|login|phone|mail|(?:^|[-_])(?:pin|pw|pwd)(?:$|[-_=])", re.IGNORECASE)
_PLACE = re.compile(rf"(?:{SCRIPT})?(?:\$[0-9]{{1,2}}|--?{_NAME}|{_NAME}=)(?:\.[0-9]{{1,2}})?")
#: What separates the commands of a script, what separates their words, what redirects them, and what separates words
#: of arguments. To shells, and to the hooks that read bytes, no blanks but those of ASCII are blanks.
_ENDS, _BETWEEN = re.compile(r"[;|&\n]+"), re.compile(r"[\s'\"`(){}]+", re.ASCII)
_REDIRECTED, _BLANKS = re.compile(r"(?<![0-9])[0-9]+(?=[<>])|[<>]+&?[0-9]*"), re.compile(r"\s+", re.ASCII)
_COMMENT = re.compile(r"(?:^|\s)#", re.ASCII)


def is_place(text: str) -> bool:
    """Whether a text names a place of a number in arguments or in a script.

    >>> [is_place(text) for text in ("-n", "--size.2", "size=", "$2", "script:-n", "solve -n", "")]
    [True, True, True, True, True, False, False]
    """
    return _PLACE.fullmatch(text) is not None


def in_arguments(line: str) -> str:
    """The numbers in the arguments of a job, as a text.

    >>> in_arguments("-n 400 --tol=1e-6 mesh_200x100.dat size=1500 -p8 --token 77")
    '-n=400 --tol=1e-06 $4=200 $4.2=100 size==1500 -p=8'
    """
    return in_words(_words(line))


def in_words(words: Sequence[str]) -> str:
    """The numbers in arguments that are words already.

    Examples
    --------
    >>> in_words(["-n", "400", "a 7"])
    '-n=400 $3=7'
    """
    return _joined(_places(words, inside=True))


def in_sbatch(line: str) -> str:
    """The numbers in the arguments of the script, or of the wrapped command, of a line that was submitted to Slurm.

    >>> in_sbatch("sbatch -p batch -n 8 solve.sh -n 400"), in_sbatch("sbatch -n 8 --wrap=./solve 400")
    ('-n=400', '$1=400')
    >>> in_sbatch("srun -n 8 ./solve 400"), in_sbatch("")
    ('', '')
    """
    command, *words = _words(line) or [""]
    if command.rpartition("/")[2] != "sbatch":
        return ""
    script = script_at(words)
    while words[script : script + 1] == [":"]:  # the options of another part of a heterogeneous job follow
        words = words[script + 1 :]
        script = script_at(words)
    wrapped = [place for place, word in enumerate(words[:script]) if f"{word}=".startswith("--wrap=")]
    if wrapped:  # where it ends is unknown: all that follows counts
        script = wrapped[0] + (words[wrapped[0]] == "--wrap")
    return in_words(words[script + 1 :])


def in_command(line: str) -> str:
    """The numbers in a command line, after its program.

    >>> in_command("/home/ada/solve.sh 400 --fast")
    '$1=400'
    """
    return in_words(_words(line)[1:])


def in_script(text: str) -> str:
    r"""The numbers in a script, the last ones if there are many: its commands follow what prepares them.

    >>> in_script("#!/bin/sh\n#SBATCH -n 8\nN=400\nmpirun -np 8 ./solve -n 1500 > out.7 2>&1\n")
    'script:N==400 script:-np=8 script:-n=1500'
    """
    if len(text) > LONGEST_SCRIPT:
        text = text[:LONGEST_SCRIPT].rpartition("\n")[0]  # what is cut off may have ended its last number
    lines = text.replace("\\\n", " ").split("\n")
    code = "\n".join(_COMMENT.split(line, maxsplit=1)[0] for line in lines)
    found: list[tuple[str, str]] = []
    for command in _ENDS.split(_REDIRECTED.sub(" ", code)):
        words = [word for word in _BETWEEN.split(command) if word][:MOST_WORDS]
        found += _places(words, inside=False, first=0)
    return _joined(((SCRIPT + place, number) for place, number in found), last=True)


def numbers_of(text: str) -> dict[str, str]:
    """The number of each place in a text of this module; what is none of its own is left out.

    >>> numbers_of("-n=400 size==1500 script:-n=8 rm=x $1=-5 -x")
    {'-n': '400', 'size=': '1500', 'script:-n': '8'}
    """
    cells = (word.rpartition("=") for word in text[:LONGEST_TEXT].split()[: 2 * MOST_NUMBERS])
    return {place: number for place, _, number in cells if is_place(place) and _plain(number) == number}


def merged(*texts: str) -> str:
    """Several texts of this module as one; of a place in several the first counts.

    >>> merged("-n=400", "-n=8 script:N==7", "no text of this module")
    '-n=400 script:N==7'
    """
    found: dict[str, str] = {}
    for text in texts:
        found = found | {place: number for place, number in numbers_of(text).items() if place not in found}
    return _text(found)


def _words(line: str) -> list[str]:
    """The words of a line as a shell would have split it, or else between its blanks."""
    cut = len(line) > LONGEST_LINE
    line = line[:LONGEST_LINE]
    words = [word for word in _BLANKS.split(line) if word]
    if any(mark in line for mark in "'\"\\"):
        try:
            words = shlex.split(line)
        except ValueError:  # a quote that does not end
            words = [word.strip("'\"") for word in words]
    return words[:-1] if cut else words


def _places(words: Sequence[str], *, inside: bool, first: int = 1) -> Iterator[tuple[str, str]]:
    """The places of numbers and the numbers; ``inside`` says that also those within words count."""
    option = ""
    for position, word in enumerate(words[:MOST_WORDS], first):
        given = _GIVEN.fullmatch(word)
        if given is None and _OPTION.fullmatch(word):
            option = word
            continue
        place, value = filter(None, given.groups()) if given is not None else (option or f"${position}", word)
        option = ""
        if len(word) <= LONGEST_WORD and not _PRIVATE.search(place):
            yield from ((place, number) for number in _numbers(value, inside))


def _numbers(word: str, inside: bool) -> list[str]:
    """The numbers of a word: it is one itself, or holds some in the name of a file or in a form such as 400x200."""
    if (number := _plain(word)) is not None:
        return [number]
    if not inside or word.startswith("-") or _QUANTITY.fullmatch(word) or _NUMBER.fullmatch(word):
        return []
    found = map(_plain, _DIGITS.findall(word.rpartition("/")[2]))
    return [number for number in found if number is not None]


def _plain(word: str) -> str | None:
    """A number above 0 in its shortest form; None where a word is none."""
    found = _NUMBER.fullmatch(word)
    if found is None or not 0.0 < float(word) < 10.0**MOST_DIGITS:
        return None
    shown = f"{float(word):.{MOST_DIGITS}g}"
    return shown if len(shown) <= MOST_DIGITS else None


def _joined(found: Iterable[tuple[str, str]], *, last: bool = False) -> str:
    """The text of places and numbers in their order; the second number in one place gets a place of its own."""
    seen: Counter[str] = Counter()
    named: dict[str, str] = {}
    for place, number in found:
        seen[place] += 1
        own = place if seen[place] == 1 else f"{place}.{seen[place]}"
        if is_place(own):
            named[own] = number
    cells = [*named.items()]
    return _text(dict(cells[-MOST_NUMBERS:] if last else cells[:MOST_NUMBERS]))


def _text(found: Mapping[str, str]) -> str:
    """Places and numbers as a text, of the first ones where that is too long."""
    cells = [f"{place}={number}" for place, number in found.items()]
    while len(text := " ".join(cells)) > LONGEST_TEXT:
        cells.pop()
    return text
