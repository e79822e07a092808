"""Entries of the hardware database as documents: what files hold in TOML and models in JSON."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import Field

from metasched.blocks.entry import Block, Entry, Kind, Quantity
from metasched.blocks.terms import Term
from metasched.store.documents.parts import Part

_Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]


class _Value(Part):
    value: _Number
    unit: str
    source: str = ""
    uncertainty: Annotated[_Number, Field(ge=0)] | None = None


class _Term(Part):
    coefficient: Annotated[_Number, Field(ge=0)]
    uncertainty: Annotated[_Number, Field(ge=0)] = 0.0
    growth: str = "1"
    above: Annotated[_Number, Field(ge=0)] | None = None
    below: Annotated[_Number, Field(gt=0)] | None = None

    @classmethod
    def of(cls, term: Term) -> _Term:
        return cls(
            coefficient=term.coefficient,
            uncertainty=term.uncertainty,
            growth=term.growth,
            above=term.above,
            below=None if math.isinf(term.below) else term.below,
        )


class EntryDocument(Part):
    """A piece of hardware, as files hold it in TOML and models in JSON."""

    name: Annotated[str, Field(min_length=1, max_length=200)] = ""
    kind: Kind
    title: str = ""
    source: Annotated[str, Field(min_length=1)]
    published: bool = False
    log_base: _Number = 2.0
    notes: list[str] = Field(default_factory=list)
    values: dict[str, _Value]
    blocks: dict[Block, list[_Term]] = Field(default_factory=dict)

    @classmethod
    def of(cls, entry: Entry) -> EntryDocument:
        """What an entry is kept as."""
        return cls(
            name=entry.name,
            kind=entry.kind,
            title=entry.title,
            source=entry.title or entry.name,
            published=entry.published,
            log_base=entry.log_base,
            notes=list(entry.notes),
            values={
                name: _Value(value=each.value, unit=each.unit, source=each.source, uncertainty=each.uncertainty)
                for name, each in entry.values.items()
            },
            blocks={block: [_Term.of(term) for term in terms] for block, terms in entry.blocks.items()},
        )

    def build(self, name: str = "") -> Entry:
        """The entry, of this name where it tells none itself.

        Raises
        ------
        InputError : a value or a term is none that hardware has.
        """
        return Entry(
            name=self.name or name,
            kind=self.kind,
            title=self.title,
            values={
                key: Quantity(each.value, each.unit, each.source or self.source, each.uncertainty)
                for key, each in self.values.items()
            },
            log_base=self.log_base,
            published=self.published,
            blocks={
                block: tuple(
                    Term(each.coefficient, each.uncertainty, each.growth, each.above, each.below or math.inf)
                    for each in terms
                )
                for block, terms in self.blocks.items()
            },
            notes=tuple(self.notes),
        )
