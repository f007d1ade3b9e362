"""Output files of commands: parameter types, and checks before writing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from pmlopt.core.files import disk
from pmlopt.core.matrices.formats import check_format
from pmlopt.errors import InputError

PATH = click.Path(path_type=Path)
PRINTS_APART = "pmlopt.prints_apart"
"""The key of a context under which it is noted that a file goes to standard output."""


class TargetFile(click.Path):
    """A click type of output files; printing moves to standard error for standard output."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, and record standard output in the context."""
        path = super().convert(value, param, ctx)
        if ctx is not None and disk.is_standard_stream(os.fsdecode(path)):
            ctx.meta[PRINTS_APART] = True
        return path


class DataPath(click.Path):
    """A click type of data: a path, or the URL of a database as text."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, or the URL."""
        return value if "://" in str(value) else super().convert(value, param, ctx)


DATA = DataPath(path_type=Path)
TARGET = TargetFile(path_type=Path)
TARGET_OR_FOLDER = TargetFile(path_type=Path)
"""A file to write, or a folder to make, which the command looks at itself under its lock."""


def check_files(parameters: Sequence[click.Parameter], given: Mapping[str, Any]) -> None:
    """Raise an error for unwritable, duplicate or input files among the targets."""
    targets, sources = list[Path](), list[Path]()
    for one in parameters:
        (targets if isinstance(one.type, TargetFile) else sources).extend(
            _list_paths(given.get(str(one.name)))
        )
    check_distinct_targets(targets)
    check_targets_not_inputs(targets, sources)
    for one in parameters:
        if isinstance(one.type, TargetFile) and one.type is not TARGET_OR_FOLDER:
            for path in _list_paths(given.get(str(one.name))):
                disk.check_target(path)


def _list_paths(value: Any) -> Iterator[Path]:
    """List the file paths in an option's value."""
    if isinstance(value, tuple):
        for part in value:
            yield from _list_paths(part)
    elif isinstance(value, Path):
        yield value
    elif isinstance(value, str) and "://" not in value and Path(value).suffix:
        yield Path(value.partition("=")[2] or value)


def check_distinct_targets(targets: Sequence[Path]) -> None:
    """Raise an error where two targets are the same file."""
    if len({path.resolve() for path in targets}) < len(targets):
        raise InputError(f"two of the files to write are the same: {', '.join(map(str, targets))}")


def check_targets_not_inputs(targets: Sequence[Path], inputs: Iterable[Path]) -> None:
    """Raise an error where a target is one of the input files."""
    for source in inputs:
        for target in targets:
            if disk.is_same_file(target, source):
                raise InputError(f"{target}: is read by this command: write to another file")


def check_file_formats(output: Path | None, plot: Path | None) -> None:
    """Raise an error for unknown output or plot formats, before solving."""
    if output is not None:
        check_format(output)
    if plot is not None:
        from pmlopt.core.display import get_figure_class
        from pmlopt.programs.plots import FIGURE_FORMATS

        disk.get_file_format(plot, FIGURE_FORMATS)
        get_figure_class()
