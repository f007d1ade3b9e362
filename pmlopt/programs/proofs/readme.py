"""The README of a proof, and its sentences: templates next to the code, filled in with the numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import cache
from importlib.resources import files as resource_files

from pmlopt.core.descriptions import escape_control_characters
from pmlopt.core.numbers.arrays import FloatArray, Label
from pmlopt.data.prior import Prior
from pmlopt.programs.certificate import Certificate
from pmlopt.programs.least_leakage.epsilon_certificate import LeastEpsilonCertificate
from pmlopt.programs.proofs.exact_program import ProvedProgram
from pmlopt.programs.reports.pages import warn_of_sample
from pmlopt.solvers.mps import make_names


@cache
def read_template(name: str) -> str:
    """Read a template of this package."""
    place = resource_files("pmlopt.programs.proofs").joinpath("templates", f"{name}.md")
    return place.read_text("utf-8")


def format_sentence(name: str, **values: object) -> str:
    """Format a sentence on what is proved."""
    lines = dict(line.split(": ", 1) for line in read_template("sentences").splitlines())
    return lines[name].format(**values)


def round_digits(number: Fraction, digits: int, *, up: bool) -> Decimal:
    """Round a number up, or down, to some digits.

    Examples:
        >>> f"{round_digits(Fraction(45176, 10**17), 2, up=True):.2g}"
        '4.6e-13'
    """
    context = Context(prec=digits, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    return context.divide(Decimal(number.numerator), Decimal(number.denominator))


def build_readme(certificate: Certificate, proofs: list[ProvedProgram]) -> str:
    """Build the README of a proof."""
    subject: Certificate = getattr(certificate, "kept", certificate)
    if isinstance(certificate, LeastEpsilonCertificate):
        subject = certificate.witness
    prior = subject.listed_prior
    mechanism = subject.mechanism
    assert prior is not None  # there are proofs of listed priors only
    goal = getattr(subject, "expected", subject)
    word = "gains" if getattr(goal, "maximised", True) else "losses"
    table = ""
    if hasattr(goal, "table"):
        rows = _format_rows(prior, goal.table, "the objective, times the prior")
        table = f"\n{format_sentence('table', word=word)}\n\n{rows}\n"
    kinds = {kind for one in proofs for kind in one.program.kinds}
    meanings = read_template("meanings").splitlines()
    return read_template("readme").format(
        sentences="\n".join(f"- `{one.name}.vipr`: {one.sentence}" for one in proofs),
        warnings="".join(f"\n**{warning}**\n" for warning in warn_of_sample(certificate)),
        claim=_describe_claim(subject),
        size=prior.size,
        total=sum(prior.weights),
        letters=_format_letters(prior),
        outputs=", ".join(f"{label} as {name}" for label, name in _name_labels(mechanism.outputs)),
        matrix=_format_rows(prior, mechanism.matrix, "the solution (SOL)"),
        table=table,
        meanings="\n".join(line for line in meanings if line.split("`")[1] in kinds),
        programs="".join(map(_format_program, proofs)),
        commands="\n".join(f"viprchk {one.name}.vipr" for one in proofs),
    )


def _describe_claim(certificate: Certificate) -> str:
    """Describe the requirement, and what it means, where there is one."""
    privacy = getattr(certificate, "privacy", None)
    if privacy is None:
        return f"The claim is that {escape_control_characters(certificate.statement)}."
    scope = f" The bound holds {privacy.scope}." if privacy.scope else ""
    name = escape_control_characters(repr(privacy))
    return f"The requirement is `{name}`. {' '.join(privacy.meanings)}{scope}"


def _name_labels(labels: Sequence[Label]) -> Iterator[tuple[str, str]]:
    """Yield labels as code in a line of Markdown, and their names in the files."""
    for label, name in zip(labels, make_names(labels), strict=True):
        text = escape_control_characters(repr(label)).replace("`", "'").replace("|", "\\|")
        yield f"`{text}`", name


def _format_letters(prior: Prior) -> str:
    """Format the prior letter by letter, as the rationals of the rows."""
    total = sum(prior.weights)
    letters = zip(_name_labels(prior.labels), prior.weights, strict=True)
    return "\n".join(
        f"| {label} | {name} | {weight} | {float(Fraction(weight) / total):.9g} |"
        for (label, name), weight in letters
    )


def _format_rows(prior: Prior, table: FloatArray, place: str) -> str:
    """Format a table letter by letter, where it is small enough to look at; else state where it is."""
    if table.size > 400:
        return format_sentence("large", place=place)
    rows = zip(make_names(prior.labels), table.tolist(), strict=True)
    return "\n".join(f"- `{name}`: {', '.join(map(repr, row))}" for name, row in rows)


def _format_program(proved: ProvedProgram) -> str:
    """Format the size of a linear program, what it optimises, and its powers of e."""
    program = proved.program
    powers = []
    side = "above" if program.above else "below"
    for exponent, ratio in program.powers.items():
        off = 2 * float(abs(Fraction(Context(prec=70).exp(Decimal(exponent))) - ratio)) + 1e-60
        powers.append(format_sentence(
            "power", exponent=exponent, exact=Fraction(exponent), ratio=ratio, side=side, off=off
        ))  # fmt: skip
    if powers and "take" not in program.kinds:
        powers.append(format_sentence(f"with-powers-{side}"))
    return read_template("program").format(
        name=proved.name,
        columns=len(program.columns),
        rows=len(program.rows),
        objective=_describe_objective(proved),
        powers="\n\n".join(powers),
    )


def _describe_objective(proved: ProvedProgram) -> str:
    """Describe the value of the objective that is proved."""
    if not proved.program.objective:
        return format_sentence(f"{proved.name}-without-objective")
    ends = [end for end in proved.proved_range if not end.endswith("inf")]
    texts = [f"{end} (about {float(Fraction(end)):.15g})" for end in ends]
    verb = "largest" if proved.program.sign > 0 else "least"
    return format_sentence("range" if texts[1:] else "value", verb=verb, ends=" to ".join(texts))
