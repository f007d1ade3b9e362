"""Alias modules that re-export another module's names, with hints for names of other libraries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from pmlopt.core.suggestions import suggest_module

_NAMES_ELSEWHERE: Mapping[str, str] = {
    "pmlopt.leakage_level": "pml_level level leakage compute_leakage",
    "pmlopt.PML": "pml",
    "pmlopt.measures.lip_levels": "local_leakage",
    "pmlopt.verify_file": "verify verify_result",
    "pmlopt.Mechanism.load": "load_mechanism read_mechanism",
    "pmlopt.estimate": "decode unbias debias estimate_frequencies",
    "pmlopt.solve": "optimize optimise",
    "pmlopt.design": "optimal_mechanism design_mechanism pram PRAM pramWRAPPER",
    "pmlopt.releases.compose": "compose composition make_basic_composition "
    "make_sequential_composition",
    "pmlopt.releases.StreamPopulation": "Crowd",
    "pmlopt.MutualInformation": "MI",
    "pmlopt.Prior": "Distribution probab",
    "pmlopt.MetricPrivacy": "GeoIndistinguishability DPrivacy d_privacy",
    "pmlopt.noise.Laplace": "BinaryLaplace make_laplace then_laplace Laplace",
    "pmlopt.noise.Gaussian": "BinaryGaussian make_gaussian then_gaussian Gaussian",
    "pmlopt.adapters.measurements": "Measurement",
    "pmlopt.closed_forms.randomized_response": "randomized_response randomised_response Binary "
    "make_randomized_response make_randomized_response_bool then_randomized_response",
    "pmlopt.noise.Geometric": "make_base_discrete_laplace",
    "pmlopt.Ledger": "Odometer BudgetAccountant PrivacyAccountant Accountant",
    "pmlopt.closed_forms.exponential": "Exponential ExponentialCategorical exponential_mechanism",
    "pmlopt.closed_forms.geometric": "Geometric",
    "pmlopt.Program": "Problem Variable",
    "pmlopt.ExpectedLoss": "Minimize",
    "pmlopt.ExpectedGain": "Maximize",
    "pmlopt.solvers_for": "installed_solvers",
    "pmlopt.utility.GuessingProbability": "bayes_vulnerability posterior_vulnerability bayes_risk",
    "pmlopt.GainLeakage": "g_vuln g_leakage",
    "pmlopt.maximal_leakage": "mult_leakage mult_capacity min_entropy_leakage min_entropy",
    "pmlopt.mutual_information": "shannon",
    "pmlopt.Mechanism": "Channel channel",
    "pmlopt.releases.noise.tables": "ptable create_ptable",
}
"""Names that people write, of pmlopt in other words and of OpenDP, diffprivlib, cvxpy, qif and sdcMicro, by
what they mean here."""

MEANT: Mapping[str, str] = {
    name: meant for meant, names in _NAMES_ELSEWHERE.items() for name in names.split()
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
