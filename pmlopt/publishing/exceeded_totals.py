"""What a release that exceeds its total would have to change."""

from __future__ import annotations

from collections.abc import Iterator

from pmlopt.core.display import format_nats
from pmlopt.core.numbers.arrays import join_words
from pmlopt.publishing.folder import ClearColumnLevels, ReleaseFile


def can_fit_total(planned: ReleaseFile) -> bool:
    """Return whether a smaller epsilon may keep the total: what stays in clear does not use it up."""
    whole = _find_whole(planned)
    return not planned.kept or (whole is not None and whole.alone <= (planned.total or 0.0))


def explain_exceeded_total(planned: ReleaseFile, fits: float | None) -> Iterator[str]:
    """Yield what each column in clear adds, and which epsilon fits the total.

    Args:
        planned: the release, which exceeds its total.
        fits: the largest epsilon that fits; None where none was found.
    """
    single = [one for one in planned.in_clear if len(one.columns) == 1]
    if single:
        each = join_words((_describe_column(one, planned.together) for one in single), 9)
        yield (
            f"What is released leaks {format_nats(planned.together)}. With one column in clear: {each}. "
            "Columns depend on each other, so what they add does not sum up."
        )
    whole = _find_whole(planned)
    if not can_fit_total(planned) and whole is not None:
        yield (
            f"No epsilon fits: {join_words(planned.kept, 9)} in clear alone "
            f"reveal{'s' * (len(planned.kept) == 1)} {format_nats(whole.alone)}. Keep fewer columns, or "
            "coarser values."
        )
    elif fits is not None:
        yield f"The largest epsilon that fits is {fits:g}: give --epsilon {fits:g}."
    elif planned.kept and planned.together >= (planned.total or 0.0) * (1 - 1e-9):
        yield (
            "The released columns use up the whole total, and nothing is left for what stays in clear: keep "
            "no column, or give an epsilon below the total."
        )
    else:
        yield "Lower an epsilon, or release or keep fewer columns."


def _find_whole(planned: ReleaseFile) -> ClearColumnLevels | None:
    """Return the levels of all columns in clear together; None where they are not stated."""
    whole = (one for one in planned.in_clear if set(one.columns) == set(planned.kept))
    return next(whole, None)


def _describe_column(one: ClearColumnLevels, without: float) -> str:
    """Return the level with a column in clear, and what that adds."""
    (name,) = one.columns
    if one.with_release is None:
        return f"{name} more than can be listed"
    return (
        f"{name} {format_nats(one.with_release)} (adds {max(one.with_release - without, 0.0):.3g})"
    )
