"""Man pages from the help: ``python -m metasched.cli.manual FOLDER`` writes metasched.1 and one page for each verb."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from metasched import __version__
from metasched.cli.app import GROUPS, VERBS, load, summary

ENDS = (
    ("EXIT STATUS", "0 done, 1 failed, 2 wrong usage or input, with one line that says what was expected."),
    ("ENVIRONMENT", "METASCHED_CONFIG, METASCHED_DB and METASCHED_TOKEN name the configuration, the database and "
                    "the token if no option does."),
)  # fmt: skip


def pages() -> Iterator[tuple[str, str]]:
    """The name and the text of each page.

    >>> dict(pages())["metasched-rank.1"].splitlines()[1]
    '.SH NAME'
    """
    line = "predict the execution time of parallel applications, and choose where to run them"
    yield "metasched.1", _page("metasched", line, _verbs())
    for verb in VERBS:
        body = [*_command(load(verb), f"metasched {verb}")]
        yield f"metasched-{verb}.1", _page(f"metasched-{verb}", summary(verb), body)


def write(folder: Path) -> int:
    """Write all pages into a folder; return how many."""
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for name, text in pages():
        (folder / name).write_text(text, encoding="utf-8")
        count += 1
    return count


def _page(name: str, line: str, body: list[str]) -> str:
    head = [f'.TH {name.upper()} 1 "" "metasched {__version__}"', ".SH NAME", f"{_plain(name)} \\- {_plain(line)}"]
    ends = [text for heading, body in ENDS for text in (f'.SH "{heading}"', _plain(body))]
    return "\n".join([*head, *body, *ends, ""])


def _verbs() -> list[str]:
    lines = [".SH SYNOPSIS", ".B metasched", "[OPTIONS] VERB [ARGUMENTS]"]
    for group, verbs in GROUPS.items():
        lines.append(f'.SH "{group.upper()}"')
        for verb in verbs:
            lines += [".TP", f".BR metasched\\-{_plain(verb)} (1)", _plain(summary(verb))]
    return lines


def _command(command: Any, words: str, inner: bool = False) -> Iterator[str]:
    yield f'.SH "{_plain(words)}"' if inner else ".SH SYNOPSIS"
    if not inner:
        yield f".B {_plain(words)}"
    yield "[OPTIONS] " + " ".join(_argument(each) for each in command.params if not _option(each))
    if not inner:
        yield ".SH DESCRIPTION"
    for number, paragraph in enumerate((command.help or "").split("\n\n")):
        yield from ([".PP"] if number or inner else []) + [_plain(paragraph)]
    shown = [each for each in command.params if not getattr(each, "hidden", False)]
    context = command.make_context(words, [], resilient_parsing=True)
    for heading, wanted in (("ARGUMENTS", False), ("OPTIONS", True)):
        records = [each.get_help_record(context) for each in shown if _option(each) is wanted]
        if records:
            yield f".SS {heading}" if inner else f".SH {heading}"
        for name, text in records:  # a bracket is escaped where the help might take it for markup
            yield from (".TP", f".B {_plain(name)}", _plain(text.replace("\\[", "[")))
    for name, each in getattr(command, "commands", {}).items():
        yield from _command(each, f"{words} {name}", inner=True)


def _argument(parameter: Any) -> str:
    name = str(parameter.metavar or parameter.name.upper())
    return (name if parameter.required else f"[{name}]") + ("" if parameter.nargs == 1 else "...")


def _option(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "option")


def _plain(text: str) -> str:
    """A text on one line, escaped for roff."""
    line = " ".join(text.split()).replace("\\", "\\e").replace("-", "\\-").replace("``", '"')
    return f"\\&{line}" if line.startswith((".", "'")) else line


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("expected the folder that the man pages are to be written into")
    print(f"{write(Path(sys.argv[1]))} pages written to {sys.argv[1]}")
