"""The largest epsilon of a planned release within its total, or its ledger's budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from pmlopt.core.frames import Missing
from pmlopt.publishing.plans import ReleasePlan
from pmlopt.publishing.releasing import ReleaseDraft, release


def find_largest_epsilon(
    plan: ReleasePlan,
    draft: ReleaseDraft,
    missing: Missing,
    fits: Callable[[ReleaseDraft], bool],
) -> float | None:
    """Find by bisection the largest epsilon of a column's release that fits a budget.

    Each candidate is designed and compared with what is allowed, so the plan with the epsilon that is
    returned fits. The search halves the interval: it presumes that smaller levels fit where larger do.

    Args:
        plan: with one release, designed for its epsilon.
        draft: of the release that does not fit.
        missing: what becomes of missing cells.
        fits: whether the budget allows a release: `fits_ledger`, `fits_total`.

    Returns:
        the epsilon with three digits; None where the plan gives none, or none was found in a minute.
    """
    table = next(iter(plan.release.values()))
    epsilon = _find_bound(table).get("epsilon")
    if len(plan.release) > 1 or not isinstance(epsilon, int | float) or isinstance(epsilon, bool):
        return None
    # the search ends after a minute with the largest epsilon that was found to fit
    end = time.monotonic() + 60.0
    low = 0.0
    high = float(epsilon)
    found = None
    # Halvings of the interval that is searched.
    for _ in range(12):
        if time.monotonic() > end:
            break
        middle = float(f"{low + (high - low) / 2:.3g}")
        if not low < middle < high:
            break
        if fits(_draft_at(plan, draft, missing, middle)):
            found = low = middle
        else:
            high = middle
    return found


def _find_bound(table: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the table with the epsilon of a planned column: its own, or that of its requirement."""
    privacy = table.get("privacy", table)
    return privacy if isinstance(privacy, Mapping) else {}


def fits_ledger(draft: ReleaseDraft) -> bool:
    """Return whether the ledger of a release allows it."""
    allowed = draft.check_ledger()
    return allowed is not None and allowed[1]


def fits_total(draft: ReleaseDraft) -> bool:
    """Return whether a release keeps its total."""
    return not draft.planned.exceeds_total


def _draft_at(
    plan: ReleasePlan, draft: ReleaseDraft, missing: Missing, epsilon: float
) -> ReleaseDraft:
    """Return the release of the plan, designed for another epsilon."""
    ((name, table),) = plan.release.items()
    bound = {**_find_bound(table), "epsilon": epsilon}
    changed = plan.with_options(
        release={name: {**table, "privacy": bound} if "privacy" in table else bound}
    )
    planned = draft.planned
    return release(
        draft.data, changed.make_mechanisms(draft.data, missing, draft.form), keep=planned.kept,
        drop=planned.dropped, total=planned.total, law=draft.law, ledger=draft.ledger,
        person_column=draft.person_column, household_column=plan.group,
        exact_counts=plan.exact_counts, drop_missing=draft.drop_missing, form=draft.form,
    )  # fmt: skip
