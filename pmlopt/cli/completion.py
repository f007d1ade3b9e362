"""The completion of values in a shell: names of utilities and problems, and files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def complete_by(list_names: Callable[[], Iterable[str]]) -> Callable[..., list[CompletionItem]]:
    """Return the completion of a parameter by names, in any case, and by files."""

    def complete(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        named = [one for one in list_names() if one.startswith(begun.lower())]
        return [*map(CompletionItem, named), CompletionItem(begun, type="file")]

    return complete


def list_problem_names() -> list[str]:
    """List the ids of the problems of the library, each of which is the name of its file."""
    from pmlopt.library.listing import library

    return sorted(path.stem for path in library().rglob("*.toml"))


def list_utility_names() -> list[str]:
    """List the names of utilities that `--utility` takes."""
    from pmlopt.model.utility.linear import LOSSES, list_kind_names

    return sorted([*LOSSES, *list_kind_names()])
