"""Verifiable releases: data files released with a report, and their checks."""

from pmlopt.publishing.checking import check
from pmlopt.publishing.deployment import describe_deployment
from pmlopt.publishing.estimating import estimate_release
from pmlopt.publishing.plans import ReleasePlan, read_plan
from pmlopt.publishing.release_fit import FitTest, assess_release_fit
from pmlopt.publishing.releasing import ReleaseDraft, release, write_release
from pmlopt.publishing.rounded_counts import choose_rounding_step
from pmlopt.publishing.stated_law import build_stated_prior, build_stated_secret

__all__ = [
    "FitTest",
    "ReleaseDraft",
    "ReleasePlan",
    "assess_release_fit",
    "build_stated_prior",
    "build_stated_secret",
    "check",
    "choose_rounding_step",
    "describe_deployment",
    "estimate_release",
    "read_plan",
    "release",
    "write_release",
]  # fmt: skip
