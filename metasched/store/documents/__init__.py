"""Models as versioned JSON documents, checked in full when they are read.

A document holds numbers and names, never code. What can be computed again is not kept: lists are sorted and solved from
their square-root sums, processes are conditioned again on the runs of the window, so a model answers the same before it
is saved and after it was loaded.
"""

from __future__ import annotations

from pydantic import BaseModel, ValidationError

from metasched.predictors.analytic.cloud.predictor import CloudPredictor
from metasched.predictors.analytic.spmd.predictor import SpmdPredictor
from metasched.predictors.contract import Predictor
from metasched.predictors.energy.predictor import MeteredPredictor
from metasched.predictors.formulas.published import PublishedPredictor
from metasched.predictors.phases.predictor import PhasedPredictor
from metasched.predictors.porting.platforms import PlatformsPredictor
from metasched.predictors.porting.predictor import PortedPredictor
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.predictors.tournament import Tournament
from metasched.records import InputError
from metasched.store.documents.adaptive import PublishedDocument, RobustDocument, document_of
from metasched.store.documents.cloud import CloudDocument
from metasched.store.documents.metered import MeteredDocument
from metasched.store.documents.parts import checked
from metasched.store.documents.phased import PhasedDocument
from metasched.store.documents.platforms import PlatformsDocument
from metasched.store.documents.ported import PortedDocument
from metasched.store.documents.spmd import SpmdDocument
from metasched.store.documents.tournament import TournamentDocument

#: What a document says it is, and the only version of its layout there has been.
FORMAT, VERSION = "metasched-model", 1

#: Predictors that have a document.
Saved = (
    PublishedPredictor
    | RobustPredictor
    | MeteredPredictor
    | PortedPredictor
    | PlatformsPredictor
    | PhasedPredictor
    | SpmdPredictor
    | CloudPredictor
    | Tournament
)
_Document = (
    PublishedDocument
    | RobustDocument
    | MeteredDocument
    | PortedDocument
    | PlatformsDocument
    | PhasedDocument
    | SpmdDocument
    | CloudDocument
    | TournamentDocument
)

_DOCUMENTS: dict[str, type[_Document]] = {
    "published": PublishedDocument,
    "robust": RobustDocument,
    "metered": MeteredDocument,
    "ported": PortedDocument,
    "platforms": PlatformsDocument,
    "phased": PhasedDocument,
    "spmd": SpmdDocument,
    "cloud": CloudDocument,
    "tournament": TournamentDocument,
}


class _Header(BaseModel):
    format: str
    version: int
    method: str


def dump(predictor: Predictor) -> str:
    """Write a predictor as a JSON document.

    Raises
    ------
    InputError : there is no document for this kind of predictor, or it has learned nothing yet.
    """
    try:
        return _document_of(predictor).model_dump_json()
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(step) for step in first["loc"])
        raise InputError(f"a {predictor.name} predictor cannot be saved: {place}: {first['msg']}") from None


def _document_of(predictor: Predictor) -> _Document:
    if isinstance(predictor, PublishedPredictor | RobustPredictor):
        return document_of(predictor)
    if isinstance(predictor, MeteredPredictor):
        return MeteredDocument.of(predictor)
    if isinstance(predictor, PortedPredictor):
        return PortedDocument.of(predictor)
    if isinstance(predictor, PlatformsPredictor):
        return PlatformsDocument.of(predictor)
    if isinstance(predictor, PhasedPredictor):
        return PhasedDocument.of(predictor)
    if isinstance(predictor, SpmdPredictor):
        if predictor.fitted is None:
            raise InputError("a spmd predictor that has learned nothing yet cannot be saved")
        return SpmdDocument.of(predictor)
    if isinstance(predictor, CloudPredictor):
        return CloudDocument.of(predictor)
    if isinstance(predictor, Tournament):
        return TournamentDocument.of(predictor)
    raise InputError(f"a {predictor.name} predictor cannot be saved, expected {_either()}")


def parse(text: str, *, where: str = "model") -> Saved:
    """Read a JSON document back into a predictor.

    Raises
    ------
    InputError : the document is cut short, of another format or version, or not sound; the line says where.

    Examples
    --------
    >>> parse('{"format": "metasched-model", "version": 7, "method": "robust"}')
    Traceback (most recent call last):
    metasched.records.InputError: model: version 7 of the model format, expected 1: fit the model again
    """
    header = checked(_Header, text, where)
    if header.format != FORMAT:
        raise InputError(f"format is {header.format!r}, expected {FORMAT!r}", where=where)
    if header.version != VERSION:
        raise InputError(
            f"version {header.version} of the model format, expected {VERSION}: fit the model again", where=where
        )
    if header.method not in _DOCUMENTS:
        raise InputError(f"method is {header.method!r}, expected {_either()}", where=where)
    document = checked(_DOCUMENTS[header.method], text, where)
    try:
        if isinstance(document, SpmdDocument) and document.fit is None:
            raise InputError("the spmd predictor has learned nothing, expected fit to hold what was fitted")
        return document.build()
    except ValueError as error:
        raise InputError(str(error), where=where) from None


def _either() -> str:
    *others, last = _DOCUMENTS
    return f"{', '.join(others)} or {last}"
