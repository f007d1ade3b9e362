"""Alias modules that re-export another module's names, with hints for names of other libraries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from pmlopt.core.suggestions import suggest_module

MEANT: Mapping[str, str] = {
    # what pmlopt calls otherwise
    "pml_level": "pmlopt.leakage_level",
    "level": "pmlopt.leakage_level",
    "leakage": "pmlopt.leakage_level",
    "pml": "pmlopt.PML",
    "compute_leakage": "pmlopt.leakage_level",
    "local_leakage": "pmlopt.measures.lip_levels",
    "verify": "pmlopt.verify_file",
    "verify_result": "pmlopt.verify_file",
    "load_mechanism": "pmlopt.Mechanism.load",
    "read_mechanism": "pmlopt.Mechanism.load",
    "decode": "pmlopt.estimate",
    "unbias": "pmlopt.estimate",
    "debias": "pmlopt.estimate",
    "estimate_frequencies": "pmlopt.estimate",
    "optimize": "pmlopt.solve",
    "optimise": "pmlopt.solve",
    "optimal_mechanism": "pmlopt.design",
    "design_mechanism": "pmlopt.design",
    "compose": "pmlopt.releases.compose",
    "composition": "pmlopt.releases.compose",
    "Crowd": "pmlopt.releases.StreamPopulation",
    "MI": "pmlopt.MutualInformation",
    "Distribution": "pmlopt.Prior",
    "GeoIndistinguishability": "pmlopt.MetricPrivacy",
    "DPrivacy": "pmlopt.MetricPrivacy",
    "BinaryLaplace": "pmlopt.noise.Laplace",
    "BinaryGaussian": "pmlopt.noise.Gaussian",
    # OpenDP
    "Measurement": "pmlopt.adapters.measurements",
    "make_randomized_response": "pmlopt.closed_forms.randomized_response",
    "make_randomized_response_bool": "pmlopt.closed_forms.randomized_response",
    "then_randomized_response": "pmlopt.closed_forms.randomized_response",
    "make_laplace": "pmlopt.noise.Laplace",
    "then_laplace": "pmlopt.noise.Laplace",
    "make_gaussian": "pmlopt.noise.Gaussian",
    "then_gaussian": "pmlopt.noise.Gaussian",
    "make_base_discrete_laplace": "pmlopt.noise.Geometric",
    "make_basic_composition": "pmlopt.releases.compose",
    "make_sequential_composition": "pmlopt.releases.compose",
    "Odometer": "pmlopt.Ledger",
    # diffprivlib, Google's and IBM's libraries
    "BudgetAccountant": "pmlopt.Ledger",
    "PrivacyAccountant": "pmlopt.Ledger",
    "Accountant": "pmlopt.Ledger",
    "Binary": "pmlopt.closed_forms.randomized_response",
    "Exponential": "pmlopt.closed_forms.exponential",
    "ExponentialCategorical": "pmlopt.closed_forms.exponential",
    "Geometric": "pmlopt.closed_forms.geometric",
    "Laplace": "pmlopt.noise.Laplace",
    "Gaussian": "pmlopt.noise.Gaussian",
    "randomized_response": "pmlopt.closed_forms.randomized_response",
    "randomised_response": "pmlopt.closed_forms.randomized_response",
    "exponential_mechanism": "pmlopt.closed_forms.exponential",
    # cvxpy
    "Problem": "pmlopt.Program",
    "Minimize": "pmlopt.ExpectedLoss",
    "Maximize": "pmlopt.ExpectedGain",
    "Variable": "pmlopt.Program",
    "installed_solvers": "pmlopt.solvers_for",
    # qif
    "bayes_vulnerability": "pmlopt.utility.GuessingProbability",
    "posterior_vulnerability": "pmlopt.utility.GuessingProbability",
    "bayes_risk": "pmlopt.utility.GuessingProbability",
    "g_vuln": "pmlopt.GainLeakage",
    "g_leakage": "pmlopt.GainLeakage",
    "mult_leakage": "pmlopt.maximal_leakage",
    "mult_capacity": "pmlopt.maximal_leakage",
    "min_entropy_leakage": "pmlopt.maximal_leakage",
    "min_entropy": "pmlopt.maximal_leakage",
    "shannon": "pmlopt.mutual_information",
    "Channel": "pmlopt.Mechanism",
    "channel": "pmlopt.Mechanism",
    "probab": "pmlopt.Prior",
    "d_privacy": "pmlopt.MetricPrivacy",
    # sdcMicro, the cell key method
    "pram": "pmlopt.design",
    "PRAM": "pmlopt.design",
    "pramWRAPPER": "pmlopt.design",
    "ptable": "pmlopt.releases.noise.tables",
    "create_ptable": "pmlopt.releases.noise.tables",
}
"""What to write for names that people know from other libraries, as the path of what is meant."""


def did_you_mean(name: str, modules: Mapping[str, Any]) -> str:
    """Return a hint for an unknown name: its equivalent, its module, or the nearest name.

    Examples:
        >>> did_you_mean("pml_level", {})
        ': write pmlopt.leakage_level'
    """
    meant = MEANT.get(name)
    found = suggest_module(name, modules)
    if meant is not None and not found.startswith(": it is"):
        return f": write {meant}"
    return found


def delegate_to(place: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return the module-level `__getattr__`, `__dir__` and `__all__` of an alias module.

    Examples:
        >>> attribute, names, public = delegate_to("pmlopt.errors")
        >>> attribute("InputError").__name__, "InputError" in names(), "InputError" in public
        ('InputError', True, True)
    """
    module = import_module(place)
    public = list(
        getattr(module, "__all__", [one for one in vars(module) if not one.startswith("_")])
    )
    short = f"pmlopt.{place.rpartition('.')[2]}"

    def attribute(name: str) -> Any:
        if hasattr(module, name):
            return getattr(module, name)
        raise AttributeError(f"{short} has no {name!r}{did_you_mean(name, {short: module})}")

    return attribute, lambda: sorted({*dir(module), *public}), public
