"""Section 3.5 from end to end: the scale factors of a target platform, and the ported model that starts from them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from metasched.predictors.contract import Predictor
from metasched.predictors.formulas.published import PublishedPredictor
from metasched.predictors.memory.representable import refuse_unrepresentable
from metasched.predictors.memory.window import observations
from metasched.predictors.porting.factors import Factor, bandwidth_factor, cpu_factor, dedicated
from metasched.predictors.porting.link_sharing import LinkSharing
from metasched.predictors.porting.ported_formula import PortedFormula
from metasched.predictors.porting.predictor import PortedPredictor
from metasched.predictors.porting.reference import Reference
from metasched.predictors.porting.transfer import misfit
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import InputError, Run
from metasched.validation import Located

#: Most processors of a dedicated run that the scale factors are found with.
PAIR = 2


def port(
    reference: PublishedPredictor | RobustPredictor,
    reference_runs: Iterable[Run],
    target_runs: Iterable[Run],
    sharing: LinkSharing | None = None,
) -> PortedPredictor:
    """Port a model with dedicated runs on one and on two processors of both platforms.

    Parameters
    ----------
    reference : the model learned on the reference platform.
    reference_runs : runs there; those that are not dedicated, or on more processors, are passed over.
    target_runs : runs on one target platform. Its scale factors are found from the dedicated ones on one and on two
        processors; the model then learns them all.
    sharing : how many nodes both platforms have, where that is known.

    Raises
    ------
    InputError : dedicated runs are missing, the platforms have no problem sizes in common, or a run has numbers that
        no model can be fitted to.
    """
    reference_runs, target_runs = tuple(reference_runs), tuple(target_runs)
    refuse_unrepresentable((*reference_runs, *target_runs))
    one, two = (dedicated(reference_runs, count, where="reference runs") for count in (1, PAIR))
    target_one, target_two = (dedicated(target_runs, count, where="target runs") for count in (1, PAIR))
    rcpu = cpu_factor(observations(one), observations(target_one))
    ratio = max(run.min_avg_avail_bw for run in two) / max(run.min_avg_avail_bw for run in target_two)
    learned = Reference.of(reference, [*one, *two])
    unscaled = PortedFormula(learned, 1.0, LinkSharing())
    rbw = Factor(1.0, 1.0, 1.0)
    if learned.communicates:
        known, new = observations([*one, *two]), observations([*target_one, *target_two])
        most = reference.state.domain.most_processors
        ported = PortedFormula(learned, ratio, replace(sharing or LinkSharing(), most_processors=most))
        points = ported.points(new.problem_size, new.processors, new.cpu, new.bw)
        rbw = bandwidth_factor(
            lambda log_rbw: misfit(points, ported.scaled(rcpu.value, math.exp(log_rbw)).log_error(new)),
            misfit(
                unscaled.points(known.problem_size, known.processors, known.cpu, known.bw), unscaled.log_error(known)
            ),
            len(new),
        )
    ported_predictor = PortedPredictor(
        reference,
        target_runs[0].cluster,
        rcpu,
        rbw,
        bandwidth_ratio=ratio,
        dedicated_runs=[*one, *two],
        sharing=sharing,
    )
    return ported_predictor.fit(target_runs)


def as_reference(model: Predictor) -> PublishedPredictor | RobustPredictor:
    """A model that can be ported.

    Raises
    ------
    InputError : it is of another method, such as one that is ported itself.
    """
    if not isinstance(model, PublishedPredictor | RobustPredictor):
        # A model of runs with clocks or energies has the name of the robust one, which it contains.
        kind = "of runs with clocks or energies" if model.name == RobustPredictor.name else f"itself {model.name}"
        raise InputError(f"is {kind}, expected a published or robust model")
    return model


def port_to_each(
    reference: PublishedPredictor | RobustPredictor,
    reference_runs: Iterable[Run],
    target_runs: Iterable[Run],
    nodes: Mapping[str, int] | None = None,
) -> dict[str, PortedPredictor]:
    """Port a model to every cluster that the runs of the targets name, in alphabetical order.

    Parameters
    ----------
    reference, reference_runs, target_runs : as :func:`port` takes them, the runs of all targets together.
    nodes : how many nodes clusters have, by name, where that is known.

    Raises
    ------
    InputError : a cluster is named that is neither the reference nor a target, or one cannot be ported to.
    """
    reference_runs, by_cluster = tuple(reference_runs), dict[str, list[Run]]()
    for run in target_runs:
        by_cluster.setdefault(run.cluster, []).append(run)
    nodes, known = nodes or {}, {reference.cluster, *by_cluster}
    if strange := sorted(nodes.keys() - known):
        raise InputError(f"nodes of {strange[0]} are given, expected one of {', '.join(sorted(known))}")
    found = {}
    for cluster in sorted(by_cluster):
        sharing = LinkSharing(nodes.get(reference.cluster), nodes.get(cluster))
        with Located(f"port to {cluster}"):
            found[cluster] = port(reference, reference_runs, by_cluster[cluster], sharing)
    return found
