"""The pages of docs/ are finished, and the output that they show is what the commands print.

How pages mark their blocks is said in ``tests/pages.py``; ``python -m tests.update_docs`` writes outputs anew.
"""

from __future__ import annotations

import functools
import itertools
import json
import re
import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from benchmarks.testbed import catalogue, report
from metasched.cli.app import VERBS, load
from tests import pages
from tests.pages import PAGES, ROOT, Block, agree, blocks

KINDS = {"console", "python", "bash", "toml", "json", "text"}
BLOCKS = [(page, block) for page in PAGES for block in blocks(page.read_text(encoding="utf-8"))]
SLOW = sorted({page for page, block in BLOCKS if block.needs == "slow"})
#: A line that waits for its text: one word in capitals by itself, or a mark that something is missing.
PLACEHOLDER = re.compile(r"^[^\w|]*[A-Z][A-Z0-9_]+[^\w|]*$|\b(TODO|TBD|FIXME|XXX)\b", re.MULTILINE)


def found(text: str) -> list[str]:
    """Lines outside code that are no more than a placeholder."""
    outside = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    return [match.group() for match in PLACEHOLDER.finditer(outside)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_holds_a_placeholder(page: Path) -> None:
    assert found(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "text", ["before\n\nSUMMARY\n\nafter", "<WALLTIME>", "{{SOME_TABLE}}", "Mean: TBD", "TODO say why"]
)
def test_placeholders_are_found(text: str) -> None:
    assert found(text)


@pytest.mark.parametrize("text", ["MPI programs", "| CPU |\n", "```\nSUMMARY\n```", "`CPU` and `MPI`"])
def test_words_in_capitals_are_no_placeholders(text: str) -> None:
    assert not found(text)


def test_the_testbed_page_shows_what_its_summary_prints() -> None:
    page = (ROOT / "docs" / "testbed.md").read_text(encoding="utf-8")
    console = Console(width=report.WIDTH)
    with console.capture() as captured:
        for table in (*report.summary(catalogue.DESIGN), *report.summary(catalogue.JUDGED)):
            console.print(table)
    rows = [line.rstrip() for line in captured.get().splitlines() if line.strip()]
    assert len(rows) > 20
    assert [row for row in rows if row not in page] == []


def of_kind(*kinds: str) -> Any:
    """All blocks of these kinds, as parameters of a test."""
    chosen = [pytest.param(each, id=f"{page.name}:{each.line}") for page, each in BLOCKS if each.kind in kinds]
    return pytest.mark.parametrize("block", chosen)


def disagreements(page: Path, folder: Path, *marks: str) -> list[str]:
    """What a page shows otherwise than its commands print it."""
    return [str(each) for each in pages.follow(page, folder, ("", *marks)) if not each.agrees]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_shows_what_its_commands_print(page: Path, tmp_path: Path) -> None:
    assert disagreements(page, tmp_path) == []


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("page", SLOW, ids=lambda page: page.name)
def test_a_page_shows_what_its_slow_commands_print(page: Path, tmp_path: Path) -> None:
    assert disagreements(page, tmp_path, "slow") == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_says_what_it_is(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert [block.line for block in blocks(text) if block.kind not in KINDS] == []
    assert text.count("\n```") == 2 * len(blocks(text))


@of_kind("console")
def test_every_console_block_begins_with_a_command_and_shows_an_output(block: Block) -> None:
    assert block.body.startswith("$ ")
    assert any(step.shown.strip() for step in block.steps)


@of_kind("text", "bash", "toml", "json")
def test_no_other_block_shows_commands_with_their_output(block: Block) -> None:
    assert not re.search(r"^\$ ", block.body, re.MULTILINE)


@of_kind("toml")
def test_toml_parses(block: Block) -> None:
    assert tomllib.loads(block.body)


@of_kind("json")
def test_json_parses(block: Block) -> None:
    assert json.loads(block.body)


@of_kind("bash")
def test_bash_parses(block: Block) -> None:
    done = subprocess.run(["bash", "-n"], input=block.body, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line for line in joined(block.body) if line.split(" ")[0] in VERBS] == [], "two lines became one"


@functools.cache
def verbs() -> dict[tuple[str, ...], set[str]]:
    """The options of every verb."""

    def walk(command: Any, path: tuple[str, ...]) -> Any:
        yield path, {"--help", *itertools.chain(*([*each.opts, *each.secondary_opts] for each in command.params))}
        for name, each in getattr(command, "commands", {}).items():
            yield from walk(each, (*path, name))

    found = dict(itertools.chain(*(walk(load(verb), (verb,)) for verb in VERBS)))
    return {(): {"--help", "--version", "--install-completion", "--show-completion"}, **found}


def spans(text: str) -> list[str]:
    """The code in the lines of a page."""
    outside = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return [" ".join(each.split()) for each in re.findall(r"`([^`]+)`", outside)]


def commands(text: str) -> list[str]:
    """Every call of metasched on a page: in blocks, in indented lines and in the lines of the text."""
    shown = [step.command for block in blocks(text) if block.kind == "console" for step in block.steps]
    shown += [line for block in blocks(text) if block.kind == "bash" for line in joined(block.body)]
    outside = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    shown += [line.strip() for line in re.findall(r"^    .*", outside, re.MULTILINE)]
    shown += spans(text)
    called = re.compile(r"(?:^|/bin/|\| |=\S+ )(metasched +[^|;&)]+)")
    return [found for each in shown for found in called.findall(each.replace("\\\n", ""))]


def joined(body: str) -> list[str]:
    """The lines of a script."""
    return body.replace("\\\n", "").splitlines()


def unknown(command: str) -> list[str]:
    """The words of a call that the command line does not know."""
    try:
        words = shlex.split(command, comments=True)[1:]
    except ValueError:
        return [command]
    path: tuple[str, ...] = ()
    while words and (*path, words[0]) in verbs():
        path = (*path, words.pop(0))
    has_commands = any(each[:-1] == path for each in verbs() if each)
    if has_commands and words and not words[0].startswith("-"):
        return words[:1]
    own = list(itertools.takewhile(lambda word: word != "--", words))
    return [word for word in own if re.match(r"--?[a-z]", word) and word.partition("=")[0] not in verbs()[path]]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_names_verbs_and_options_that_there_are(page: Path) -> None:
    found = {command: unknown(command) for command in commands(page.read_text(encoding="utf-8"))}
    assert {command: words for command, words in found.items() if words} == {}


def outside_blocks(page: Path) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


@functools.cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors of the headings of a page, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", outside_blocks(page), re.MULTILINE)
    return frozenset(re.sub(r"[^\w -]", "", heading.strip().lower()).replace(" ", "-") for heading in headings)


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "CHANGELOG.md", ROOT / "SECURITY.md"], ids=lambda page: f"{page.parent.name}/{page.name}"
)
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    links = [each for each in re.findall(r"\]\(([^)\s]+)\)", outside_blocks(page)) if "://" not in each]
    lost = []
    for link in links:
        file, _, anchor = link.partition("#")
        there = page.parent / file if file else page
        if not there.exists() or (anchor and anchor not in anchors(there)):
            lost.append(link)
    assert lost == []


def test_the_architecture_names_every_verb_once() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = text.partition("| verb | does | page |\n")[2].partition("\n\n")[0]
    named = re.findall(r"`([a-z-]+)`", "\n".join(row.split("|")[1] for row in table.splitlines()))
    assert sorted(named) == sorted(VERBS)


@pytest.mark.parametrize(
    "command",
    ["metasched fitt x", "metasched fit --metod robust", "metasched token add --rol x", "metasched runs impor"],
)
def test_verbs_and_options_that_there_are_not_are_found(command: str) -> None:
    assert unknown(command)


@functools.cache
def other_options() -> str:
    """The sources in which the options of benchmarks and scripts stand."""
    folders = ("benchmarks", "examples", "deploy", "tests/system")
    files = (path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ""))
    return "\n".join(path.read_text(encoding="utf-8", errors="ignore") for path in files if path.is_file())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_options_targets_modules_and_files_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    options = {word for span in spans(text) if span.startswith("--") for word in re.findall(r"(?<!\S)--[a-z-]+", span)}
    known = {"--gres", "--gpus"}.union(*verbs().values())  # those of sbatch, and our own
    assert {
        each
        for each in options - known
        if not re.search(rf"{each}\b|\b{each[2:].replace('-', '_')}: ", other_options())
    } == set()
    targets = re.findall(
        r"\bmake ([a-z]+(?:-[a-z]+)*)(?=[`\n ]*(?:`|#|\())", "\n".join(f"{span}`" for span in spans(text))
    )
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert [each for each in targets if not re.search(rf"^{each}:", makefile, re.MULTILINE)] == []
    assert [name for name in named_paths(text) if not exists(name)] == []


def named_paths(text: str) -> list[str]:
    """Files, folders and modules of the project that stand in the text."""
    own = r"(?:metasched|monitors|candidate_functions|benchmarks|tests|deploy|examples)"
    places = rf"{own}/[\w./-]*|{own}(?:\.[a-z_0-9]+)+|[a-z_]+(?:/[a-z_]+)*\.py"
    return [span for span in spans(text) if re.fullmatch(places, span)]


def exists(name: str) -> bool:
    """Whether a file, a folder, a module or what is in it exists."""
    if name.endswith(".py") or "/" in name:
        return any(ROOT.glob(name)) or any(path for top in TOPS for path in (ROOT / top).rglob(name.rstrip("/")))
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        path = ROOT.joinpath(*parts[:length])
        source = path.with_suffix(".py") if not path.is_dir() else path / "__init__.py"
        if source.exists():
            rest = parts[length:]
            return not rest or bool(re.search(rf"\b{rest[0]}\b", source.read_text(encoding="utf-8")))
    return False


TOPS = ("metasched", "monitors", "candidate_functions", "benchmarks", "tests", "examples")


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("9.369 s, CPU 0.7", "9.5 s, CPU 0.7"),
        ("0.3%", "0.4%"),
        ("| a | 12,142 |", "|a|  12,200\n|"),
        ("first\n...\nlast 2", "first\nsecond\nthird\nlast 2"),
    ],
)
def test_outputs_agree_within_the_tolerance(shown: str, printed: str) -> None:
    assert agree(shown, printed)


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("9.369 s", "10.2 s"),
        ("n[0-4]", "n[0-5]"),
        ("-0.5 s", "0.5 s"),
        ("one two", "one"),
        ("one", "one two"),
        ("first\n...\nlast", "first\nsecond"),
        ("", "a word"),
    ],
)
def test_outputs_that_differ_are_found(shown: str, printed: str) -> None:
    assert not agree(shown, printed)


def test_what_varies_is_not_compared() -> None:
    assert agree("took 3 s, 5 runs", "took 90 s, 5 runs", varies=[r"took \d+ s"])
    assert not agree("took 3 s, 5 runs", "took 90 s, 9 runs", varies=[r"took \d+ s"])


def test_an_output_is_renewed_with_as_much_left_out_as_before() -> None:
    assert pages.renewed("a 1\n...\nz 1\n\n", "a 2\nb\nc\nz 2\n") == "a 2\n...\nz 2\n\n"
