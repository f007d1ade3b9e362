"""The sample sizes that bounds on the true law need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pmlopt.cli.printing import format_nats, print_json, print_table
from pmlopt.errors import InputError


@dataclass(frozen=True)
class BoundOptions:
    """The options of a bound on the level under the true law, of which two of three are given."""

    letters: Annotated[int | None, "With --for-bound: N, the number of letters."] = None
    epsilon: Annotated[
        float | None, "With --for-bound: the PML level at the estimate, in nats."
    ] = None
    target: Annotated[
        float | None, "With --for-bound: the level above it under the true distribution, in nats."
    ] = None
    confidence_delta: Annotated[
        float | None, "With --for-bound: the probability over the sample that it fails."
    ] = None
    samples: Annotated[int | None, "With --for-bound: the number of observations."] = None
    kappa: Annotated[
        float | None,
        "At least the balance of the true distribution, where it is known: shrinks the radius; 0.5 where "
        "left out.",
    ] = None
    min_probability: Annotated[
        float | None,
        "A lower bound on the smallest probability of the estimate, where it is known: for the first "
        "privacy region.",
    ] = None

    def print_third(self) -> None:
        """Compute and print the one of samples, target and failure probability that is left out."""
        from pmlopt.model.uncertainty import (
            failure_bound,
            samples_needed,
            true_level_with_confidence,
        )

        letters, epsilon, target = self.letters, self.epsilon, self.target
        confidence_delta, samples = self.confidence_delta, self.samples
        if letters is None or epsilon is None:
            raise InputError("give --letters and --epsilon: the bound is on them")
        known = (0.5 if self.kappa is None else self.kappa, self.min_probability)
        if None not in (target, confidence_delta, samples):
            raise InputError(
                "--samples, --target and --confidence-delta are all given: leave out the one to compute"
            )
        if target is not None and confidence_delta is not None:
            samples = samples_needed(letters, epsilon, target, confidence_delta, *known)
        elif target is not None and samples is not None:
            confidence_delta = failure_bound(samples, letters, epsilon, target, *known)
        elif confidence_delta is not None and samples is not None:
            target = true_level_with_confidence(samples, letters, epsilon, confidence_delta, *known)
        else:
            raise InputError(
                "give two of --samples, --target and --confidence-delta: the third is computed"
            )
        found = {
            "letters": letters,
            "epsilon": epsilon,
            "target": target,
            "confidence_delta": confidence_delta,
            "samples": samples,
        }
        if print_json("sample-size", found):
            return
        print_table(["", ""], [
            ("letters", str(letters)),
            ("level at the estimate", format_nats(epsilon)),
            ("level in truth", format_nats(target)),
            ("failure probability", f"{confidence_delta:.3g}"),
            ("samples", f"{samples:,}"),
        ])  # fmt: skip
