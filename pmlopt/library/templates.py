"""Problem files to fill in, written from the builders and the fields that read them."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Mapping
from typing import Any, get_args

from pmlopt.core.records.fields import find_tagged_classes
from pmlopt.core.suggestions import did_you_mean
from pmlopt.errors import InstanceError
from pmlopt.library.instances import BUILDERS
from pmlopt.library.shorthand import FIELDS, SHORTHAND_CONSTRUCTORS

VALUES: Mapping[str, str] = {
    "prior": '{ probabilities = [0.5, 0.3, 0.2], labels = ["a", "b", "c"] }',
    "chain": '{ initial = [0.5, 0.5], kernels = [[[0.9, 0.1], [0.1, 0.9]]], labels = ["home", "out"] }',
    "query": '{ kind = "modular-sum", records = 3, modulus = 2 }',
    "mechanism": '{ kind = "randomized-response", epsilon = 1.0 }',
    "over": '{ kind = "l1-ball", radius = 0.1 }',
    "privacy": '{ name = "pml", epsilon = 0.5 }',
    "utility": '"hamming"',
    "order": "[[3, 2, 1], [1, 3, 2], [2, 1, 3]]",
    "threshold": "2",
    "epsilon": "0.5",
    "delta": "0.1",
    "reach": "0.2",
    "expected": "0.2",
    "worst": "0.5",
    "entropy": "1.5",
    "distortion": "0.2",
    "leakage": "0.1",
    "loss": "[[0, 1], [1, 0]]",
    "outputs": '["a", "b", "c"]',
    "constraints": '[{ name = "invariant" }]',
    "released": '["home"]',
    "about": '"path"',
    "caps": "[0.2, 0.4]",
}
"""A value of each parameter, with which the file solves as it is written."""

OWN_VALUES: Mapping[str, Mapping[str, str]] = {
    "best_worst_case": {"epsilon": "1.0"},
    "least_leakage": {"privacy": '"pml"', "utility": '"hamming"', "reach": "0.2"},
    "record_leakage": {"mechanism": '{ kind = "symmetric-channel", error = 0.2 }'},
}
"""The values of a builder that are other ones, or of parameters that it may be called without."""


def write_template(family: str, name: str) -> str:
    """Write a problem file of a family to fill in, which solves as it is written.

    Args:
        family: the builder that declares the problem, such as "least-leakage".
        name: the id of the problem, which is the name of its file without its ending.

    Raises:
        InstanceError: there is no such family.

    Examples:
        >>> print(write_template("record-leakage", "mine").splitlines()[3])
        builder = "record_leakage"
    """
    builder = BUILDERS.get(family.replace("-", "_").lower())
    if builder is None:
        known = [one.replace("_", "-") for one in BUILDERS]
        near = did_you_mean(family, known, f"write one of {', '.join(known)}")
        raise InstanceError(f"there is no problem family {family!r}: {near}")
    title = (inspect.getdoc(builder) or "").partition("\n")[0].removeprefix("Build the ")
    parts = [
        f"# Fill in, and solve by: pmlopt solve {name}.toml",
        f'id = "{name}"',
        f'title = "{title[:1].upper()}{title[1:].removesuffix(".")}"',
        f'builder = "{builder.__name__}"',
        '\n[source]\n# A key of a bibliography, and the place in it.\ncite = "own"\nwhere = "own problem"',
        "\n[params]",
        *_list_parameters(builder),
        "\n# What is known of the optimum, with which solve compares: == is it, <= at most, >= at least.",
        '# [expected]\n# basis = "derived"\n# relation = "=="\n# value = 0.0',
    ]
    return "\n".join(parts) + "\n"


def _list_parameters(builder: Any) -> list[str]:
    """List the lines of the parameters of a builder that a file may give; optional ones are comments."""
    known = inspect.signature(builder).parameters
    meanings = _read_meanings(inspect.getdoc(builder) or "")
    own = OWN_VALUES.get(builder.__name__, {})
    lines = []
    for name in (one for one in FIELDS if one in known and one in VALUES):
        # there it is a Secret, which a file calls secret
        if name == "about" and "chain" not in known:
            continue
        needed = known[name].default is inspect.Parameter.empty or name in own
        kinds = _list_kinds(FIELDS[name])
        told = meanings.get(name, "") + (f" Kinds: {', '.join(kinds)}." if kinds else "")
        told = told if needed else f"Optional: {told}"
        lines += textwrap.wrap(told.strip(), 100, initial_indent="# ", subsequent_indent="# ")
        lines.append(f"{'' if needed else '# '}{name} = {own.get(name, VALUES[name])}")
    return lines


def _list_kinds(field: Any) -> list[str]:
    """List the kinds of a field that is a record of one of several classes."""
    bases = [one for one in (field, *get_args(field)) if one in SHORTHAND_CONSTRUCTORS]
    found = {
        kind
        for base in bases
        for kind in (*find_tagged_classes(base), *SHORTHAND_CONSTRUCTORS[base])
    }
    return sorted(found - {""})


def _read_meanings(text: str) -> dict[str, str]:
    """Read what the parameters mean from a docstring."""
    section = re.search(r"^Args:\n((?:    .*\n|\n)*)", text, re.MULTILINE)
    entries = re.findall(
        r"^    (\w+): ((?:.|\n        )*)", section[1] if section else "", re.MULTILINE
    )
    return {name: " ".join(meaning.split()) for name, meaning in entries}
