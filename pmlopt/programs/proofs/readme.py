"""The README of a proof, and its sentences: templates next to the code, filled in with the numbers."""

from __future__ import annotations

from decimal import ROUND_UP, Context, Decimal
from fractions import Fraction
from functools import cache
from importlib.resources import files as resource_files

from pmlopt.core.arrays import FloatArray
from pmlopt.core.descriptions import escape_control_characters
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.programs.certificate import Certificate
from pmlopt.programs.least_leakage.epsilon_certificate import LeastEpsilonCertificate
from pmlopt.programs.proofs.formats import ProvedProgram
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


def round_up_digits(number: Fraction) -> Decimal:
    """Round a non-negative number up to two digits.

    Examples:
        >>> f"{round_up_digits(Fraction(45176, 10**17)):.2g}"
        '4.6e-13'
    """
    up = Context(prec=2, rounding=ROUND_UP)
    return up.divide(Decimal(number.numerator), Decimal(number.denominator))


def build_readme(certificate: Certificate, proofs: list[ProvedProgram]) -> str:
    """Build the README of a proof."""
    subject: Certificate = getattr(certificate, "kept", certificate)
    if isinstance(certificate, LeastEpsilonCertificate):
        subject = certificate.witness
    prior, outputs = subject.listed_prior, subject.mechanism.outputs
    assert prior is not None  # there are proofs of listed priors only
    names = zip(map(_format_label, outputs), make_names(outputs), strict=True)
    return read_template("readme").format(
        sentences="\n".join(f"- `{one.name}.vipr`: {one.sentence}" for one in proofs),
        warnings="".join(f"\n**{warning}**\n" for warning in warn_of_sample(certificate)),
        claim=_describe_claim(subject),
        size=prior.size,
        total=sum(prior.weights),
        letters=_format_letters(prior),
        outputs=", ".join(f"{label} as {name}" for label, name in names),
        matrix=_format_matrix(subject.mechanism),
        table=_format_table(subject, prior),
        programs="".join(map(_format_program, proofs)),
        commands="\n".join(f"viprchk {one.name}.vipr" for one in proofs),
    )


def _describe_claim(certificate: Certificate) -> str:
    """Describe the requirement, and what it means, where there is one."""
    privacy = getattr(certificate, "privacy", None)
    if privacy is None:
        return f"{escape_control_characters(certificate.statement)}."
    scope = f" The bound holds {privacy.scope}." if privacy.scope else ""
    name = escape_control_characters(repr(privacy))
    return f"The requirement is `{name}`. {' '.join(privacy.meanings)}{scope}"


def _format_letters(prior: Prior) -> str:
    """Format the prior letter by letter, as the rationals of the rows."""
    total, labels = sum(prior.weights), map(_format_label, prior.labels)
    letters = zip(labels, make_names(prior.labels), prior.weights, strict=True)
    return "\n".join(
        f"| {label} | {name} | {weight} | {float(Fraction(weight) / total):.9g} |"
        for label, name, weight in letters
    )


def _format_label(label: object) -> str:
    """Format a label in a line of Markdown."""
    return "`" + escape_control_characters(repr(label)).replace("`", "'").replace("|", "\\|") + "`"


def _is_small(table: FloatArray) -> bool:
    """Return whether a reader still looks at all entries of a table."""
    return table.size <= 400


def _format_matrix(mechanism: Mechanism) -> str:
    """Format the mechanism letter by letter, where it is small enough to look at."""
    if not _is_small(mechanism.matrix):
        return "\nThe mechanism is in the file of the result, and in the solution (SOL) of the files.\n"
    rows = zip(make_names(mechanism.inputs), mechanism.matrix.tolist(), strict=True)
    lines = (f"- `{name}`: {', '.join(map(repr, row))}" for name, row in rows)
    return "\n".join(
        ["\nThe mechanism: of each letter the probabilities of the outputs.\n", *lines, ""]
    )


def _format_table(certificate: Certificate, prior: Prior) -> str:
    """Format the table of gains or losses, where there is one."""
    source = getattr(certificate, "expected", certificate)
    table: FloatArray | None = getattr(source, "table", None)
    if table is None:
        return ""
    word = "gains" if getattr(source, "maximised", True) else "losses"
    head = (
        f"\nThe table of {word}; the objective is the prior times it, on each `P[letter,output]`:\n"
    )
    if not _is_small(table):
        return f"{head}\nit is in the file of the result, its products with the prior in the objective.\n"
    rows = zip(make_names(prior.labels), table.tolist(), strict=True)
    return "\n".join(
        [head, *(f"- `{name}`: {', '.join(map(repr, row))}" for name, row in rows), ""]
    )


def _format_program(proved: ProvedProgram) -> str:
    """Format the size of a linear program, what its rows and columns mean, and its powers of e."""
    program, meanings = proved.program, read_template("meanings").splitlines()
    names = [*program.columns, *(row.name for row in program.rows)]
    kinds = {name.partition("[")[0] for name in names}
    side, powers = "above" if program.above else "below", []
    for exponent, ratio in program.powers.items():
        off = 2 * float(abs(Fraction(Context(prec=70).exp(Decimal(exponent))) - ratio)) + 1e-60
        text = f"replaced by {ratio}, {side} it by less than {off:.1g}"
        exact = f"{exponent!r}, which is {Fraction(exponent)},"
        powers.append(f"e to {exact} is {text if ratio != 1 else 1}.\n")
    if powers and not _is_attack(proved):
        powers.append(
            "Each mechanism that meets the requirement meets these rows.\n" if program.above
            else "Each mechanism that meets these rows meets the requirement.\n"
        )  # fmt: skip
    return read_template("program").format(
        name=proved.name,
        columns=len(program.columns),
        rows=len(program.rows),
        meanings="\n".join(line for line in meanings if line.split("`")[1] in kinds),
        objective=_describe_objective(proved),
        powers="\n".join(powers),
    )


def _is_attack(proved: ProvedProgram) -> bool:
    """Return whether the program is about a processing of the outputs, and not about a mechanism."""
    return any(name.startswith("take[") for name in proved.program.columns)


def _describe_objective(proved: ProvedProgram) -> str:
    """Describe what the linear program optimises."""
    if proved.is_infeasible:
        return "none; the file adds up the rows to an inequality that is false: nothing meets all of them"
    if not proved.program.objective:
        return "none; the file has a point that meets all rows"
    verb = "largest" if proved.program.is_maximised else "least"
    ends = [
        end if end.endswith("inf") else f"{end} (about {float(Fraction(end)):.15g})"
        for end in proved.proved_range
    ]
    what = "the probability of these outcomes" if _is_attack(proved) else "as above"
    known = [end for end in ends if not end.endswith("inf")]
    if len(known) == 1:
        return f"{what}. Its value for the mechanism is {known[0]}; no bound on that of others is proved"
    return f"{what}. Its {verb} value is proved to be from {ends[0]} to {ends[1]}"
