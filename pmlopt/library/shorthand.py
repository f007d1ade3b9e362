"""Shorthand constructors of problem files for priors, sets and mechanisms."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pmlopt.core.numbers.arrays import DefaultLabels, FloatArray, Label
from pmlopt.core.records.fields import COUNT, INFINITE, ContextReference, Range, Shape
from pmlopt.data.chain import Chain
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.data.secret import Secret
from pmlopt.errors import InstanceError
from pmlopt.measures import information_density
from pmlopt.model.closed_forms import randomized_response
from pmlopt.model.closed_forms.catalogue import CLOSED_FORMS
from pmlopt.model.constraints import Constraint
from pmlopt.model.privacy import PML, MetricPrivacy, Pufferfish, Requirement
from pmlopt.model.queries import ModularSum, Query, exponential, laplace, symmetric_channel
from pmlopt.model.uncertainty import (
    JointLaws,
    PriorSet,
    confidence_ball,
    confidence_box,
    confidence_region,
)
from pmlopt.model.utility import ExpectedGain, Utility
from pmlopt.model.utility.linear import build_balanced_match

Count: TypeAlias = Annotated[int, Range(1), COUNT]
Labels: TypeAlias = tuple[Label, ...] | None
TheSecret: TypeAlias = Annotated[Secret, ContextReference("secret")]
ThePrior: TypeAlias = Annotated[Prior, ContextReference("prior")]
TheQuery: TypeAlias = Annotated[Query, ContextReference("query")]


def _make_shorthand(make: Callable[..., Any], **types: Any) -> Callable[..., Any]:
    """Return a shorthand constructor with typed parameters."""

    def build_from_fields(**values: Any) -> Any:
        return make(**values)

    known = inspect.signature(make).parameters
    build_from_fields.__annotations__ = types
    build_from_fields.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=known[name].default)
            for name in types
        ]
    )
    return build_from_fields


def _check_exactly_one(**given: Any) -> None:
    """Raise an error unless exactly one named argument is given."""
    found = [name for name, value in given.items() if value is not None]
    if len(found) != 1:
        raise InstanceError(
            f"give exactly one of {', '.join(given)}, not {' and '.join(found) or 'none'}"
        )


def _build_prior(
    uniform: Count | None = None,
    probabilities: Annotated[FloatArray, Shape("letters")] | None = None,
    counts: Mapping[str, int] | tuple[int, ...] | None = None,
    labels: Labels = None,
) -> Prior:
    """Build a prior from the fields of a problem file."""
    _check_exactly_one(uniform=uniform, probabilities=probabilities, counts=counts)
    if uniform is not None:
        return Prior.uniform(uniform, labels)
    if counts is None:
        return Prior(probabilities, labels)  # type: ignore[arg-type]
    if labels is None and not isinstance(counts, Mapping):
        labels = DefaultLabels(len(counts))  # a file with `counts` means no observations of people
    return Prior.from_counts(counts, labels)


def _build_secret(
    counts: Annotated[NDArray[np.object_], Shape("values", "letters")] | None = None,
    joint: Annotated[FloatArray, Shape("values", "letters")] | None = None,
    labels: Labels = None,
    values: Labels = None,
    name: str = "the secret",
) -> Secret:
    """Build a secret from the fields of a problem file."""
    _check_exactly_one(counts=counts, joint=joint)
    if counts is not None:
        return Secret.from_counts(counts, labels, values, name)
    return Secret(joint, labels, values, name)  # type: ignore[arg-type]


def _build_metric(
    epsilon: float,
    distance: str | Annotated[FloatArray, Shape("letters", "letters"), INFINITE] | None = None,
    edges: tuple[tuple[Label, Label, float], ...] | None = None,
) -> MetricPrivacy:
    """Build metric privacy from the fields of a problem file."""
    _check_exactly_one(distance=distance, edges=edges)
    if edges is not None:
        return MetricPrivacy(epsilon, {(one, other): length for one, other, length in edges})
    return MetricPrivacy(epsilon, distance)  # type: ignore[arg-type]


def _build_density(
    of: str, prior: ThePrior, privacy: Annotated[Requirement, ContextReference("privacy")]
) -> ExpectedGain:
    """Build the gain that is a closed form's information density."""
    if of not in CLOSED_FORMS:
        raise InstanceError(f"of is {of!r}: write one of {', '.join(CLOSED_FORMS)}")
    mechanism = CLOSED_FORMS[of](prior, privacy, np.zeros((prior.size, 1)))
    return ExpectedGain(information_density(prior, mechanism.matrix))


def _build_mechanism(
    matrix: Annotated[FloatArray, Shape("letters", "outputs")],
    letters: Annotated[Labels, ContextReference("labels")],
) -> Mechanism:
    """Build a mechanism from a matrix and its letters."""
    return Mechanism(matrix, letters)


def _build_randomized_response(epsilon: float, prior: ThePrior) -> Mechanism:
    """Build randomized response at a level on the letters of a prior."""
    return Mechanism(randomized_response(prior.size, epsilon).matrix, prior.labels, prior.labels)


SHORTHAND_CONSTRUCTORS: Mapping[type, Mapping[str, Callable[..., Any]]] = {
    Prior: {"": _build_prior},
    Secret: {"": _build_secret},
    Requirement: {
        "pml": _make_shorthand(
            PML.from_fields,
            epsilon=float | tuple[float, ...],
            over=PriorSet | JointLaws | None,
            about=TheSecret | None,
        ),
        "pufferfish": _make_shorthand(
            Pufferfish,
            epsilon=float,
            secret=TheSecret,
            pairs=tuple[tuple[Label, Label], ...] | None,
        ),
        "metric": _build_metric,
    },
    PriorSet: {
        "confidence-ball": _make_shorthand(confidence_ball, counts=ThePrior, delta=float),
        "confidence-box": _make_shorthand(confidence_box, counts=ThePrior, delta=float),
        "confidence-region": _make_shorthand(confidence_region, counts=ThePrior, delta=float),
    },
    JointLaws: {
        "joint-ball": _make_shorthand(JointLaws.ball, secret=TheSecret, radius=float),
        "joint-confidence": _make_shorthand(JointLaws.confidence, secret=TheSecret, delta=float),
    },
    Utility: {
        "balanced-match": _make_shorthand(build_balanced_match, prior=ThePrior),
        "information-density": _build_density,
    },
    Mechanism: {
        "": _build_mechanism,
        "randomized-response": _build_randomized_response,
        "symmetric-channel": _make_shorthand(symmetric_channel, query=TheQuery, error=float),
        "laplace": _make_shorthand(laplace, query=TheQuery, epsilon=float),
        "exponential": _make_shorthand(exponential, query=TheQuery, epsilon=float),
    },
    Query: {
        "modular-sum": _make_shorthand(
            ModularSum, records=int, modulus=int, letters=int | tuple[int, ...]
        ),
    },
}
"""What a problem file may write next to records, by class and `kind`, or without one."""

Matrix: TypeAlias = Annotated[FloatArray, Shape("letters", "outputs")]
FIELDS: Mapping[str, Any] = {
    "secret": Secret, "prior": Prior, "chain": Chain, "query": Query, "mechanism": Mechanism,
    "over": PriorSet, "privacy": Requirement | str, "utility": Utility | str, "order": Matrix | str,
    "threshold": int,
    "epsilon": float, "delta": float, "reach": float, "expected": float, "worst": float,
    "entropy": float, "distortion": float, "leakage": float, "loss": Matrix,
    "outputs": Count | tuple[Label, ...], "constraints": tuple[Constraint, ...],
    "released": tuple[Label, ...], "about": Literal["state", "path"] | int, "caps": tuple[float, ...],
}  # fmt: skip
"""The parameters of builders that a problem file may give, with their types, in the order of reading."""
