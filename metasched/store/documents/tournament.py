"""Documents of tournaments: every entrant's own document, and its recent errors."""

from __future__ import annotations

from collections import deque
from typing import Annotated, Literal

from pydantic import Field

from metasched.predictors.contract import Predictor
from metasched.predictors.formulas.published import PublishedPredictor
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.predictors.tournament import WINDOW, Tournament
from metasched.records import InputError
from metasched.store.documents import document_of, method_of
from metasched.store.documents.adaptive import PublishedDocument, RobustDocument
from metasched.store.documents.cloud import CloudDocument
from metasched.store.documents.parts import ModelPart, Part, Row, SettingPart, rows, settings_of, window
from metasched.store.documents.signature import SignatureDocument
from metasched.store.documents.simulated import SimulatedDocument
from metasched.store.documents.spmd import SpmdDocument
from monitors.validated_fields import NotNegative

#: Methods of stored tournaments, and those of them whose documents have contents before any run.
METHODS = ("published", "robust", *(FROM_DESCRIPTIONS := ("spmd", "cloud", "signature", "simulated")))
_Document = Annotated[
    PublishedDocument | RobustDocument | SpmdDocument | CloudDocument | SignatureDocument | SimulatedDocument,
    Field(discriminator="method"),
]
#: Infinite errors are stored as None, since JSON has no infinity.
_Error = NotNegative | None


class _Entrant(Part):
    name: str
    #: None for one that sits out and has learned nothing.
    document: _Document | None
    errors: Annotated[list[_Error], Field(max_length=WINDOW)]
    absent: str | None

    def build(self, application: str, cluster: str) -> Predictor:
        if self.document is not None:
            if self.document.method != self.name:
                raise InputError(f"entrant {self.name} has a document of method {self.document.method}")
            return self.document.build()
        if self.name == "published":
            return PublishedPredictor(application, cluster)
        if self.name == "robust":
            return RobustPredictor(application, cluster)
        raise InputError(f"entrant {self.name} has no document")


class TournamentDocument(ModelPart):
    """A tournament as JSON: its entrants and their recent errors."""

    method: Literal["tournament"] = "tournament"
    application: str
    cluster: str
    entrants: Annotated[list[_Entrant], Field(min_length=1, max_length=20)]
    window: list[Row] = Field(min_length=1)
    #: Their settings, in the same order; none where no run has any.
    settings: list[SettingPart] = Field(default_factory=list)
    seen: Annotated[int, Field(ge=1)]

    @classmethod
    def of(cls, tournament: Tournament) -> TournamentDocument:
        """What a tournament is kept as."""
        if not tournament.errors:
            raise InputError("a tournament that has learned nothing yet cannot be saved")
        return cls(
            application=tournament.application,
            cluster=tournament.cluster,
            entrants=[
                _Entrant(
                    name=entrant.name,
                    document=None
                    if entrant.name in tournament.absent and method_of(entrant) not in FROM_DESCRIPTIONS
                    else document_of(entrant),
                    errors=[error if error < float("inf") else None for error in tournament.errors[entrant.name]],
                    absent=tournament.absent.get(entrant.name),
                )
                for entrant in map(_known, tournament.entrants)
            ],
            window=rows(tournament.window),
            settings=settings_of(tournament.window),
            seen=tournament.window.seen,
        )

    def build(self) -> Tournament:
        """The tournament that was written, ready to predict and to learn."""
        entrants = [entrant.build(self.application, self.cluster) for entrant in self.entrants]
        tournament = Tournament(entrants, self.application, self.cluster)
        capacity = tournament.window.capacity
        tournament.window = window(self.window, self.application, self.cluster, self.seen, capacity, self.settings)
        for entrant in self.entrants:
            errors = (float("inf") if error is None else error for error in entrant.errors)
            tournament.errors[entrant.name] = deque(errors, maxlen=WINDOW)
            if entrant.absent is not None:
                tournament.absent[entrant.name] = entrant.absent
            elif entrant.document is None or (isinstance(entrant.document, SpmdDocument) and not entrant.document.fit):
                raise InputError(f"entrant {entrant.name} has learned nothing, expected a word on why it sits out")
        if len(tournament.absent) == len(entrants):
            raise InputError("all entrants sit out, expected one that answers")
        return tournament


def _known(entrant: Predictor) -> Predictor:
    if method_of(entrant) not in METHODS:
        raise InputError(f"a tournament with a {entrant.name} predictor cannot be saved")
    return entrant
