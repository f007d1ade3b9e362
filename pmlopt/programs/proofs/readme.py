"""The README of a proof, in plain words: what is proved, of which linear program, and how to check it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Context, Decimal
from fractions import Fraction

from pmlopt.core.arrays import FloatArray
from pmlopt.core.descriptions import escape_control_characters
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.programs.certificate import Certificate
from pmlopt.programs.least_leakage.certificate import LevelCertificate
from pmlopt.programs.least_leakage.epsilon_certificate import LeastEpsilonCertificate
from pmlopt.programs.proofs.exact_program import make_names
from pmlopt.programs.proofs.formats import ProvedProgram
from pmlopt.programs.reports.pages import warn_of_sample
from pmlopt.programs.worst_case.certificate import ThresholdCertificate

MEANINGS: Mapping[str, str] = {
    "P": "the probability of the output given the letter",
    "row": "the probabilities of a letter sum to one",
    "never": "the output does not occur given the letter",
    "q": "the probability of the output under the prior; its row is that it is the mean of the P",
    "mean": "a weighted sum of the probabilities of the output, as its row states",
    "pair": "one side of a ratio bound is at most the other one times the rational for e to the level",
    "most": "the probability of the output given the letter is at most the other variable of the row (q, "
    "floor or w) times the rational for e to the level",
    "least": "the probability of the output given the letter is at least q over the rational for e to the "
    "level",
    "floor": "at most each probability of the output",
    "over_floor": "floor is at most that probability",
    "top": "at least each probability of the output",
    "under_top": "top is at least that probability",
    "tops": "the largest probabilities of all outputs sum to at most the rational for e^epsilon",
    "w": "at most the mean of the probabilities of the output under each prior of the set; where it has a "
    "row, that is base less debt, less the prices times the right sides of their inequalities: by linear "
    "duality the most that it can be is the least mean over the set",
    "vertex": "w is at most the mean under that vertex of the set",
    "base": "a number that is at most all raised probabilities of the output",
    "debt": "what base is below 0",
    "price": "a multiplier of an inequality of the set of priors: that a letter has its lower probability at "
    "least, up to its share of the radius, its upper one at most, that the shares sum to the radius at most, "
    "or of the row of that number, divided by a power of two near its largest coefficient",
    "raised": "base less debt is at most the probability plus the prices times the letter's coefficients",
    "capped": "the price of a letter's lower probability is at most that of the radius",
    "over": "at least what the probability is above q times the rational for e^epsilon",
    "most_but": "the probability is at most that and over",
    "slack": "what is above the limits sums to at most delta for each letter",
    "edge": "a threshold for joint probabilities of letter and output",
    "over_edge": "at least what the joint probability is above edge",
    "joint": "the joint probability is at most edge and over_edge",
    "guesses": "the largest joint probabilities, as many as guesses, sum to at most q times the rational for "
    "e^epsilon and the same sum of the prior",
    "added": "a constraint that was added to the design",
    "added_back": "the other direction of an added equation that the mechanism meets up to rounding",
    "target": "the expected gain is at least the target, or the expected loss at most; without a table, the "
    "probabilities of all letters sum to one",
    "take": "the probability with which the output becomes the outcome that is likelier given the letter",
    "taken": "an output becomes these outcomes with a probability of at most one",
    "leak": "that outcome is at least so many times as likely given the letter as without",
}
"""What rows and variables mean, by the part of their names before the bracket."""

ENDING = """
## How to check

Any checker of certificates in the format VIPR reads the files, such as `viprchk` (https://github.com/scipopt/vipr).
It looks whether the mechanism meets each row, and adds up rows with the multipliers of the file, in rational
arithmetic, until the bound is there:

```
{commands}
```

The `.mps` files are the same linear programs for exact solvers, with rationals written `p/q`: `esolver
optimum.mps` of QSopt_ex, or SoPlex and SCIP in their exact modes. The optimum is within the proved range.

## What remains to be trusted

- that the linear program is the promise: its rows, each with its meaning, are listed above and can be read in the
  files.
- that each rational next to a power of e is on the side that is stated: any arithmetic of 70 digits does.
- that the prior, the table and the labels are those that were meant.
- the checker, unless it is one that was itself proved correct.
- that the data are released by this mechanism, with a good generator of random numbers.
"""


def iterate_readme_lines(certificate: Certificate, proofs: list[ProvedProgram]) -> Iterator[str]:
    """Yield the lines of the README of a proof."""
    yield "# What these files prove\n"
    yield from (f"- `{one.name}.vipr`: {one.sentence}" for one in proofs)
    yield from (f"\n**{warning}**" for warning in warn_of_sample(certificate))
    subject: Certificate = certificate
    if isinstance(certificate, LeastEpsilonCertificate):
        subject = certificate.witness
    if isinstance(certificate, ThresholdCertificate):
        subject = certificate.kept
    yield f"\n## The claim\n\n{_describe_claim(subject)}"
    prior = subject.listed_prior
    assert prior is not None  # there are proofs of listed priors only
    yield from _iterate_label_lines(prior, subject.mechanism)
    yield from _iterate_table_lines(subject, prior)
    for one in proofs:
        yield from _iterate_program_lines(one)
    yield ENDING.format(commands="\n".join(f"viprchk {one.name}.vipr" for one in proofs))


def _describe_claim(certificate: Certificate) -> str:
    """Describe the requirement, and what it means, where there is one."""
    privacy = getattr(certificate, "privacy", None)
    if privacy is None:
        return f"{escape_control_characters(certificate.statement)}."
    scope = f" The bound holds {privacy.scope}." if privacy.scope else ""
    name = escape_control_characters(repr(privacy))
    return f"The requirement is `{name}`. {' '.join(privacy.meanings)}{scope}"


def _iterate_label_lines(prior: Prior, mechanism: Mechanism) -> Iterator[str]:
    """Yield the prior letter by letter, as the rationals of the rows, and the outputs."""
    total = sum(prior.weights)
    yield f"\nThe prior is on {prior.size} letters; each has its weight over the sum of all, {total}.\n"
    yield "| letter | name in the files | weight | about |\n| --- | --- | --- | --- |"
    letters = zip(prior.labels, make_names(prior.labels), prior.weights, strict=True)
    for label, name, weight in letters:
        share = float(Fraction(weight) / total)
        yield f"| {_format_label(label)} | {name} | {weight} | {share:.9g} |"
    names = zip(mechanism.outputs, make_names(mechanism.outputs), strict=True)
    outputs = ", ".join(f"{_format_label(label)} as {name}" for label, name in names)
    yield f"\nThe outputs, with their names in the files: {outputs}."


def _format_label(label: object) -> str:
    """Format a label in a line of Markdown."""
    return "`" + escape_control_characters(repr(label)).replace("`", "'").replace("|", "\\|") + "`"


def _iterate_table_lines(certificate: Certificate, prior: Prior) -> Iterator[str]:
    """Yield the table of gains or losses, where there is one."""
    source = certificate.expected if isinstance(certificate, LevelCertificate) else certificate
    table: FloatArray | None = getattr(source, "table", None)
    if table is None:
        return
    word = "gains" if getattr(source, "maximised", True) else "losses"
    yield f"\nThe table of {word}; the objective is the prior times it, on each `P[letter,output]`:\n"
    # entries that a reader still looks at
    if table.size > 400:
        yield "it is in the file of the result, and its products with the prior are in the objective."
        return
    for name, row in zip(make_names(prior.labels), table.tolist(), strict=True):
        yield f"- `{name}`: {', '.join(map(repr, row))}"


def _iterate_program_lines(proved: ProvedProgram) -> Iterator[str]:
    """Yield the size of a linear program, what its rows and columns mean, and its powers of e."""
    program = proved.program
    yield f"\n## The linear program of `{proved.name}`\n"
    yield f"It has {len(program.columns)} variables, each at least 0, and {len(program.rows)} rows. Names"
    yield "have the letter and the output in brackets, and before these what they are:\n"
    names = [*program.columns, *(row.name for row in program.rows)]
    kinds = dict.fromkeys(name.partition("[")[0] for name in names)
    yield from (f"- `{kind}`: {MEANINGS[kind]}" for kind in kinds)
    yield f"- the objective: {_describe_objective(proved)}.\n"
    side = "above" if program.powers.above else "below"
    for exponent, ratio in program.powers.used.items():
        if ratio == 1:
            yield f"e to {exponent!r} is 1.\n"
            continue
        off = 2 * float(abs(Fraction(Context(prec=70).exp(Decimal(exponent))) - ratio)) + 1e-60
        yield f"e to {exponent!r} is replaced by {ratio}, {side} it by less than {off:.1g}.\n"


def _describe_objective(proved: ProvedProgram) -> str:
    """Describe what the linear program optimises."""
    if proved.is_infeasible:
        return "none; the file adds up the rows to an inequality that is false: nothing meets all of them"
    if not proved.program.objective:
        return "none; the file has a point that meets all rows"
    verb = "largest" if proved.program.is_maximised else "least"
    low, high = map(_format_rational, proved.proved_range)
    is_attack = proved.program.columns[0].startswith("take[")
    what = "the probability of these outcomes" if is_attack else "as above"
    return f"{what}. Its {verb} value is proved to be from {low} to {high}"


def _format_rational(number: str) -> str:
    """Return a rational with its value in digits."""
    return number if number.endswith("inf") else f"{number} (about {float(Fraction(number)):.15g})"
