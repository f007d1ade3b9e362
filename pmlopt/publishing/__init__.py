"""A data file released with its report, and checked by whoever receives it."""

from pmlopt.publishing.checking import Fit, check, fit_of_release
from pmlopt.publishing.plans import Plan, read_plan
from pmlopt.publishing.releasing import ReleaseDraft, release, write_release

__all__ = ["Fit", "Plan", "ReleaseDraft", "check", "fit_of_release", "read_plan", "release", "write_release"]
