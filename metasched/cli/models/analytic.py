"""Options of models that exist before any run: of profiles, of a signature, and of a simulation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from metasched.fitting import Factory
from metasched.predictors.analytic.cloud.predictor import CloudPredictor
from metasched.predictors.contract import Predictor
from metasched.records import InputError, Run
from metasched.store.files.cloud import read_hardware
from metasched.store.files.models import read_model
from metasched.store.files.profiles import read_any_profiles

#: The options without which there is nothing to make a model of, by method.
NEEDED = {"cloud": "--profile, --hardware and --profiled-size", "signature": "--signature", "simulated": "--simulated"}


@dataclass(frozen=True)
class Analytic:
    """Profiles with their servers, a signature with its hardware, and a simulation, as the options name them."""

    profile: Annotated[
        list[Path] | None,
        typer.Option(help="Profiles of small runs (CSV or mpiP), for cloud and the tournament; repeatable."),
    ] = None
    hardware: Annotated[Path | None, typer.Option(help="Servers that the profiles are for (TOML).")] = None
    profiled_size: Annotated[float | None, typer.Option(help="Problem size N of the profiles.")] = None
    signature: Annotated[
        Path | None,
        typer.Option(help="Application written by metasched signature fit, for signature and the tournament."),
    ] = None
    signature_size: Annotated[
        float | None,
        typer.Option(help="Problem size N of the signature; by default that of the runs, if they have one."),
    ] = None
    signature_hardware: Annotated[
        str | None,
        typer.Option(help="Hardware (a name, or a file) of the signature's runs; by default an assumed machine."),
    ] = None
    signature_network: Annotated[
        str | None, typer.Option(help="Entry of its network; by default the hardware's own.")
    ] = None
    simulated: Annotated[
        Path | None, typer.Option(help="Model written by metasched simulate --model, for simulated and the tournament.")
    ] = None

    def factories(self, method: str) -> Mapping[str, Factory]:
        """What makes the models that the options describe, by the name of their method.

        Parameters
        ----------
        method : that is asked for: the tournament takes them all, any other its own alone.

        Raises
        ------
        InputError : when options that go together are not all given or are of another method, or a file cannot be read.
        """
        made = {"cloud": self._of_profiles(), "signature": self._of_signature(), "simulated": self._of_simulation()}
        found = {name: factory for name, factory in made.items() if factory is not None}
        for name in found:
            if method not in (name, "tournament"):
                options = "--profile and its options are" if name == "cloud" else f"--{name} is"
                raise InputError(f"{options} given with --method {method}, expected --method {name} or tournament")
        if method in NEEDED and method not in found:
            raise InputError(f"--method {method} needs {NEEDED[method]}")
        return found

    def _of_profiles(self) -> Factory | None:
        if not self.profile and self.hardware is None and self.profiled_size is None:
            return None
        if not self.profile or self.hardware is None or self.profiled_size is None:
            raise InputError("--profile, --hardware and --profiled-size go together, expected all of them")
        found = [run for path in self.profile for run in read_any_profiles(path)]
        if any(run.servers > 1 for run in found):
            raise InputError("a profile of --profile ran on several servers, expected profiles of one server")
        profiles, servers, size = [run.profile for run in found], read_hardware(self.hardware), self.profiled_size

        def made(application: str, cluster: str, runs: Sequence[Run]) -> Predictor:
            return CloudPredictor(profiles, servers, problem_size=size, application=application, cluster=cluster)

        return made

    def _of_signature(self) -> Factory | None:
        size, hardware, network = self.signature_size, self.signature_hardware, self.signature_network
        if self.signature is None:
            if size is not None or hardware is not None or network is not None:
                raise InputError("--signature-size, --signature-hardware and --signature-network need --signature")
            return None
        if network is not None and hardware is None:
            raise InputError("--signature-network needs --signature-hardware")
        from metasched.predictors.analytic.signature import SignaturePredictor
        from metasched.signature.rules.reporting import caveats
        from metasched.signature.times.hardware import assumed
        from metasched.store.files.hardware import hardware_of
        from metasched.store.files.signatures import measured_in, read_application

        rules, document = read_application(self.signature)
        timed, notes = measured_in(document, self.signature), caveats(document)
        where = assumed() if hardware is None else hardware_of(hardware, network, 1)

        def made(application: str, cluster: str, runs: Sequence[Run]) -> Predictor:
            sizes = sorted({run.problem_size for run in runs})
            if size is None and len(sizes) != 1:
                several = ", ".join(f"{each:g}" for each in sizes[:4])
                raise InputError(
                    f"the runs have problem sizes {several or 'that are not known'}, give --signature-size"
                )
            own = sizes[0] if size is None else size
            return SignaturePredictor(
                rules, where, problem_size=own, timed=timed, application=application, cluster=cluster, notes=notes
            )

        return made

    def _of_simulation(self) -> Factory | None:
        path = self.simulated
        if path is None:
            return None

        def made(application: str, cluster: str, runs: Sequence[Run]) -> Predictor:
            found: Any = read_model(path)
            if found.name != "simulated":
                raise InputError(
                    f"is a {found.name} model, expected one of metasched simulate --model", where=str(path)
                )
            found.application, found.cluster = application, cluster
            model: Predictor = found
            return model

        return made
