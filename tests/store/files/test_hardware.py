"""Entries of hardware: those of the package, and those in files."""

from __future__ import annotations

from pathlib import Path

import pytest

from metasched.blocks.entry import Block, Entry, Kind, Quantity
from metasched.blocks.terms import Term
from metasched.records import InputError
from metasched.store.files.hardware import entry_text, names, read_entry, write_entry

SOUND = 'kind = "cluster"\nsource = "measured"\n[values]\nT_p2p = { value = 3.7, unit = "us" }\n'


def test_every_value_of_the_package_has_a_unit_that_fits_and_a_source() -> None:
    found = {name: read_entry(name) for name in names()}
    assert {"galera-plus", "galera", "kask", "xeon-e5-1620", "i7-2600k", "testbed-intel"} < set(found)
    assert {entry.kind for entry in found.values()} == set(Kind)
    unfit = [
        (entry.name, name)
        for entry in found.values()
        for name, each in entry.values.items()
        if not each.source or entry.get(name) is None
    ]
    assert not unfit


@pytest.mark.parametrize("name", names())
def test_an_entry_written_is_the_entry_read(name: str, tmp_path: Path) -> None:
    entry = read_entry(name)
    write_entry(tmp_path / "copy.toml", entry)
    assert read_entry(str(tmp_path / "copy.toml")) == entry


def test_terms_and_uncertainties_are_kept(tmp_path: Path) -> None:
    terms = (Term(1.5e-6, 2e-7), Term(1e-9, 0.0, "log2(P)", 0.0, 8192.0), Term(2e-9, growth="P-1", above=8192.0))
    values, title = {"D_tu": Quantity(2048, "B", "measured", 1.5)}, 'a "quoted" title'
    entry = Entry("own", Kind.cluster, title, values, blocks={Block.bcast: terms}, notes=("one", "two"))
    write_entry(tmp_path / "own.toml", entry)
    assert read_entry(str(tmp_path / "own.toml")) == entry
    assert "nan" not in entry_text(entry)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (SOUND.replace('"us"', '"fortnights"'), "values.T_p2p: unit is 'fortnights', expected one of s, ms"),
        (SOUND.replace('"us"', '"W"'), "values.T_p2p: unit is W, expected s or ms or us or ns"),
        (SOUND.replace("T_p2p", "T_zero"), "values.T_zero is not known"),
        (SOUND.replace("3.7", "nan"), "values.T_p2p.value is nan"),
        (SOUND.replace('"cluster"', '"toaster"'), "kind is 'toaster', expected 'cluster'"),
        (SOUND.replace('source = "measured"\n', ""), "source is missing"),
        (SOUND + "[blocks]\nbroadcast = []\n", "expected 'compute'"),
        (
            SOUND + '[blocks]\nbcast = [{ coefficient = 1.0, growth = "P^P" }]\n',
            r"growth is 'P\^P', expected one of 1,",
        ),
        ("log_base = 1\n" + SOUND, "log_base is 1.0, expected a number above 1"),
        ("kind = ", "is not valid TOML"),
    ],
)
def test_an_entry_that_is_wrong_is_refused_in_one_line(text: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=expected) as refused:
        read_entry(str(path))
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_unknown_entries_are_refused_with_those_there_are() -> None:
    with pytest.raises(InputError, match=r"there is no hardware 'gallera'.*galera-plus"):
        read_entry("gallera")
