"""What a report says: the promise, about what, for whom, what it is worth, and what is not promised."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.measures.posterior import OutcomeTells, outcome_warnings, what_outcomes_tell
from pmlopt.model.privacy.requirement import Conjunction, Requirement
from pmlopt.model.utility import informations
from pmlopt.model.utility.linear import expectation
from pmlopt.programs.certificate import Certificate, Verdict
from pmlopt.programs.design_program import DesignCertificate, ListedCertificate
from pmlopt.programs.linear.certificate import LinearCertificate
from pmlopt.programs.subconvex.certificate import ColumnCertificate
from pmlopt.programs.worst_case.certificate import ThresholdCertificate

BISECTIONS = 50
"""Steps by which the least noise of randomized response is found: to the last digits of its share."""


@dataclass(frozen=True)
class Baselines:
    """What the utility is called, and its values.

    Attributes:
        what: "expected gain", "expected loss", or the name of an information, with its unit.
        more_is_better: whether it is maximised.
        nothing: of the best mechanism that releases nothing.
        response: of randomized response at the same limits; None where even that much noise is not enough.
        design: of the mechanism in hand.
        everything: of releasing the best output of each letter, with no privacy.
    """

    what: str
    more_is_better: bool
    nothing: float
    response: float | None
    design: float
    everything: float

    def __str__(self) -> str:
        """One line: the design, and both ends."""
        ends = f"releasing nothing {self.nothing:.4g}, releasing everything {self.everything:.4g}"
        return f"{self.what}: this mechanism {self.design:.4g}, {ends}"

    @property
    def rows(self) -> list[tuple[str, float]]:
        """The values by name, in the order in which they are told."""
        found = [("releasing nothing", self.nothing)]
        if self.response is not None:
            found.append(("randomized response at the same limits", self.response))
        return [*found, ("this mechanism", self.design), ("releasing everything", self.everything)]


def baselines(certificate: DesignCertificate) -> Baselines | None:
    """The baselines of a design with a linear or a named sub-convex utility; None for others.

    Randomized response gives each letter its best output, or with a probability a uniform one: the least
    probability at which the requirement holds.

    Examples:
        >>> from pmlopt import PML, ExpectedLoss, design, solve
        >>> flip = solve(design([0.5, 0.5], PML(0.2), ExpectedLoss([[0, 1], [1, 0]])))
        >>> found = baselines(flip.certificate)
        >>> found.what, found.nothing, found.everything, abs(found.response - found.design) < 1e-9
        ('expected loss', 0.5, 0.0, True)
    """
    prior, n = certificate.prior, certificate.prior.size
    value: Callable[[FloatArray], float]
    if isinstance(certificate, LinearCertificate):
        table, maximised = certificate.table, certificate.maximised
        best = (table if maximised else -table).argmax(axis=1)
        means = prior.pmf @ table
        nothing = float(means.max() if maximised else means.min())
        what = "expected gain" if maximised else "expected loss"

        def value(matrix: FloatArray) -> float:
            return expectation(prior, table, matrix)

        everything = np.eye(table.shape[1])[best]
    elif isinstance(certificate, ColumnCertificate) and certificate.utility in informations():
        utility, maximised = informations()[certificate.utility](), True
        unit = ", in nats" if certificate.utility == "mutual-information" else ""
        what, everything = certificate.utility.replace("-", " ") + unit, np.eye(n)

        def value(matrix: FloatArray) -> float:
            return utility.value(prior, Mechanism(matrix, prior.labels))

        nothing = value(np.ones((n, 1)))
    else:
        return None
    response = _response(certificate, everything)
    return Baselines(
        what=what,
        more_is_better=maximised,
        nothing=nothing,
        response=None if response is None else value(response),
        design=certificate.value,
        everything=value(everything),
    )


def _response(certificate: DesignCertificate, everything: FloatArray) -> FloatArray | None:
    """The best answer of each letter, or a uniform one, with the least noise that the requirement allows."""
    uniform = np.full(everything.shape, 1 / everything.shape[1])

    def mixed(share: float) -> FloatArray:
        return np.asarray((1 - share) * everything + share * uniform)

    def holds(share: float) -> bool:
        return certificate.privacy.holds(certificate.prior, Mechanism(mixed(share), certificate.prior.labels))

    low, high = 0.0, 1.0
    if holds(low):
        return mixed(low)
    if not holds(1.0 - 1e-9):
        return None
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return mixed(high)


MEANINGS = {
    "pml": "No outcome makes any guess about anything that is asked more than e^{limit} times as likely.",
    "pml_above_budget": "Each letter has a budget of its own, and no outcome makes it likelier by more.",
    "ldp": "No outcome is more than e^{limit} times as likely for one person's data as for another's.",
    "lip_lower": "No outcome makes anything less likely by a factor of more than e^{limit}.",
    "lip_upper": "No outcome makes anything more likely by a factor of more than e^{limit}.",
    "maximal_leakage": "On average over outcomes, a guess becomes at most e^{limit} times as likely.",
    "sibson_leakage": "On average over outcomes, in a mean of the order, lifts are at most e^{limit}.",
    "approximate_pml": "No event is more than e^{limit} times as likely given anything, but for the slack.",
    "metric": "Letters at the distance d cannot be told apart by more than a factor of e^({limit} d).",
    "pufferfish": "No outcome tells two values of the secret apart by more than a factor of e^{limit}.",
    "g_leakage": "No outcome raises what this adversary expects to gain by more than e^{limit}.",
}
"""What limits mean, by name."""

SOURCES = {
    "pml": "Saeidian, Cervia, Oechtering, Skoglund: Pointwise maximal leakage (2023)",
    "ldp": "Kasiviswanathan, Lee, Nissim, Raskhodnikova, Smith: What can we learn privately? (2011)",
    "maximal_leakage": "Issa, Wagner, Kamath: An operational approach to information leakage (2020)",
    "pufferfish": "Kifer, Machanavajjhala: Pufferfish (2014)",
    "metric": "Chatzikokolakis, Andres, Bordenabe, Palamidessi: Broadening the scope of DP (2013)",
}
"""Where the requirements come from."""

NOT_PROMISED = (
    "Several releases about one person: together they may leak more than the sum of their levels. Keep a "
    "ledger (pmlopt ledger).",
    "Other columns that are released in clear beside the output, or that an adversary knows to depend on it.",
    "Data that was looked at before the mechanism was fixed, unless the prior comes with a sample and a set.",
    "Whether the program that draws the outputs draws them as the matrix says, from a good generator.",
)
"""What no report of one mechanism promises."""


@dataclass(frozen=True)
class Facts:
    """What a report says.

    Attributes:
        kind: of the certificate.
        promise: what is claimed, in a line.
        meanings: in plain words, one for each limit.
        about: what is protected.
        scope: for which priors.
        not_promised: lines.
        outcomes: what each tells of the letter, those that leak most first; none without a prior.
        limit: of the leakage, drawn beside the outcomes; None where it is not one number for them.
        utility: the value with its baselines; None where there are none.
        warnings: what a reader must not overlook.
        verdict: of the check of the file.
        sources: of the notions.
        mechanism: the matrix.
    """

    kind: str
    promise: str
    meanings: tuple[str, ...]
    about: str
    scope: str
    not_promised: tuple[str, ...]
    outcomes: tuple[OutcomeTells, ...]
    limit: float | None
    utility: Baselines | None
    warnings: tuple[str, ...]
    verdict: Verdict
    sources: tuple[str, ...]
    mechanism: Mechanism


def facts_of(certificate: Certificate, verdict: Verdict) -> Facts:
    """What a report says of a certificate."""
    design = certificate.kept if isinstance(certificate, ThresholdCertificate) else certificate
    prior = getattr(certificate, "prior", None) or getattr(design, "prior", None)
    known = prior if isinstance(prior, Prior) and prior.size == len(certificate.mechanism.inputs) else None
    privacy = design.privacy if isinstance(design, ListedCertificate) else None
    limits = {} if privacy is None else privacy.limits
    utility = baselines(design) if isinstance(design, DesignCertificate) else None
    names = {name.partition("_about_")[0] for name in limits}
    outcomes = () if known is None else tuple(what_outcomes_tell(known, certificate.mechanism))
    return Facts(
        kind=certificate.kind,
        promise=certificate.statement,
        meanings=tuple(_meaning(name, limit) for name, limit in limits.items()),
        about=_about(privacy),
        scope=_scope(privacy, known),
        not_promised=NOT_PROMISED,
        outcomes=outcomes,
        limit=limits.get("pml", limits.get("lip_upper")),
        utility=utility,
        warnings=() if known is None or privacy is None else warnings_of(known, privacy, outcomes),
        verdict=verdict,
        sources=tuple(SOURCES[name] for name in SOURCES if name in names),
        mechanism=certificate.mechanism,
    )


def warnings_of(prior: Prior, privacy: Requirement, outcomes: Sequence[OutcomeTells]) -> tuple[str, ...]:
    """What is easily overlooked: a limit that binds nothing, outcomes that give letters away or exclude them.

    Examples:
        >>> from pmlopt import PML
        >>> warnings_of(Prior([0.5, 0.5]), PML(3.0), [])[0][:43]
        'The limit binds nothing: releasing the data'
    """
    found = []
    if privacy.holds(prior, Mechanism(np.eye(prior.size), prior.labels)):
        found.append("The limit binds nothing: releasing the data itself keeps it under this prior.")
    return (*found, *outcome_warnings(outcomes))


def _meaning(name: str, limit: float) -> str:
    base = name.partition("_about_")[0]
    text = MEANINGS.get(base, "The limit {limit} nats holds for the ratio that is named.")
    return text.replace("{limit}", f"{limit:.6g}")


def _about(privacy: Requirement | None) -> str:
    secret = getattr(privacy, "secret", None)
    if secret is not None:
        return f"{secret.name}, of which the data tells"
    return "what an adversary may learn of the data itself, and of whatever depends on it"


def _scope(privacy: Requirement | None, prior: Prior | None) -> str:
    parts = privacy.parts if isinstance(privacy, Conjunction) else (privacy,)
    words = "; ".join(part.scope for part in parts if part is not None and part.scope)
    if words:
        return words
    if prior is None:
        return "as the promise says"
    sample = "" if prior.samples is None else f", from {prior.samples:,} observations"
    return f"under the prior of the file ({prior.size} letters{sample})"
