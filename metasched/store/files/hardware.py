"""The hardware database: entries of the package and entries in files, all in one form of TOML.

An entry has ``kind``, ``title``, ``source``, perhaps ``log_base``, ``published`` and ``notes``, and ``[values]``, each
``NAME = { value = 3.7, unit = "us" }`` with a ``source`` of its own where it is another one, and an ``uncertainty``
where it was fitted. Blocks whose form is not Table 1's stand as terms in ``[blocks]``.
"""

from __future__ import annotations

import json
import math
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metasched.blocks.entry import Block, Entry
from metasched.records import InputError
from metasched.store.documents.entries import EntryDocument
from metasched.store.files.whole_files import read_text, write_text_atomically
from metasched.validation import Located, toml_as

if TYPE_CHECKING:
    from metasched.signature.times.hardware import Hardware


def names() -> list[str]:
    """The names of the hardware entries that come with the package."""
    return sorted(path.name.removesuffix(".toml") for path in _folder().iterdir() if path.name.endswith(".toml"))


def read_entry(name: str) -> Entry:
    """An entry by its name, or by the path of its file, which ends in ``.toml``.

    Raises
    ------
    InputError : when there is none, or for the first thing wrong with it.

    Examples
    --------
    >>> read_entry("galera-plus")["T_p2p"]
    3.7e-06
    """
    if name.endswith(".toml"):
        return _entry(read_text(name), Path(name).stem, where=name)
    if name not in names():
        raise InputError(f"there is no hardware {name!r}, expected a file in .toml or one of {', '.join(names())}")
    return _entry((_folder() / f"{name}.toml").read_text(encoding="utf-8"), name, where=name)


def hardware_of(device: str, network: str | None = None, processes_per_node: int = 1) -> Hardware:
    """Where a signature is predicted: a device and its network, by names or files as :func:`read_entry` takes them.

    Raises
    ------
    InputError : as :func:`read_entry` does, and if the time of messages is not known.

    Examples
    --------
    >>> hardware_of("galera-plus").device.name
    'galera-plus'
    """
    from metasched.signature.times.hardware import Hardware

    known = read_entry(device)
    joined = known if network is None else read_entry(network)
    if "T_p2p" not in joined.values and Block.p2p not in joined.blocks and joined.get("bandwidth") is None:
        raise InputError(f"{joined.name} has neither bandwidth nor T_p2p and K_p2p: give a network that has")
    return Hardware(known, joined, processes_per_node)


def _folder() -> Any:
    return resources.files("metasched.blocks") / "entries"


def _entry(text: str, name: str, *, where: str) -> Entry:
    document = toml_as(EntryDocument, text, where=where)
    with Located(where):
        return document.build(name)


def write_entry(path: Path, entry: Entry) -> None:
    """Write an entry to a file, all of it or nothing."""
    if path.suffix != ".toml":
        raise InputError(f"the file of an entry is {path}, expected a name that ends in .toml")
    write_text_atomically(path, entry_text(entry))


def entry_text(entry: Entry) -> str:
    """An entry in TOML, as :func:`read_entry` reads it."""
    # JSON's texts, numbers and lists are TOML's, once nothing in them is infinite or null.
    sources = [each.source for each in entry.values.values()] or [entry.title or entry.name]
    common = max(dict.fromkeys(sources), key=sources.count)
    head: dict[str, Any] = {"name": entry.name, "kind": entry.kind, "title": entry.title, "source": common}
    head |= {"published": entry.published, "log_base": entry.log_base, "notes": list(entry.notes)}
    lines = [f"{key} = {_json(value)}" for key, value in head.items()] + ["", "[values]"]
    for name, each in entry.values.items():
        row = {"value": each.value, "unit": each.unit, "uncertainty": each.uncertainty}
        row |= {"source": None if each.source == common else each.source}
        lines.append(f"{name} = {_table(row)}")
    for block, terms in entry.blocks.items():
        lines += ["", *(["[blocks]"] if block == next(iter(entry.blocks)) else []), f"{block} = ["]
        for term in terms:
            ends = {"above": term.above, "below": None if math.isinf(term.below) else term.below}
            row = {"coefficient": term.coefficient, "uncertainty": term.uncertainty, "growth": term.growth} | ends
            lines.append(f"    {_table(row)},")
        lines.append("]")
    return "\n".join(lines) + "\n"


def _table(row: dict[str, Any]) -> str:
    return "{ " + ", ".join(f"{key} = {_json(value)}" for key, value in row.items() if value is not None) + " }"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
