"""The command line: `pmlopt` or `python -m pmlopt`.

Exit codes: 0 done, 1 the claim fails, 2 bad input (a message, no traceback, no file), 3 no solver
could solve it, 70 a bug in pmlopt (with a traceback to report), 130 interrupted, 141 nobody reads the
output any more. Modules are imported where they are used, so that help and audits answer at once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import click

from pmlopt.cli.asked import Asked
from pmlopt.cli.estimation import audit_samples
from pmlopt.cli.options import (
    CLAIM_FAILS,
    TARGET,
    Arg,
    Json,
    Opt,
    Run,
    code_of,
    command,
    imports,
    main,
)
from pmlopt.cli.orbits import audit_orbits, declared_by_orbits
from pmlopt.cli.printing import (
    about_record,
    echo_json,
    expectation_rows,
    outcomes,
    print_audit,
    print_envelopes,
    print_verdict,
    say,
    solved_in_turn,
)
from pmlopt.cli.reading import (
    Minimise,
    Outputs,
    aligned,
    read_constraint,
    read_mechanism,
    read_numbers,
    read_outputs,
    read_utility,
)
from pmlopt.cli.verifying import audit_saved, has_claims, prior_in
from pmlopt.core import files
from pmlopt.errors import InputError
from pmlopt.programs.certificate import finite

if TYPE_CHECKING:
    from pmlopt.data.mechanism import Mechanism
    from pmlopt.data.prior import Prior
    from pmlopt.library import Instance
    from pmlopt.programs.envelope.certificate import EnvelopeCertificate
    from pmlopt.programs.program import Program
    from pmlopt.programs.result import Result


@command(main, "solve")
def solve_command(problem: Annotated[str, Arg("PROBLEM")], run: Run) -> None:
    """Solve a problem file, or one of the library.

    PROBLEM is a file (.toml), or the id of one in the library (`pmlopt problems`). Exits with 1 when the
    optimum contradicts what the file expects of it.
    """
    from pmlopt.library import find

    run.check()
    instance = find(problem)
    result = run.solve(instance.program)
    agrees = _agrees(instance, result)
    run.show(
        result,
        f"{instance.title} [{instance.id}]",
        expectation_rows(instance, agrees),
        {"id": instance.id, "agrees": agrees},
    )
    sys.exit(CLAIM_FAILS if agrees is False else code_of(result))


def _agrees(instance: Instance, result: Result[Any]) -> bool | None:
    """Whether the optimum is what the file expects; None where the gap is too wide to tell."""
    if instance.expected is None or instance.expected.agrees(result.value):
        return True
    ends = sorted((result.value, result.bound))
    undecided = result.status.value != "optimal" and ends[0] <= instance.expected.value <= ends[1]
    return None if undecided else False


_UtilityName: TypeAlias = Annotated[str, Opt(
    "hamming, absolute, squared (losses); mutual-information, total-variation, chi-square, "
    "hellinger, guessing-probability; estimation-error, or estimation-error:WORKLOAD (prefix, range, "
    "mean, marginals); or a CSV matrix of gains.", "--utility"
)]  # fmt: skip
_Records: TypeAlias = Annotated[int | None, Opt(
    "The prior is the law of one of so many independent records, and the secret the table of them "
    "all: the utility adds over the records. Written by orbits, as .json.", type=click.IntRange(min=1)
)]  # fmt: skip
_Circle: TypeAlias = Annotated[int | None, Opt(
    "In place of a prior: so many letters in a circle, uniform; the loss goes along the circle.",
    type=click.IntRange(min=1)
)]  # fmt: skip


@command(main)
def design(
    asked: Asked,
    epsilon: Annotated[float, Opt("The privacy bound, in nats.")],
    utility_name: _UtilityName,
    run: Run,
    minimise: Minimise = False,
    outputs: Outputs = None,
    constraints: Annotated[
        tuple[str, ...],
        Opt(
            "What the mechanism must keep beside: invariant, unbiased, variance=NUMBER, within=NUMBER, "
            "zeros=FILE.csv (columns: letter, output), strata=FILE.csv (letter, stratum) or "
            "outcome-leakage=FILE.csv (output, nats).",
            "--constraint",
        ),
    ] = (),
    records: _Records = None,
    circle: _Circle = None,
) -> None:
    """Design the optimal mechanism.

    It is optimal for a prior, a privacy bound and a utility, and comes with a proof of both.
    """
    run.check()
    if records is not None or circle is not None:
        if outputs is not None:
            raise InputError("--outputs does not go with --records or --circle: the outputs are letters")
        if constraints:
            raise InputError("--constraint does not go with --records or --circle: list the letters")
        declared, title = declared_by_orbits(asked, epsilon, (utility_name, minimise), records, circle)
        run.answer(declared, title)
    prior = asked.prior()
    privacy = asked.requirement(epsilon, prior)
    utility, columns = read_utility(utility_name, minimise, prior)
    letters = read_outputs(outputs, prior.labels) if outputs is not None else columns
    if run.output is not None and isinstance(letters, tuple):
        files.check_labels(run.output, letters)
    labels = (*prior.labels, *(letters if isinstance(letters, Sequence) else ()))
    kept = [read_constraint(text, labels) for text in constraints]

    def declare() -> Program[Any]:
        from pmlopt.programs.designs import design as build

        return build(prior, privacy, utility, letters, kept)

    run.answer(declare, f"Optimal mechanism for {asked.title}")


_Deltas: TypeAlias = Annotated[str | None, Opt(
    "Probabilities, with commas between: the leakage that no processing of the output exceeds but "
    "with each of them.", "--envelope"
)]  # fmt: skip
_Samples: TypeAlias = Annotated[bool, Opt(
    "MECHANISM is a CSV of counts instead: how often each output was drawn (columns) at each letter."
)]  # fmt: skip


_Proof: TypeAlias = Annotated[Path | None, Opt(
    "With --epsilon: where the claim holds, write the mechanism with its proof.", "-o/--output", TARGET
)]  # fmt: skip


@command(main, extra=(imports,))
def audit(
    mechanism_file: Annotated[Path, Arg("MECHANISM")],
    asked: Asked,
    epsilon: Annotated[float | None, Opt("The claimed bound in nats; decided in exact arithmetic.")] = None,
    deltas: _Deltas = None,
    samples: _Samples = False,
    confidence: Annotated[float | None, Opt("With --samples; 0.95 where left out.")] = None,
    no_header: Annotated[bool, Opt("The CSV matrix has numbers alone, no labels.")] = False,
    normalise: Annotated[bool, Opt("Divide the rows of the matrix by their sums.")] = False,
    output: _Proof = None,
    as_json: Json = False,
) -> None:
    """Recompute every leakage of MECHANISM.

    MECHANISM is a .csv, .json or .npz file. Exits with 1 when the claim fails. A saved result needs no prior:
    it is audited under its own, against all that it claims (see `verify`). With --samples the level is
    bounded from both sides with confidence, and 3 says that it is not decided.
    """
    from pmlopt import measures
    from pmlopt.data.symmetry.orbit_mechanism import holds_orbits
    from pmlopt.programs.claims import violation
    from pmlopt.programs.exact.arithmetic import holds_exactly, rows_are_exact
    from pmlopt.programs.held import prove

    by_orbits = not samples and holds_orbits(mechanism_file)
    if output is not None and (epsilon is None or samples or by_orbits):
        raise InputError("-o writes the proof of a claim on a matrix: give --epsilon, and no --samples")
    if by_orbits:
        audit_orbits(mechanism_file, asked, epsilon, as_json, deltas or confidence)
        return
    if not asked.files and epsilon is None and deltas is None and not samples and has_claims(mechanism_file):
        sys.exit(audit_saved(mechanism_file, as_json))
    own = None if asked.files or samples else prior_in(mechanism_file)
    _check_audit(asked, deltas, samples, confidence, own is not None)
    if samples:
        audit_samples(mechanism_file, asked, epsilon, confidence, as_json)
        return
    mechanism = read_mechanism(mechanism_file, no_header, normalise)
    prior = own or aligned(asked.prior(), mechanism)
    secret = asked.given(prior)["about"]
    levels = dict(measures.audit(prior, mechanism).levels)
    measured = asked.requirement(0.0, prior)
    if asked.robust:
        levels["pml_robust"] = measured.level(prior, mechanism)
    else:
        levels |= measured.levels(prior, mechanism)
    claim = None if epsilon is None else asked.requirement(epsilon, prior)
    holds = None if claim is None else holds_exactly(prior, claim, mechanism.matrix)
    exact = rows_are_exact(mechanism.matrix)
    curve = [] if deltas is None else _envelopes(prior, mechanism, read_numbers(deltas, "--envelope"))
    if as_json:
        echo_json({
            "level": levels["pml"],
            "levels": {name: finite(level) for name, level in levels.items()},
            "privacy": asked.privacy_name,
            "epsilon": epsilon,
            "radius": asked.radius,
            "delta": asked.delta,
            "slack": asked.slack,
            "about": None if secret is None else about_record(secret, mechanism),
            "claimed": {} if claim is None else {
                name: finite(level)
                for name, level in claim.levels(prior, mechanism).items()
            },
            "holds": holds,
            "broken_by": None if claim is None or holds else violation(prior, claim, mechanism),
            "rows_sum_to_one_exactly": exact,
            "envelope": [
                {
                    "delta": e.certificate.delta,
                    "value": e.value,
                    "bound": e.bound,
                    "status": e.status.value,
                }
                for e in curve
            ],
            "outputs": outcomes(prior, mechanism, secret),
        })  # fmt: skip
    else:
        print_audit(mechanism_file, prior, mechanism, levels, secret)
        print_envelopes(curve)
        if claim is not None:
            print_verdict(claim, claim.levels(prior, mechanism), bool(holds), exact)
            if not holds:
                say(f"By name: {violation(prior, claim, mechanism)}.")
    if holds and output is not None:
        assert claim is not None
        prove(prior, claim, mechanism).save(output)
        say(f"The mechanism is written to {output}, with the proof of the claim.", err=as_json)
    sys.exit(CLAIM_FAILS if holds is False else 0)


def _check_audit(
    asked: Asked, deltas: str | None, samples: bool, confidence: float | None, has_prior: bool
) -> None:
    """Complain of options of an audit that do not belong together."""
    if not has_prior:
        asked.check()
    if samples and deltas is not None:
        raise InputError("--envelope needs a mechanism, and --samples are counts: leave one out")
    if confidence is not None and not samples:
        raise InputError("--confidence belongs to --samples")
    if asked.robust and deltas is not None and not samples:
        raise InputError("--envelope is for the given prior alone: leave out --radius and --delta")


def _envelopes(
    prior: Prior, mechanism: Mechanism, deltas: Sequence[float]
) -> list[Result[EnvelopeCertificate]]:
    """The envelope at each delta, the largest first."""
    from pmlopt.programs.envelope.program import envelope

    order = sorted(set(deltas), reverse=True)
    found = dict(zip(order, solved_in_turn(envelope(prior, mechanism, d) for d in order), strict=True))
    return [found[delta] for delta in deltas]
