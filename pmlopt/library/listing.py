"""The folder of the problem library, and what its files are about, without what they declare."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ListedProblem:
    """What a problem of the library is about.

    Attributes:
        id, title: its names; `id` is the file's name.
        path: of the file.
        cite, where: the key in references.bib and the place in the source.
    """

    id: str
    title: str
    path: Path
    cite: str
    where: str

    @property
    def source(self) -> str:
        """Return the source in one line."""
        return f"{self.cite}, {self.where}"


def library() -> Path:
    """Return the folder of the problem library."""
    package = Path(__file__).parent.parent
    installed = package / "problems"
    return installed if installed.is_dir() else package.parent / "problems"


def list_problems() -> list[ListedProblem]:
    """List the problems of the library, sorted by id.

    Examples:
        >>> [one.source for one in list_problems() if one.id == "record-parity-laplace-b2"]
        ['wu2026entropy, Table 3']
    """
    problems = [_read_problem(path) for path in library().glob("*/*.toml")]
    return sorted(problems, key=lambda problem: problem.id)


def _read_problem(path: Path) -> ListedProblem:
    """Read what a problem file is about."""
    content = tomllib.loads(path.read_text("utf-8"))
    source = content["source"]
    return ListedProblem(content["id"], content["title"], path, source["cite"], source["where"])
