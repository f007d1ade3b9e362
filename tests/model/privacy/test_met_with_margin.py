"""What floats show with a margin holds in exact arithmetic, and in levels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmlopt import LDP, LIP, PML, MaximalLeakage, MetricPrivacy, Pufferfish, Secret
from pmlopt.data.mechanism import wrap_checked_matrix
from pmlopt.data.prior import Prior
from pmlopt.model.privacy import Requirement
from pmlopt.programs.exact.rounding import is_met_exactly, round_rows_to_grid

KINDS: dict[str, Callable[[Secret], Requirement]] = {
    "pml": lambda secret: PML(0.4),
    "ldp": lambda secret: LDP(0.7),
    "lip": lambda secret: LIP(0.5, 0.3),
    "metric": lambda secret: MetricPrivacy(0.3, "absolute"),
    "about a secret": lambda secret: PML(0.2, about=secret),
    "pufferfish": lambda secret: Pufferfish(0.3, secret),
    "both": lambda secret: PML(0.4) & MetricPrivacy(0.3, "absolute"),
}


def case(seed: int, rare: float) -> tuple[Secret, np.ndarray]:
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(4))
    p[0] = rare
    p /= p.sum()
    likely = rng.random(4)
    return Secret(np.array([p * likely, p * (1 - likely)])), rng.dirichlet(np.full(3, 0.5), 4)


@pytest.mark.parametrize("kind", KINDS)
@given(
    seed=st.integers(0, 2**32 - 1),
    digits=st.integers(8, 17),
    rare=st.sampled_from([0.3, 1e-9, 1e-200]),
)
def test_a_margin_in_floats_is_a_proof(kind: str, seed: int, digits: int, rare: float) -> None:
    """Along the way from the law of the output, next to where the requirement begins to fail."""
    secret, matrix = case(seed, rare)
    prior = secret.prior
    privacy = KINDS[kind](secret).for_prior(prior)
    law = prior.pmf @ matrix
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        held = privacy.holds(
            prior, wrap_checked_matrix(law + middle * (matrix - law), prior.labels)
        )
        low, high = (middle, high) if held else (low, middle)
    near = round_rows_to_grid(law + low * (1 - 10.0**-digits) * (matrix - law))
    if privacy.is_met_with_margin(prior, near):
        assert is_met_exactly(prior, privacy, near)
        assert privacy.holds(prior, wrap_checked_matrix(near, prior.labels))
    beyond = round_rows_to_grid(law + min(1.0, low * (1 + 10.0**-digits) + 1e-17) * (matrix - law))
    if not is_met_exactly(prior, privacy, beyond):
        assert not privacy.is_met_with_margin(prior, beyond)


@pytest.mark.parametrize("kind", KINDS)
def test_a_constant_is_met_with_a_margin(kind: str) -> None:
    secret, _ = case(0, 0.25)
    constant = np.tile([0.5, 0.25, 0.25], (4, 1))
    assert KINDS[kind](secret).is_met_with_margin(secret.prior, constant)


def test_where_floats_may_lose_digits_nothing_is_known() -> None:
    constant = np.full((2, 2), 0.5)
    assert not PML(0.5).is_met_with_margin(Prior([1e-290, 1.0]), constant)
    assert not MaximalLeakage(0.5).is_met_with_margin(Prior([0.5, 0.5]), constant)
    assert not LDP(0.0).is_met_with_margin(Prior([0.5, 0.5]), constant)
