"""Estimation from released data: frequencies with errors, tables, and levels from samples."""

from pmlopt.measures.estimable import Estimable, estimable
from pmlopt.releases.accounts.joint import cross_mechanism
from pmlopt.releases.estimation.comparisons import (
    comparison_power,
    detectable_difference,
    people_to_compare,
)
from pmlopt.releases.estimation.decoder import export_decoder
from pmlopt.releases.estimation.deconvolution import (
    MeanEstimate,
    estimate_noisy_frequencies,
    estimate_noisy_mean,
)
from pmlopt.releases.estimation.frequencies import Estimate, estimate
from pmlopt.releases.estimation.imputation import PooledEstimates, impute, pool
from pmlopt.releases.estimation.intervals import GoodnessOfFit, goodness_of_fit, independence
from pmlopt.releases.estimation.model_designs import coefficient_error
from pmlopt.releases.estimation.people import half_width, level_needed, people_needed
from pmlopt.releases.estimation.regression import FittedModel, model
from pmlopt.releases.estimation.sampled_levels import (
    SampledLevel,
    level_from_samples,
    samples_to_refute,
)
from pmlopt.releases.estimation.sampled_tails import (
    LevelAudit,
    SampledLeakage,
    cut_outputs,
    leakage_from_samples,
    samples_needed,
)

__all__ = [
    "Estimable", "Estimate", "FittedModel", "GoodnessOfFit", "LevelAudit", "MeanEstimate",
    "PooledEstimates", "SampledLeakage", "SampledLevel", "coefficient_error", "comparison_power",
    "cross_mechanism", "cut_outputs", "detectable_difference", "estimable", "estimate",
    "estimate_noisy_frequencies", "estimate_noisy_mean", "export_decoder", "goodness_of_fit",
    "half_width", "impute", "independence", "leakage_from_samples", "level_from_samples",
    "level_needed", "model", "people_needed", "people_to_compare", "pool", "samples_needed",
    "samples_to_refute",
]  # fmt: skip
