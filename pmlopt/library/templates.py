"""Problem files to fill in, written from the builders and the fields that read them."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pmlopt.core.records.fields import (
    ContextReference,
    Shape,
    find_tagged_classes,
    get_fields,
    separate_notes,
)
from pmlopt.core.suggestions import did_you_mean
from pmlopt.errors import InstanceError
from pmlopt.library.instances import BUILDERS
from pmlopt.library.shorthand import FIELDS, SHORTHAND_CONSTRUCTORS
from pmlopt.model.constraints import Constraint
from pmlopt.model.uncertainty import JointLaws, PriorSet

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
        >>> print(write_template("record-leakage", "mine").splitlines()[4])
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
        "# In comments a sign = marks a key that may be left out, and [rows, columns] a matrix.",
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
        comments = [f"{'' if needed else 'Optional: '}{meanings.get(name, '')}"]
        if kinds:
            comments.append(f"Kinds with their keys: {', '.join(kinds)}.")
        if name == "privacy":
            sets = _list_kinds(PriorSet | JointLaws)
            comments.append(f"Kinds of a set of priors, for `over`: {', '.join(sets)}.")
        lines += [line for comment in comments for line in _wrap_comment(comment)]
        lines.append(f"{'' if needed else '# '}{name} = {own.get(name, VALUES[name])}")
    return lines


def _wrap_comment(text: str) -> list[str]:
    """Wrap a text to lines of comments, which break at spaces only."""
    return textwrap.wrap(
        text.strip(), 100, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False
    )


def _list_kinds(field: Any) -> list[str]:
    """List the kinds of a field that is a record of one of several classes, each with its keys."""
    bases = {*SHORTHAND_CONSTRUCTORS, Constraint} & {field, *get_args(field)}
    found: dict[str, Callable[..., Any]] = {}
    for base in bases:
        found.update(find_tagged_classes(base))
        found.update(SHORTHAND_CONSTRUCTORS.get(base, {}))
    return [f"{kind}({', '.join(_list_keys(found[kind]))})" for kind in sorted(found)]


def _list_keys(make: Callable[..., Any]) -> list[str]:
    """List the keys of a kind: arrays with the names of their axes, optional keys with a sign behind.

    What is needed and stated elsewhere in the file, such as its prior, is no key.
    """
    keys = []
    for field in get_fields(make):
        notes = list(_list_notes(field.type))
        stated_elsewhere = any(isinstance(one, ContextReference) for one in notes)
        if not (stated_elsewhere and field.required):
            axes = next((one.sizes for one in notes if isinstance(one, Shape)), ())
            shape = f"[{', '.join(map(str, axes))}]" if axes else ""
            keys.append(f"{field.name}{shape}{'' if field.required else '='}")
    return keys


def _list_notes(kind: Any) -> Iterator[Any]:
    """List the notes of an annotated type, and those of the alternatives that a union has."""
    inner, notes = separate_notes(kind)
    yield from notes
    if get_origin(inner) in (Union, UnionType):
        for one in get_args(inner):
            yield from _list_notes(one)


def _read_meanings(text: str) -> dict[str, str]:
    """Read what the parameters mean from a docstring."""
    section = re.search(r"^Args:\n((?:    .*\n|\n)*)", text, re.MULTILINE)
    entries = re.findall(
        r"^    (\w+): ((?:.|\n        )*)", section[1] if section else "", re.MULTILINE
    )
    return {name: " ".join(meaning.split()) for name, meaning in entries}
