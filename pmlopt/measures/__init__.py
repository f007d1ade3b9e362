"""How much a given mechanism leaks and how useful it is: numpy only, everything in nats."""

from pmlopt.measures.about_secrets import SecretWitness, secret_densities, secret_witness
from pmlopt.measures.approximate import (
    approximate_pml_level,
    binary_envelope,
    binary_event,
    composed_envelope_bound,
    conditional_maximal_leakage,
    counted_envelope_bound,
    envelope_bounds,
    envelope_slack,
    event_leakage,
    leakage_quantile,
    mean_slack,
    slack,
)
from pmlopt.measures.failure import failure_probability
from pmlopt.measures.independent_records import independent_leakage
from pmlopt.measures.information import channel_capacity, mutual_information
from pmlopt.measures.leakage import (
    information_density,
    leakage_level,
    leakage_parts,
    lip_levels,
    pointwise_leakage,
)
from pmlopt.measures.prior_free import ldp_level, maximal_leakage
from pmlopt.measures.privacy_loss import (
    approximate_dp_delta,
    approximate_dp_level,
    leakage_law,
    privacy_loss,
    privacy_loss_law,
    probabilistic_dp_delta,
)
from pmlopt.measures.regions import privacy_region, region_boundaries

__all__ = [
    "SecretWitness",
    "approximate_dp_delta",
    "approximate_dp_level",
    "approximate_pml_level",
    "binary_envelope",
    "binary_event",
    "channel_capacity",
    "composed_envelope_bound",
    "conditional_maximal_leakage",
    "counted_envelope_bound",
    "envelope_bounds",
    "envelope_slack",
    "event_leakage",
    "failure_probability",
    "independent_leakage",
    "information_density",
    "ldp_level",
    "leakage_law",
    "leakage_level",
    "leakage_parts",
    "leakage_quantile",
    "lip_levels",
    "maximal_leakage",
    "mean_slack",
    "mutual_information",
    "pointwise_leakage",
    "privacy_loss",
    "privacy_loss_law",
    "privacy_region",
    "probabilistic_dp_delta",
    "region_boundaries",
    "secret_densities",
    "secret_witness",
    "slack",
]
