"""The audit of several mechanisms: what their releases leak together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

from pmlopt.cli.data_options import describe_shares
from pmlopt.cli.exits import prints_json
from pmlopt.cli.printing import format_nats, print_json, print_table
from pmlopt.cli.privacy_options import PrivacyOptions
from pmlopt.cli.reading import align_prior
from pmlopt.cli.terminal import print_line
from pmlopt.core.numbers.arrays import abbreviate
from pmlopt.errors import InputError

if TYPE_CHECKING:
    from pmlopt.data.mechanism import Mechanism
    from pmlopt.data.prior import Prior


Attributes: TypeAlias = Annotated[
    bool,
    "One mechanism for each attribute: the prior has a column for each, in this order, then count.",
]


def audit_together(
    mechanism_files: Sequence[Path],
    asked: PrivacyOptions,
    attributes: bool,
    output: Path | None,
) -> None:
    """Print what several releases leak together, and write their product."""
    from pmlopt.model.privacy import PML
    from pmlopt.programs.compliance import prove
    from pmlopt.releases import compose as product
    from pmlopt.releases import compose_attributes

    if asked.is_robust or asked.privacy_name != "pml":
        raise InputError(
            "several mechanisms are audited for PML under the given prior: leave out other requirements"
        )
    if not asked.has_prior_file and not all(path.is_dir() for path in mechanism_files):
        raise InputError(
            "several mechanisms are audited under one prior, which is none of the files "
            f"({', '.join(map(str, mechanism_files[1:]))}): a prior is given by --prior FILE"
        )
    mechanisms, laws = zip(*map(_read_mechanism_and_law, mechanism_files), strict=True)
    prior = asked.read_prior() if asked.has_prior_file else _find_common_law(mechanism_files, laws)
    show = _print_attributes if attributes else _print_one_secret
    level = show(list(map(str, mechanism_files)), mechanisms, prior)
    if output is not None:
        whole = compose_attributes(mechanisms, prior.labels) if attributes else product(mechanisms)
        # Nats by which a level may be off that is claimed of floats: what rounding adds to it.
        prove(align_prior(prior, whole), PML(level + 1e-12), whole).save(output)
        print_line(
            f"the product mechanism is written to {output}, with a certificate of its level",
            err=prints_json(),
        )


def _read_mechanism_and_law(path: Path) -> tuple[Mechanism, Prior | None]:
    """Read a mechanism, or the only one of the folder of a release with the law that it states."""
    from pmlopt.data.mechanism import Mechanism
    from pmlopt.publishing.checking import load_listed_matrix
    from pmlopt.publishing.folder import ReleaseFile, find_mechanism_file, restrict_to_occurring

    if not path.is_dir():
        return Mechanism.load(path), None
    stated = ReleaseFile.read(path)
    if len(stated.parts) > 1:
        raise InputError(
            f"{path}: releases {len(stated.parts)} columns: name the file of one mechanism in it, and give "
            "--prior"
        )
    name = stated.parts[0].mechanism
    mechanism = load_listed_matrix(find_mechanism_file(path.resolve(), name), name)
    law, mechanism = restrict_to_occurring(stated.count_people([mechanism]), 0, mechanism)
    return mechanism, law


def _find_common_law(paths: Sequence[Path], laws: Sequence[Prior | None]) -> Prior:
    """Return the law that all folders state, and print it; raise an InputError where they differ."""
    first, *rest = laws
    assert first is not None
    other = next((path for path, law in zip(paths[1:], rest, strict=True) if law != first), None)
    if other is not None:
        raise InputError(
            "several mechanisms are audited under one prior, and the counts of letters that "
            f"{other} states are others than those of {paths[0]}: give a prior by --prior FILE"
        )
    print_line(describe_shares("the rounded counts that all state", first), err=True)
    return first


def _print_one_secret(names: Sequence[str], mechanisms: Sequence[Mechanism], prior: Prior) -> float:
    """Print the levels of several releases of one secret, and jointly; return the joint level."""
    from pmlopt.measures import leakage_level
    from pmlopt.releases import worst_outcome

    prior = align_prior(prior, mechanisms[0])
    counts = range(1, len(mechanisms) + 1)
    found = [worst_outcome(prior, mechanisms[:count]) for count in counts]
    worst = found[-1]
    levels = [leakage_level(align_prior(prior, one), one) for one in mechanisms]
    if print_json("composition", {
        "level": worst.leakage,
        "outcome": list(worst.outputs),
        "letter": worst.witness,
        "levels": dict(zip(names, levels, strict=False)),
        "levels_together": [one.leakage for one in found],
    }):  # fmt: skip
        return worst.leakage
    rows = [
        (name, format_nats(level), format_nats(one.leakage))
        for name, level, one in zip(names, levels, found, strict=True)
    ]
    print_table(
        ["release", "level", "with those above"], [*rows, ("all together", "", rows[-1][-1])]
    )
    print_line(
        f"the outcome {abbreviate(worst.outputs)} leaks most, about the letter {worst.witness!r}"
    )
    return worst.leakage


def _print_attributes(names: Sequence[str], mechanisms: Sequence[Mechanism], prior: Prior) -> float:
    """Print the levels of attribute releases, each and jointly; return the joint level."""
    from pmlopt.releases import attribute_levels

    letters = [label if isinstance(label, tuple) else (label,) for label in prior.labels]
    joint = dict(zip(letters, prior.pmf.tolist(), strict=True))
    levels = attribute_levels(joint, mechanisms)
    if print_json("composition", {
        "level": levels.together,
        "outcome": list(levels.outcome),
        "letter": list(levels.witness),
        "levels": dict(zip(names, levels.alone, strict=True)),
        "joint_levels": dict(zip(names, levels.each, strict=True)),
    }):  # fmt: skip
        return levels.together
    rows = [
        (name, format_nats(alone), format_nats(each))
        for name, alone, each in zip(names, levels.alone, levels.each, strict=True)
    ]
    print_table(["attribute", "by its release", "by all"], rows)
    print_line(
        f"all attributes together: {format_nats(levels.together)}, by the outcome "
        f"{abbreviate(levels.outcome)}, about the "
        f"letters {levels.witness!r}"
    )
    return levels.together
