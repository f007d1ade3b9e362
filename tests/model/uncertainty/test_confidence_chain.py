"""Bounds on kernels that are counted."""

from __future__ import annotations

import numpy as np
from refusals import refused

from pmlopt import PML, Stream
from pmlopt.errors import PrivacyError
from pmlopt.model.uncertainty import confidence_box, confidence_chain


def walked(kernel: np.ndarray, people: int, steps: int, rng: np.random.Generator) -> list[list[int]]:
    paths = rng.integers(len(kernel), size=(people, steps))
    for step in range(1, steps):
        paths[:, step] = [rng.choice(len(kernel), p=kernel[state]) for state in paths[:, step - 1]]
    return [[int(state) for state in path] for path in paths]


def test_the_true_kernel_is_within_the_bounds() -> None:
    # each of 120 chains misses with probability 0.3 at most: more than 60 do with less than 1e-5
    rng = np.random.default_rng(5)
    missed = 0
    for _ in range(120):
        kernel = rng.dirichlet([0.3, 1.0, 1.0], size=3)
        lower, upper = confidence_chain(walked(kernel, 2, 20, rng), 0.3, labels=range(3)).over[:, 0]  # type: ignore[index]
        missed += bool(((kernel < lower) | (kernel > upper)).any())
    assert missed <= 60


def test_bounds_are_wider_than_for_a_number_of_moves_that_was_fixed() -> None:
    chain = confidence_chain([["a", "a", "b"] * 30], 0.1)
    assert chain.over is not None
    lower, upper = chain.over[:, 0, 0]
    box = confidence_box([30, 30], 0.1 / 2)
    assert (lower < box.lower).all()
    assert (upper > box.upper).all()
    assert (lower > 0.1).all()


def test_of_a_state_that_nobody_leaves_nothing_is_known() -> None:
    chain = confidence_chain([["a", "b"], ["a", "b"]], 0.1)
    assert chain.over is not None
    assert chain.over[:, 0, 1].tolist() == [[0.0, 0.0], [1.0, 1.0]]


def test_a_stream_is_within_its_level_for_the_kernels_of_the_set() -> None:
    rng = np.random.default_rng(1)
    kernel = np.array([[0.8, 0.2], [0.3, 0.7]])
    chain = confidence_chain(walked(kernel, 40, 30, rng), 0.05)
    stream = Stream(chain, PML(0.6), "hamming")
    for state in (0, 1, 1):
        stream.release(state, seed=rng)
    assert stream.level <= 0.6


def test_delta_is_a_probability() -> None:
    path = [["a", "b", "a"]]
    refused(PrivacyError, confidence_chain, "delta", (path, 0.0), (path, 1.0), (path, -0.1))
