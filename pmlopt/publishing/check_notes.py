"""What the check of a release folder states beyond its claims: warnings, and what no folder can show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pmlopt.core.numbers.arrays import IntArray
from pmlopt.data.mechanism import Mechanism
from pmlopt.measures.outcomes import list_outcome_warnings, summarize_outcomes
from pmlopt.publishing.folder import SYSTEM, ReleaseFile, restrict_to_occurring


def list_revealing_outputs(
    described: ReleaseFile, people: IntArray, mechanisms: Sequence[Mechanism]
) -> Iterator[str]:
    """Yield the warnings on outputs that prove or exclude true values, as the report has them.

    Args:
        described: the release.
        people: the stated counts, an axis for each mechanism.
        mechanisms: one for each part.
    """
    for place, (part, mechanism) in enumerate(zip(described.parts, mechanisms, strict=True)):
        found = summarize_outcomes(*restrict_to_occurring(people, place, mechanism))
        for line in list_outcome_warnings(found):
            several = len(mechanisms) > 1
            yield f"{' and '.join(part.columns)}: {line}" if several else line


def list_unshown_statements(described: ReleaseFile) -> tuple[str, ...]:
    """Return what the folder of a release cannot show, whatever is checked.

    Args:
        described: the release.
    """
    named = (
        f"{described.issuer!r} is named, which only a signature of the report shows"
        if described.issuer
        else "nobody is named"
    )
    whose = "the people in it" if described.same_people else "other people"
    drawn = (
        "that the random numbers came from the operating system is stated by the releaser; "
        if described.random == SYSTEM
        else ""
    )
    return (
        f"Who issued it: {named}.",
        f"Whether the stated shares are those of {whose}.",
        f"Whether the rows were drawn by the mechanisms, and not chosen: {drawn}the tests above find only "
        "what is unlikely.",
        "Whether there are other releases about the same people: the levels do not include them.",
    )
