"""What problem files say shortly: priors, sets and mechanisms by what they are made from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pmlopt.core.arrays import FloatArray, Label
from pmlopt.core.records import COUNT, INFINITE, Given, Range, Shape
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.data.secret import Secret
from pmlopt.errors import InstanceError
from pmlopt.measures import information_density
from pmlopt.model.closed_forms import randomized_response
from pmlopt.model.closed_forms.catalogue import CLOSED_FORMS
from pmlopt.model.privacy import PML, MetricPrivacy, Pufferfish, Requirement
from pmlopt.model.queries import ModularSum, Query, exponential, laplace, symmetric_channel
from pmlopt.model.uncertainty import Box, JointLaws, L1Ball, PriorSet, confidence_ball, confidence_box
from pmlopt.model.utility import ExpectedGain, Utility

Count: TypeAlias = Annotated[int, Range(1), COUNT]
Labels: TypeAlias = tuple[Label, ...] | None
TheSecret: TypeAlias = Annotated[Secret, Given("secret")]
ThePrior: TypeAlias = Annotated[Prior, Given("prior")]
TheQuery: TypeAlias = Annotated[Query, Given("query")]


def _check_one(**given: Any) -> None:
    """Complain unless something is given for exactly one name."""
    found = [name for name, value in given.items() if value is not None]
    if len(found) != 1:
        raise InstanceError(f"give exactly one of {', '.join(given)}, not {' and '.join(found) or 'none'}")


def _prior(
    uniform: Count | None = None,
    probabilities: Annotated[FloatArray, Shape("letters")] | None = None,
    counts: Mapping[str, int] | tuple[int, ...] | None = None,
    labels: Labels = None,
) -> Prior:
    _check_one(uniform=uniform, probabilities=probabilities, counts=counts)
    if uniform is not None:
        return Prior.uniform(uniform, labels)
    return Prior(probabilities, labels) if counts is None else Prior.from_counts(counts, labels)  # type: ignore[arg-type]


def _secret(
    counts: Annotated[NDArray[np.object_], Shape("values", "letters")] | None = None,
    joint: Annotated[FloatArray, Shape("values", "letters")] | None = None,
    labels: Labels = None,
    values: Labels = None,
    name: str = "the secret",
) -> Secret:
    _check_one(counts=counts, joint=joint)
    if counts is not None:
        return Secret.from_counts(counts, labels, values, name)
    return Secret(joint, labels, values, name)  # type: ignore[arg-type]


def _metric(
    epsilon: float,
    distance: str | Annotated[FloatArray, Shape("letters", "letters"), INFINITE] | None = None,
    edges: tuple[tuple[Label, Label, float], ...] | None = None,
) -> MetricPrivacy:
    _check_one(distance=distance, edges=edges)
    if edges is not None:
        return MetricPrivacy(epsilon, {(one, other): length for one, other, length in edges})
    return MetricPrivacy(epsilon, distance)  # type: ignore[arg-type]


def _pml(
    epsilon: float | tuple[float, ...],
    over: PriorSet | JointLaws | None = None,
    about: TheSecret | None = None,
) -> Requirement:
    found: Requirement = PML(epsilon, over, about)
    return found


def _pufferfish(
    epsilon: float, secret: TheSecret, pairs: tuple[tuple[Label, Label], ...] | None = None
) -> Pufferfish:
    return Pufferfish(epsilon, secret, pairs)


def _near(secret: TheSecret, radius: float) -> JointLaws:
    return JointLaws.ball(secret, radius)


def _joint_confidence(secret: TheSecret, delta: float) -> JointLaws:
    return JointLaws.confidence(secret, delta)


def _confidence_ball(sample: ThePrior, delta: float) -> L1Ball:
    return confidence_ball(sample, delta)


def _confidence_box(sample: ThePrior, delta: float) -> Box:
    return confidence_box(sample, delta)


def _balanced_match(prior: ThePrior) -> ExpectedGain:
    return ExpectedGain(np.diag(1 / prior.pmf))


def _density(of: str, prior: ThePrior, privacy: Annotated[Requirement, Given("privacy")]) -> ExpectedGain:
    if of not in CLOSED_FORMS:
        raise InstanceError(f"of is {of!r}: write one of {', '.join(CLOSED_FORMS)}")
    mechanism = CLOSED_FORMS[of](prior, privacy, np.zeros((prior.size, 1)))
    return ExpectedGain(information_density(prior, mechanism.matrix))


def _matrix(
    matrix: Annotated[FloatArray, Shape("letters", "outputs")],
    letters: Annotated[Labels, Given("labels")],
) -> Mechanism:
    return Mechanism(matrix, letters)


def _response(epsilon: float, prior: ThePrior) -> Mechanism:
    return Mechanism(randomized_response(prior.size, epsilon).matrix, prior.labels, prior.labels)


def _symmetric_channel(error: float, query: TheQuery) -> Mechanism:
    return symmetric_channel(query, error)


def _laplace(epsilon: float, query: TheQuery) -> Mechanism:
    return laplace(query, epsilon)


def _exponential(epsilon: float, query: TheQuery) -> Mechanism:
    return exponential(query, epsilon)


def _modular_sum(records: int, modulus: int, letters: int | tuple[int, ...] = 2) -> ModularSum:
    return ModularSum(records, modulus, letters)


FORMS: Mapping[type, Mapping[str, Callable[..., Any]]] = {
    Prior: {"": _prior},
    Secret: {"": _secret},
    Requirement: {"pml": _pml, "pufferfish": _pufferfish, "metric": _metric},
    PriorSet: {"confidence-ball": _confidence_ball, "confidence-box": _confidence_box},
    JointLaws: {"joint-ball": _near, "joint-confidence": _joint_confidence},
    Utility: {"balanced-match": _balanced_match, "information-density": _density},
    Mechanism: {
        "": _matrix,
        "randomized-response": _response,
        "symmetric-channel": _symmetric_channel,
        "laplace": _laplace,
        "exponential": _exponential,
    },
    Query: {"modular-sum": _modular_sum},
}
"""What a problem file may write beside records, by class and `kind`, or without one."""

Matrix: TypeAlias = Annotated[FloatArray, Shape("letters", "outputs")]
FIELDS: Mapping[str, Any] = {
    "secret": Secret,
    "prior": Prior,
    "query": Query,
    "mechanism": Mechanism,
    "privacy": Requirement,
    "utility": Utility | str,
    "order": Matrix,
    "threshold": int,
    "epsilon": float,
    "delta": float,
    "expected": float,
    "worst": float,
    "entropy": float,
    "distortion": float,
    "leakage": float,
    "loss": Matrix,
    "outputs": Count | tuple[Label, ...],
}
"""The parameters of builders that a problem file may give, with their types, in the order of reading."""
