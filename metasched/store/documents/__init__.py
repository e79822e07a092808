"""Models as versioned JSON documents, checked in full when they are read.

A document holds numbers and names, never code. What can be computed again is not kept: lists are sorted and solved from
their square-root sums, processes are conditioned again on the runs of the window, so a model answers the same before it
is saved and after it was loaded.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from pydantic import BaseModel, ValidationError

from metasched.predictors.contract import Predictor, Saved
from metasched.records import InputError
from metasched.store.documents.parts import checked
from metasched.validation import first_error
from monitors.validated_fields import ValidatedFields

#: The type of a document, and the only version of its layout so far.
FORMAT, VERSION = "metasched-model", 1

#: Of each method the module of its document, the document and the predictor: the module is loaded when a model of that
#: method is read or written.
_HOMES = {
    "published": ("adaptive", "PublishedDocument", "PublishedPredictor"),
    "robust": ("adaptive", "RobustDocument", "RobustPredictor"),
    "metered": ("metered", "MeteredDocument", "MeteredPredictor"),
    "ported": ("ported", "PortedDocument", "PortedPredictor"),
    "platforms": ("platforms", "PlatformsDocument", "PlatformsPredictor"),
    "phased": ("phased", "PhasedDocument", "PhasedPredictor"),
    "spmd": ("spmd", "SpmdDocument", "SpmdPredictor"),
    "cloud": ("cloud", "CloudDocument", "CloudPredictor"),
    "signature": ("signature", "SignatureDocument", "SignaturePredictor"),
    "simulated": ("simulated", "SimulatedDocument", "SimulatedPredictor"),
    "tournament": ("tournament", "TournamentDocument", "Tournament"),
}


def _document(method: str) -> Any:
    module, name, _ = _HOMES[method]
    return getattr(importlib.import_module(f"{__name__}.{module}"), name)


class _Header(ValidatedFields, BaseModel):
    format: str
    version: int
    method: str


def method_of(predictor: Predictor) -> str | None:
    """The method whose document can store a predictor; None if there is none."""
    classes = {each.__name__ for each in type(predictor).__mro__}
    return next((method for method, (*_, kind) in _HOMES.items() if kind in classes), None)


def document_of(predictor: Predictor) -> Any:
    """The document that keeps a predictor.

    Raises
    ------
    InputError : there is no document for this kind of predictor, or it has learned nothing yet.
    """
    method = method_of(predictor)
    if method is None:
        raise InputError(f"a {predictor.name} predictor cannot be saved, expected {_either()}")
    return _document(method).of(predictor)


def dump(predictor: Predictor) -> str:
    """Write a predictor as a JSON document.

    Raises
    ------
    InputError : there is no document for this kind of predictor, or it has learned nothing yet.
    """
    if getattr(predictor, "fitted", predictor) is None:
        raise InputError(f"a {predictor.name} predictor that has learned nothing yet cannot be saved")
    try:
        return str(document_of(predictor).model_dump_json())
    except ValidationError as error:
        raise InputError(f"a {predictor.name} predictor cannot be saved: {first_error(error)}") from None


def readable(form: object, version: object, method: object) -> bool:
    """Whether a document with such a head is one that :func:`parse` reads, if it is sound."""
    return (form, version) == (FORMAT, VERSION) and method in _HOMES


def parse(text: str, *, where: str = "model") -> Saved:
    """Read a JSON document back into a predictor.

    Parameters
    ----------
    text : the document.
    where : put in front of messages, such as the name of the file.

    Raises
    ------
    InputError : the document is cut short, of another format or version, or not sound; the line says where.

    Examples
    --------
    >>> parse('{"format": "metasched-model", "version": 7, "method": "robust"}')
    Traceback (most recent call last):
    metasched.records.errors.InputError: model: version 7 of the model format, expected 1: fit the model again
    """
    header = checked(_Header, text, where)
    if header.format != FORMAT:
        raise InputError(f"format is {header.format!r}, expected {FORMAT!r}", where=where)
    if header.version != VERSION:
        raise InputError(
            f"version {header.version} of the model format, expected {VERSION}: fit the model again", where=where
        )
    if header.method not in _HOMES:
        raise InputError(f"method is {header.method!r}, expected {_either()}", where=where)
    document = checked(_document(header.method), text, where)
    try:
        if header.method == "spmd" and document.fit is None:
            raise InputError("the spmd predictor has learned nothing, expected fit to hold what was fitted")
        # Numbers that no fit leads to are refused where they are not finite, without warnings of numpy before that.
        with np.errstate(all="ignore"):
            predictor: Saved = document.build()
        return predictor
    except ValueError as error:
        raise InputError(str(error), where=where) from None


def _either() -> str:
    *others, last = _HOMES
    return f"{', '.join(others)} or {last}"
