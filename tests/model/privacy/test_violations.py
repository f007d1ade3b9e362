"""Which violation of a requirement is described: the worst."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from pmlopt import Mechanism, Prior
from pmlopt.model.privacy.requirement import describe_worst_pair


def test_the_level_that_is_farthest_above_its_limit_is_named() -> None:
    none = SimpleNamespace(required_ratios=lambda p: None)
    privacy: Any = SimpleNamespace(
        for_prior=lambda prior: none,
        limits={"one": 0.1, "other": 0.8},
        levels=lambda prior, mechanism: {"one": 0.5, "other": 0.9},
    )
    text = describe_worst_pair(privacy, Prior([0.5, 0.5]), Mechanism(np.eye(2)))
    assert text == "the level one is 0.5 nats, and the limit is 0.1"
