"""The closed forms that a problem file may name: the mechanism or the value that belongs to a program."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from pmlopt.data.mechanism import Mechanism
from pmlopt.errors import InstanceError
from pmlopt.measures import ldp_level, leakage_level
from pmlopt.model import closed_forms
from pmlopt.model.closed_forms.catalogue import CLOSED_FORMS
from pmlopt.model.closed_forms.worst_case import uniform_on
from pmlopt.model.queries.channel import loss_table
from pmlopt.programs.envelope.program import EnvelopeProgram
from pmlopt.programs.estimation.methods import known_error
from pmlopt.programs.estimation.program import EstimationDesign
from pmlopt.programs.least_leakage.program import LeastLeakage
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.programs.program import Program
from pmlopt.programs.record_leakage.closed_bounds import is_parity, parity_error
from pmlopt.programs.record_leakage.program import RecordLeakage
from pmlopt.programs.subconvex.program import ColumnDesign
from pmlopt.programs.tradeoff.program import TradeoffProgram

CLOSED_FORMS_OF: Mapping[str, tuple[str, ...]] = {
    "design": (*CLOSED_FORMS, "least_ldp_estimation_error", "least_pml_estimation_error"),
    "worst_case_utility": ("utility_safe_mechanism",),
    "envelope": ("randomized_response_envelope",),
    "record_leakage": ("parity_leakage",),
    "leakage_distortion": ("parity_leakage",),
    "distortion_leakage": ("parity_distortion",),
}
"""The names of the closed forms that are known for the programs of a builder."""


def closed_form(program: Program[Any], name: str) -> Mechanism:
    """The mechanism of a closed form, with the labels of the program.

    Raises:
        InstanceError: it is none that belongs to the program.
    """
    if isinstance(program, LeastLeakage) and name == "utility_safe_mechanism":
        return uniform_on(program.allowed)
    if not isinstance(program, LinearDesign | ColumnDesign) or name not in CLOSED_FORMS:
        raise InstanceError(f"there is no mechanism by the name {name!r} for {program!r}")
    gains = program.gains if isinstance(program, LinearDesign) else np.zeros((program.prior.size, 1))
    form = CLOSED_FORMS[name](program.prior, program.privacy, gains)
    fits = program.outputs is not None and len(form.outputs) == len(program.outputs)
    return Mechanism(form.matrix, program.prior.labels, program.outputs if fits else None)


def closed_value(program: Program[Any], name: str) -> float:
    """The value of a program by a closed form.

    Raises:
        InstanceError: it is none that belongs to the program.
    """
    if isinstance(program, RecordLeakage):
        query = program.channel.query
        error = parity_error(query, program.channel.mechanism)
        if error is None:
            raise InstanceError(f"the closed form {name} is for a parity through a symmetric channel")
        return closed_forms.parity_leakage(query.records, error, program.entropy)
    if isinstance(program, EnvelopeProgram):
        return _envelope_value(program, name)
    if isinstance(program, TradeoffProgram):
        return _tradeoff_value(program, name)
    if isinstance(program, EstimationDesign):
        return _estimation_value(program, name)
    if isinstance(program, LinearDesign | ColumnDesign):
        return program.utility.value(program.prior, closed_form(program, name))
    if isinstance(program, LeastLeakage):
        return leakage_level(program.prior, closed_form(program, name))
    raise InstanceError(f"no closed form is known for {program!r}")


def _estimation_value(program: EstimationDesign, name: str) -> float:
    known = known_error(program, math.nan)
    if known is None or known.name != name:
        raise InstanceError(f"the closed form {name} is for frequencies at the uniform prior under its bound")
    return known.value


def _envelope_value(program: EnvelopeProgram, name: str) -> float:
    level = ldp_level(program.given)
    if not np.isfinite(level) or not np.allclose(
        program.given.matrix, closed_forms.randomized_response(program.prior.size, level).matrix, atol=1e-12
    ):
        raise InstanceError(f"the closed form {name} is for randomized response")
    return closed_forms.randomized_response_envelope(program.prior, level, program.delta)


def _tradeoff_value(program: TradeoffProgram, name: str) -> float:
    query, orbits = program.query, program.orbits
    own = orbits.masses[:, None] * loss_table(query, None)[0][orbits.values]
    if not is_parity(query) or not np.array_equal(program.losses, own):
        raise InstanceError(f"the closed form {name} is for a parity and its own loss")
    if name == "parity_leakage":
        return closed_forms.parity_leakage(query.records, min(program.limit, 0.5), program.entropy)
    return closed_forms.parity_distortion(query.records, program.limit, program.entropy)
