"""The folder of a proof: VIPR and MPS files of its linear programs, and a README in plain words."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pmlopt.core.failures import report_os_errors
from pmlopt.core.files.disk import publish_new
from pmlopt.errors import FileFormatError
from pmlopt.programs.certificate import Certificate
from pmlopt.programs.proofs.claims import iterate_proofs
from pmlopt.programs.proofs.exact_program import iterate_mps_lines, iterate_vipr_lines
from pmlopt.programs.proofs.readme import build_readme


@dataclass(frozen=True)
class WrittenProof:
    """What was proved in a folder.

    Attributes:
        folder: where the files are.
        sentences: what each pair of files proves, by their name.
        value: the objective at the mechanism.
        bound: the proved bound on it; None where none is proved.
        levels: where a least level, or that of an envelope, is claimed, the level that is reached in nats,
            and that which is proved not to be; else empty.
    """

    folder: Path
    sentences: dict[str, str]
    value: Fraction
    bound: Fraction | None
    levels: tuple[float, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain data: what `pmlopt prove --json` prints; rationals as text."""
        return {
            "folder": str(self.folder),
            "proved": self.sentences,
            "exact_value": str(self.value),
            "exact_bound": None if self.bound is None else str(self.bound),
            "level_ends": list(self.levels),
        }

    def __str__(self) -> str:
        """Return the folder, and what each file proves."""
        return "\n".join(
            [f"{self.folder}:", *(f"{name}.vipr: {text}" for name, text in self.sentences.items())]
        )


def write_proof(certificate: Certificate, folder: str | os.PathLike[str]) -> WrittenProof:
    """Write the proof of a certificate into a new folder, completely or not at all.

    Args:
        certificate: of a result on listed letters.
        folder: that does not exist yet.

    Raises:
        ProgramError: its claims are about no linear program.
        FileFormatError: the folder exists, or cannot be written.
    """
    target = Path(folder)
    if os.path.lexists(target):
        raise FileFormatError(f"{target}: exists already: give the name of a new folder")
    proofs = list(iterate_proofs(certificate))
    contents: dict[str, Iterable[str]] = {"README.md": [build_readme(certificate, proofs)]}
    for one in proofs:
        contents[f"{one.name}.vipr"] = iterate_vipr_lines(one)
        contents[f"{one.name}.mps"] = iterate_mps_lines(one)
    with (
        report_os_errors(target),
        TemporaryDirectory(dir=target.parent, prefix=".proof-") as place,
    ):
        draft = Path(place) / target.name
        draft.mkdir()
        for name, lines in contents.items():
            _write_lines(draft / name, lines)
        publish_new(draft, target)
    return WrittenProof(
        folder=target,
        sentences={one.name: one.sentence for one in proofs},
        value=proofs[0].program.value,
        bound=proofs[-1].bound,
        levels=tuple(one.level for one in proofs if one.level is not None),
    )


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines of a file, and flush them to disk."""
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        stream.writelines(f"{line}\n" for line in lines)
        stream.flush()
        os.fsync(stream.fileno())
