"""The law of a mean of lifts where its window leaves mass out."""

from __future__ import annotations

import numpy as np
import pytest

from pmlopt.releases import shuffled as means_of_lifts
from pmlopt.releases.shuffled import mean_near


@pytest.mark.parametrize("t", [1.006, 1.012, 1.02])
def test_what_is_above_the_window_is_counted_in(t: float, monkeypatch: pytest.MonkeyPatch) -> None:
    people = 32_561
    counts = np.arange(people + 1)
    logs = np.append(0.0, np.cumsum(np.log((people - counts[:-1]) / counts[1:])))  # of binomial coefficients
    masses = np.exp(logs - logs.max())
    masses /= masses.sum()
    means = 0.5 + counts / people
    monkeypatch.setattr(means_of_lifts, "DEVIATIONS", 0.0)  # 40 counts on each side, half a deviation
    found = mean_near(np.array([0.5, 1.5]), np.array([0.5, 0.5]), people, t)
    last = found.first + (len(found.tails) - 1) * found.step
    assert means[-1] > last
    for point in (t, (t + last) / 2, last - 2 / people, last - 0.5 / people):
        assert found.tail(point) >= masses[means > point].sum() * (1 - 1e-10)
        assert found.excess(point) >= masses @ np.maximum(means - point, 0) * (1 - 1e-10)
