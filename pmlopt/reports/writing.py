"""Write the report of a result, or of a file that holds one."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from pmlopt import files
from pmlopt.errors import FileFormatError
from pmlopt.reports.facts import Facts, facts_of
from pmlopt.reports.pages import page_html, page_markdown
from pmlopt.result import Result
from pmlopt.saved.certificates import certificate_from_record
from pmlopt.saved.verifying import read_saved, verify_file

ENDINGS = (".html", ".md")


def write_report(source: Result[Any] | str | os.PathLike[str], path: str | os.PathLike[str]) -> None:
    """Write what a result promises, about what and for whom, what it does not promise, and how to check it.

    The page is one file without scripts, and loads nothing; it follows the reader's light or dark mode.

    Args:
        source: a Result, or a .json or .npz file in which one was saved.
        path: where to write: .html, or .md for Markdown.

    Raises:
        FileFormatError: the source holds no result, a claim of it is false (there is no report of a promise
            that does not hold), or the path has another ending or cannot be written.

    Examples:
        >>> import pathlib, tempfile
        >>> from pmlopt import ExpectedLoss, PML, design, solve
        >>> found = solve(design([0.5, 0.5], PML(0.2), ExpectedLoss([[0, 1], [1, 0]])))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_report(found, pathlib.Path(folder) / "promise.html")
        ...     "randomized response" in (pathlib.Path(folder) / "promise.html").read_text()
        True
    """
    ending = files.ending_of(path, ENDINGS)
    if isinstance(source, Result):
        with tempfile.TemporaryDirectory() as folder:
            saved = Path(folder) / "mechanism.json"
            source.save(saved)
            facts, name = read_facts(saved), saved.name
    else:
        facts, name = read_facts(source), Path(source).name
    page = page_html(facts, name) if ending == ".html" else page_markdown(facts, name)
    files.write_whole(path, page.encode())


def read_facts(path: str | os.PathLike[str]) -> Facts:
    """What a report says of a saved result, all of it computed from the file."""
    verdict = verify_file(path)
    if verdict.failures:
        raise FileFormatError(
            f"{path}: there is no report of a result that is false: "
            + "; ".join(f"{claim.name}: {claim.detail}" for claim in verdict.failures)
        )
    mechanism, metadata = read_saved(path)
    return facts_of(certificate_from_record(metadata["certificate"], mechanism), verdict)
