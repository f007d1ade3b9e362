"""Mechanisms and values known by formula: warm starts and verification oracles."""

from pmlopt.model.closed_forms.envelopes import (
    randomized_response_adp,
    randomized_response_condition,
    randomized_response_envelope,
    randomized_response_lower_bound,
    randomized_response_thresholds,
    randomized_response_upper_bound,
)
from pmlopt.model.closed_forms.estimation import (
    least_ldp_estimation_error,
    least_pml_estimation_error,
    subset_selection,
)
from pmlopt.model.closed_forms.extremal import (
    binary,
    constant,
    deterministic,
    high_privacy,
    k_singular,
    robust_binary,
    uniform,
)
from pmlopt.model.closed_forms.local_privacy import (
    exponential,
    geometric,
    ldp_for_pml,
    pml_of_ldp,
    randomized_response,
)
from pmlopt.model.closed_forms.parity import parity_distortion, parity_leakage, parity_prior
from pmlopt.model.closed_forms.worst_case import support_bound, utility_safe_level, utility_safe_mechanism

__all__ = [
    "binary",
    "constant",
    "deterministic",
    "exponential",
    "geometric",
    "high_privacy",
    "k_singular",
    "ldp_for_pml",
    "least_ldp_estimation_error",
    "least_pml_estimation_error",
    "parity_distortion",
    "parity_leakage",
    "parity_prior",
    "pml_of_ldp",
    "randomized_response",
    "randomized_response_adp",
    "randomized_response_condition",
    "randomized_response_envelope",
    "randomized_response_lower_bound",
    "randomized_response_thresholds",
    "randomized_response_upper_bound",
    "robust_binary",
    "subset_selection",
    "support_bound",
    "uniform",
    "utility_safe_level",
    "utility_safe_mechanism",
]
