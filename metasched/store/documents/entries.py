"""Entries of the hardware database as documents, in TOML files and in JSON models."""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import Field, model_validator

from metasched.blocks.entry import Block, Entry, Kind, Quantity
from metasched.blocks.terms import Term
from metasched.store.documents.parts import Finite, Part, RecordPart

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
    below: Finite[Annotated[_Number, Field(gt=0)]] = None


class EntryDocument(RecordPart):
    """A piece of hardware, as files hold it in TOML and models in JSON."""

    record = Entry

    name: Annotated[str, Field(min_length=1, max_length=200)] = ""
    kind: Kind
    title: str = ""
    source: Annotated[str, Field(min_length=1)]
    published: bool = False
    log_base: _Number = 2.0
    notes: list[str] = Field(default_factory=list)
    values: dict[str, _Value]
    blocks: dict[Block, list[_Term]] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _named_source(cls, given: Any) -> Any:
        """The source of each value of an entry; by default its title, or its name."""
        if not isinstance(given, Entry):
            return given
        return {name: getattr(given, name) for name in cls.model_fields if name != "source"} | {
            "source": given.title or given.name
        }

    def build(self, name: str = "") -> Entry:
        """The entry, with this name if it has none itself.

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
