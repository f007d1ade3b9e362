"""The audit of a black box from a table of counts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pmlopt.cli.exits import VERDICT_CODES
from pmlopt.cli.printing import format_nats, print_json, print_table
from pmlopt.cli.privacy_options import PrivacyOptions
from pmlopt.cli.program_audit import ClaimOptions
from pmlopt.errors import InputError, MechanismError

if TYPE_CHECKING:
    from pmlopt.releases.estimation import SampledLevel


def audit_samples(path: Path, asked: PrivacyOptions, wanted: ClaimOptions) -> None:
    """Bound the level of a black box from a table of counts; exit 1 when a claim is refuted, 3 if open."""
    from pmlopt.data.labelled import read_labelled_table
    from pmlopt.data.prior import Prior
    from pmlopt.releases.estimation import level_from_samples

    if asked.is_robust or asked.privacy_name not in ("pml", "ldp"):
        raise InputError(
            "--from-samples bounds pml and ldp for the given prior: leave the other options out"
        )
    epsilon = wanted.epsilon
    share = 0.95 if wanted.confidence is None else wanted.confidence
    # the level of ldp does not depend on the prior
    needs_prior = asked.privacy_name != "ldp" or asked.has_prior_file
    prior = asked.read_prior() if needs_prior else None
    counts = read_labelled_table(path, "the counts", MechanismError, absent=0)
    if prior is None:
        letters = counts.axes[0]
        prior = Prior.uniform(len(letters or ()), letters)
    found = level_from_samples(prior, counts, share, asked.privacy_name)  # type: ignore[arg-type]
    decided = None
    if epsilon is not None:
        decided = True if found.confirms(epsilon) else False if found.refutes(epsilon) else None
    _print_level(path, found, epsilon, decided)
    sys.exit(0 if epsilon is None else VERDICT_CODES[decided])


def _print_level(
    path: Path, found: SampledLevel, epsilon: float | None, decided: bool | None
) -> None:
    """Print a level interval, and its verdict on the claim."""
    from pmlopt.releases.estimation.tables import format_label

    if print_json("sample-audit", {
        "measure": found.measure, "min_level": found.lower, "max_level": found.upper,
        "letter": found.letter, "output": found.output, "samples": sum(found.samples),
        "samples_by_letter": list(found.samples), "confidence": found.confidence,
        "epsilon": epsilon, "holds": decided,
    }):  # fmt: skip
        return
    rows = [
        (
            "at least",
            f"{format_nats(found.lower)}, at the letter {format_label(found.letter)} and the output "
            f"{format_label(found.output)}",
        ),
        ("at most", format_nats(found.upper)),
        ("confidence", f"{found.confidence:g}"),
        ("samples", f"{sum(found.samples)}, at least {min(found.samples)} at each letter"),
    ]
    if epsilon is not None:
        words = {
            True: "holds",
            False: "is refuted",
            None: "is neither shown nor refuted: draw more",
        }
        rows.append((f"{found.measure} of at most {epsilon:g}", words[decided]))
    print_table([path.name, ""], rows)
