"""Whole problem files of every kind, and one of each with a line changed."""

from __future__ import annotations

DESIGN = """
id = "small"
title = "A small problem"
builder = "design"

[source]
cite = "somebody"
where = "somewhere"

[params]
prior = { probabilities = [0.5, 0.5], labels = ["a", "b"] }
privacy = { name = "pml", epsilon = { log = "5/4" } }
utility = "hamming"

[expected]
basis = "derived"
relation = "=="
value = 0.375
"""

WORST = """
id = "small"
title = "A small worst case"
builder = "worst_case_utility"

[source]
cite = "somebody"
where = "somewhere"

[params]
prior = { probabilities = [0.6, 0.2, 0.2], labels = ["a", "b", "c"] }
order = [[3, 2, 1], [1, 3, 2], [2, 1, 3]]
threshold = 2

[expected]
basis = "derived"
relation = "=="
value = 0.6931471805599453
"""

LEAST = """
id = "small"
title = "A small least leakage"
builder = "least_leakage"

[source]
cite = "somebody"
where = "somewhere"

[params]
prior = { uniform = 4 }
utility = "match"
expected = 0.5
outputs = 4

[expected]
basis = "derived"
relation = "=="
value = 0.6931471805599453
"""

RECORD = """
id = "small"
title = "A small audit"
builder = "record_leakage"

[source]
cite = "somebody"
where = "somewhere"

[params]
query = { kind = "modular-sum", records = 3, modulus = 2 }
mechanism = { kind = "symmetric-channel", error = 0.25 }
entropy = { log = 4 }

[expected]
basis = "theorem"
relation = "=="
closed_form = "parity_leakage"
value = 0.13081203594113694
"""

TRADEOFF = """
id = "small"
title = "A small trade-off"
builder = "leakage_distortion"

[source]
cite = "somebody"
where = "somewhere"

[params]
query = { kind = "modular-sum", records = 2, modulus = 2 }
entropy = 0
distortion = 0.25

[expected]
basis = "theorem"
relation = "=="
closed_form = "parity_leakage"
value = 0.13081203594113697
rtol = 1e-5
"""

ENVELOPE = """
id = "small"
title = "A small audit"
builder = "envelope"

[source]
cite = "somebody"
where = "somewhere"

[params]
prior = { uniform = 2 }
mechanism = { matrix = [[0.9, 0.1], [0.2, 0.8]] }
delta = 0.25

[expected]
basis = "derived"
relation = "=="
value = 0.5753641449035619
"""

ESTIMATION = """
id = "small"
title = "A small design"
builder = "design"

[source]
cite = "somebody"
where = "somewhere"

[params]
prior = { uniform = 3 }
privacy = { name = "pml", epsilon = 0.5 }
utility = { kind = "estimation-error", workload = "prefix" }
"""

PRIVACY = '{ name = "pml", epsilon = { log = "5/4" } }'
"""The requirement of `DESIGN`."""
