"""The numbers in the arguments and the script of a job, each with its option, variable or position: all that is sent.

A problem size may be among them; the daemon finds the same. What users write is bounded, and nothing of it is expanded
or run. Lies beside the hooks of a scheduler. Needs nothing but the standard library of any Python from 3.6 on.
"""

import re
import shlex
from typing import Iterable, Iterator, List, Sequence, Tuple

#: Characters of arguments, of a script, of a word and of what is found; words of a command; numbers that are kept.
LONGEST_LINE, LONGEST_SCRIPT, LONGEST_WORD, LONGEST_TEXT, MOST_WORDS, MOST_NUMBERS = 10000, 65536, 200, 1000, 100, 16
#: Characters of a number.
LONGEST_NUMBER = 12
NAME = "[A-Za-z][A-Za-z0-9_-]{0,39}"
OPTION = re.compile(r"--?{}\Z".format(NAME))
#: An option or a variable with its value in the same word.
GIVEN = re.compile(r"(?s)(?:(--?{0})=(.+)|({0}=)(.+)|(-[A-Za-z])([0-9].*))\Z".format(NAME))
NUMBER = re.compile(r"[0-9]{1,12}(\.[0-9]{0,12})?([eE][+-]?[0-9]{1,2})?\Z")
#: A quantity with a unit, or a time.
QUANTITY = re.compile(r"(?:[0-9.]+[A-Za-z%]{1,3}|[0-9:.-]*:[0-9:.-]*)\Z")
PLACE = re.compile(r"(?:script:)?(?:\$[0-9]{{1,2}}|--?{0}|{0}=)(?:\.[0-9]{{1,2}})?\Z".format(NAME))
#: Options whose numbers are nobody's business.
PRIVATE = re.compile("(?i)pass|secret|token|key|cred|login|phone|mail|(?:^|[-_])(?:pin|pw|pwd)(?:$|[-_=])")
#: What separates commands and their words, what redirects a command, and what begins a comment.
ENDS, BETWEEN = re.compile(r"[;|&\n]+"), re.compile(r"(?a)[\s'\"`(){}]+")
REDIRECTED, COMMENT = re.compile("(?<![0-9])[0-9]+(?=[<>])|[<>]+&?[0-9]*"), re.compile(r"(?a)(?:^|\s)#")


def in_script(script: bytes) -> str:
    """The numbers in the commands of a script, the last ones if there are many."""
    text = script.decode("utf-8", "replace")
    if len(text) > LONGEST_SCRIPT:
        text = text[:LONGEST_SCRIPT].rpartition("\n")[0]
    lines = text.replace("\\\n", " ").split("\n")
    code = "\n".join(COMMENT.split(line, maxsplit=1)[0] for line in lines)
    found = []  # type: List[Tuple[str, str]]
    for command in ENDS.split(REDIRECTED.sub(" ", code)):
        words = [word for word in BETWEEN.split(command) if word]
        found += [("script:" + place, number) for place, number in _places(words, inside=False, first=0)]
    return _text(_named(found)[-MOST_NUMBERS:])


def in_arguments(words: Sequence[str]) -> str:
    """The numbers in the arguments of a job."""
    return _text(_named(_places(words, inside=True))[:MOST_NUMBERS])


def words_of(line: str) -> List[str]:
    """The words of a line as a shell would have split it, or else between its blanks."""
    cut = len(line) > LONGEST_LINE
    line = line[:LONGEST_LINE]
    words = [word for word in re.split(r"(?a)\s+", line) if word]
    if re.search(r"['\"\\]", line):
        try:
            words = shlex.split(line)
        except ValueError:  # a quote that does not end
            words = [word.strip("'\"") for word in words]
    return words[:-1] if cut else words


def joined(*texts: str) -> str:
    """Several texts of this module as one."""
    return _text(" ".join(texts).split())


def _places(words: Sequence[str], *, inside: bool, first: int = 1) -> Iterator[Tuple[str, str]]:
    """The places of numbers and the numbers; ``inside`` says that also those within words count."""
    option = ""
    for position, word in enumerate(words[:MOST_WORDS], first):
        given = GIVEN.match(word)
        if given is None and OPTION.match(word):
            option = word
            continue
        place, value = [part for part in given.groups() if part] if given else (option or "${}".format(position), word)
        option = ""
        if len(word) <= LONGEST_WORD and not PRIVATE.search(place):
            for number in _numbers(value, inside):
                yield place, number


def _numbers(word: str, inside: bool) -> List[str]:
    """The numbers of a word: it is one itself, or holds some in the name of a file or in a form such as 400x200."""
    number = _plain(word)
    if number:
        return [number]
    if not inside or word.startswith("-") or QUANTITY.match(word) or NUMBER.match(word):
        return []
    return [number for number in map(_plain, re.findall("[0-9]+", word.rpartition("/")[2])) if number]


def _plain(word: str) -> str:
    """A number above 0 in its shortest form; empty where a word is none."""
    if not NUMBER.match(word) or not 0.0 < float(word) < 1e12:
        return ""
    shown = "{:.12g}".format(float(word))
    return shown if len(shown) <= LONGEST_NUMBER else ""


def _named(found: Iterable[Tuple[str, str]]) -> List[str]:
    """Places with their numbers; the second number in one place gets a place of its own."""
    seen, named = {}, {}
    for place, number in found:
        seen[place] = seen.get(place, 0) + 1
        own = place if seen[place] == 1 else "{}.{}".format(place, seen[place])
        if PLACE.match(own):
            named[own] = number
    return ["{}={}".format(*each) for each in named.items()]


def _text(cells: List[str]) -> str:
    """Places and numbers as a text, of the first ones where that is too long."""
    while len(" ".join(cells)) > LONGEST_TEXT:
        cells.pop()
    return " ".join(cells)
