"""Documents of models on several platforms, one for each; borrowed runs are determined again from these."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from metasched.predictors.porting.platforms import PlatformsPredictor
from metasched.records import InputError
from metasched.store.documents.adaptive import RobustDocument
from metasched.store.documents.parts import ModelPart


class PlatformsDocument(ModelPart):
    """The models of one application on several platforms as JSON."""

    method: Literal["platforms"] = "platforms"
    application: str
    models: Annotated[list[RobustDocument], Field(min_length=1, max_length=1000)]

    @classmethod
    def of(cls, predictor: PlatformsPredictor) -> PlatformsDocument:
        """What a predictor is kept as."""
        if not predictor.models:
            raise InputError("a platforms predictor that has learned nothing yet cannot be saved")
        return cls(
            application=predictor.application, models=[RobustDocument.of(model) for model in predictor.models.values()]
        )

    def build(self) -> PlatformsPredictor:
        """The predictor that was written, ready to predict and to learn."""
        models = {document.cluster: document.build() for document in self.models}
        if len(models) != len(self.models):
            raise InputError("models names a platform twice, expected each once")
        return PlatformsPredictor(self.application, models)
