"""Write the table of methods of docs/solvers.md from the tables that `solve` reads.

`python docs/methods.py` prints it; in the site mkdocs puts it on the page, by `on_page_markdown`.

The evidence is kept here: for each method a problem of the library that `auto` solves with it, or, for sizes
and programs that the library does not have, the benchmark that shows what it is better at.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pmlopt.programs.registry import list_registries

PAGE = Path(__file__).parent / "solvers.md"
PLACE = "<!-- the table of methods -->\n"
"""Where the table belongs on the page."""

TITLES = {
    "LinearDesign": "design, expected gain or loss",
    "SymmetricDesign": "design on a [symmetric prior](symmetry.md)",
    "ColumnDesign": "design, [sub-convex utility](columns.md)",
    "ColumnCostDesign": "design, [sub-convex utility under a limited cost](columns.md#limited-costs)",
    "EstimationDesign": "design, [estimation](estimation.md)",
    "ContinuousDesign": "design of a [continuous secret](continuous.md)",
    "LeastLeakage": "[least leakage, worst-case utility](worst_case.md)",
    "SymmetricLeastLeakage": "least leakage on a [symmetric prior](symmetry.md#least-leakage)",
    "LeastEpsilon": "[least level of any requirement](worst_case.md#a-least-level-of-anything)",
    "BestWorstCase": "best [worst case](worst_case.md)",
    "EnvelopeProgram": "[envelope](envelope.md)",
    "ProcessedFailureProgram": "[failure probability](envelope.md) after any post-processing",
    "EnvelopeDesign": "design within an [envelope](envelope.md)",
    "RecordLeakage": "[leakage per record](records.md)",
    "TradeoffProgram": "[leakage and distortion](records.md#design-an-answer)",
}
"""The questions in words, by the types of their programs."""

EVIDENCE = {
    ("LinearDesign", "pair-ipm"): "benchmarks/ends.py",
    ("LinearDesign", "closed-form"): "binary-first-region",
    ("LinearDesign", "highs"): "adult-education-absolute",
    ("LinearDesign", "color-refinement"): "benchmarks/large.py",
    ("LinearDesign", "output-generation"): "benchmarks/large.py",
    ("LinearDesign", "block-ipm"): "benchmarks/large.py",
    ("LinearDesign", "highs-ipm"): "benchmarks/large.py",
    ("LinearDesign", "clarabel"): "benchmarks/large.py",
    ("SymmetricDesign", "highs"): "bits-hamming-4",
    ("SymmetricDesign", "highs-ipm"): "benchmarks/symmetry.py",
    ("SymmetricDesign", "clarabel"): "benchmarks/symmetry.py",
    ("ColumnDesign", "highs"): "chi-square-emp-example-1",
    ("ColumnDesign", "prior-cuts"): "robust-chi-square-information",
    ("ColumnDesign", "column-generation"): "information-uniform-hundred-letters",
    ("ColumnDesign", "highs-ipm"): "benchmarks/enumeration.py",
    ("ColumnCostDesign", "cost-cuts"): "maximal-leakage-two-halves",
    ("ColumnCostDesign", "highs-ipm"): "benchmarks/large.py",
    ("EstimationDesign", "interior-point"): "estimation-pml-uniform",
    ("ContinuousDesign", "refinement"): "benchmarks/continuous.py",
    ("LeastLeakage", "inversion"): "benchmarks/worst_case.py",
    ("LeastLeakage", "level-search"): "wcu-figure-2-h2",
    ("SymmetricLeastLeakage", "level-search"): "benchmarks/symmetry.py",
    ("LeastEpsilon", "level-search"): "least-epsilon-guess-half-local",
    ("BestWorstCase", "threshold-search"): "best-worst-value-absolute",
    ("EnvelopeProgram", "ratio-search"): "envelope-example-1",
    ("ProcessedFailureProgram", "one-ratio"): "envelope-example-1-failure",
    ("EnvelopeDesign", "branch-and-bound"): "envelope-design-binary",
    ("RecordLeakage", "branch-and-bound"): "record-quadratic",
    ("RecordLeakage", "alternating"): "benchmarks/records.py",
    ("TradeoffProgram", "cutting-planes"): "tradeoff-parity-figure-7",
    ("TradeoffProgram", "penalty"): "benchmarks/distortion.py",
}
"""By the type of the program and the name of the method."""


def table() -> str:
    """A row for each row of the questions' tables, in the order in which `auto` tries them."""
    lines = [
        "| question | method | id | when, and why | seen in |",
        "| --- | --- | --- | --- | --- |",
    ]
    titles = list(TITLES)
    for question in sorted(list_registries(), key=lambda one: titles.index(one.program.__name__)):
        kind, told = question.program.__name__, set[str]()
        for method in question.methods:
            if method.automatic:
                why = method.reason
            elif method.name in told:
                continue  # what is tried can be asked for
            else:
                why = f"only by name; takes {method.requirements_text or 'every program of the question'}"
            shown = "" if method.name in told else f"`{EVIDENCE[kind, method.name]}`"
            title = "" if told else TITLES[kind]
            lines.append(f"| {title} | `{method.name}` | `{method.id}` | {why} | {shown} |")
            told.add(method.name)
        if question.make_cvxpy_method is not None:
            lines.append("| | any solver of cvxpy | its name | only by name | |")
    return "\n".join(lines) + "\n"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Put the table in its place; called by mkdocs."""
    return markdown.replace(PLACE, table()) if page.file.src_uri == PAGE.name else markdown


if __name__ == "__main__":
    sys.stdout.write(table())
