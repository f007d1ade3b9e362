"""A data file released with its report, and checked by whoever receives it."""

from pmlopt.publishing.checking import Fit, check, fit_of_release
from pmlopt.publishing.estimating import estimate_release
from pmlopt.publishing.plans import Plan, read_plan
from pmlopt.publishing.releasing import ReleaseDraft, release, write_release
from pmlopt.publishing.stated_law import rounding_step, stated_prior

__all__ = [
    "Fit", "Plan", "ReleaseDraft", "check", "estimate_release", "fit_of_release", "read_plan", "release",
    "rounding_step", "stated_prior", "write_release",
]  # fmt: skip
