"""Whole problem files of every kind, and one of each with a line changed."""

from __future__ import annotations

from pmlopt.library import load_all

LIBRARY = load_all()
"""Every problem of the library, read once."""


def _file(title: str, builder: str, params: str, value: str = "", basis: str = "derived") -> str:
    """A problem file with these lines of parameters, and with what is expected where a value is given."""
    text = f"""
id = "small"
title = "{title}"
builder = "{builder}"

[source]
cite = "somebody"
where = "somewhere"

[params]
{params.strip()}
"""
    expected = f"""
[expected]
basis = "{basis}"
relation = "=="
{value.strip()}
"""
    return text + expected if value else text


DESIGN = _file(
    "A small problem", "design",
    """
prior = { probabilities = [0.5, 0.5], labels = ["a", "b"] }
privacy = { name = "pml", epsilon = { log = "5/4" } }
utility = "hamming"
""",
    "value = 0.375",
)  # fmt: skip

WORST = _file(
    "A small worst case", "worst_case_utility",
    """
prior = { probabilities = [0.6, 0.2, 0.2], labels = ["a", "b", "c"] }
order = [[3, 2, 1], [1, 3, 2], [2, 1, 3]]
threshold = 2
""",
    "value = 0.6931471805599453",
)  # fmt: skip

LEAST = _file(
    "A small least leakage", "least_leakage",
    """
prior = { uniform = 4 }
utility = "match"
expected = 0.5
outputs = 4
""",
    "value = 0.6931471805599453",
)  # fmt: skip

RECORD = _file(
    "A small audit", "record_leakage",
    """
query = { kind = "modular-sum", records = 3, modulus = 2 }
mechanism = { kind = "symmetric-channel", error = 0.25 }
entropy = { log = 4 }
""",
    """
closed_form = "parity_leakage"
value = 0.13081203594113694
""",
    "theorem",
)  # fmt: skip

TRADEOFF = _file(
    "A small trade-off", "leakage_distortion",
    """
query = { kind = "modular-sum", records = 2, modulus = 2 }
entropy = 0
distortion = 0.25
""",
    """
closed_form = "parity_leakage"
value = 0.13081203594113697
rtol = 1e-5
""",
    "theorem",
)  # fmt: skip

ENVELOPE = _file(
    "A small audit", "envelope",
    """
prior = { uniform = 2 }
mechanism = { matrix = [[0.9, 0.1], [0.2, 0.8]] }
delta = 0.25
""",
    "value = 0.5753641449035619",
)  # fmt: skip

ESTIMATION = _file(
    "A small design", "design",
    """
prior = { uniform = 3 }
privacy = { name = "pml", epsilon = 0.5 }
utility = { kind = "estimation-error", workload = "prefix" }
""",
)  # fmt: skip

PRIVACY = '{ name = "pml", epsilon = { log = "5/4" } }'
"""The requirement of `DESIGN`."""
