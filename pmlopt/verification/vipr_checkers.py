"""Proofs given to a checker of VIPR certificates that a person names."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pmlopt.core.files import describe_os_error
from pmlopt.errors import FileFormatError, InputError

VIPR_ENDING = ".vipr"


@dataclass(frozen=True)
class CheckerVerdict:
    """What a checker found of one certificate.

    Attributes:
        path: of the certificate.
        accepts: whether it ended with exit code 0 and states that something is verified, and no failure.
        output: what it printed.
    """

    path: Path
    accepts: bool
    output: str


def list_certificates(path: Path) -> list[Path]:
    """List the VIPR certificates of a folder, or the one that is given.

    Raises:
        FileFormatError: there is none.
    """
    found = sorted(path.glob(f"*{VIPR_ENDING}")) if path.is_dir() else [path]
    if not found:
        raise FileFormatError(
            f"{path}: has no file *{VIPR_ENDING}: `pmlopt prove RESULT -o FOLDER` writes a folder with some"
        )
    return found


def run_checker(checker: str, certificates: Sequence[Path]) -> list[CheckerVerdict]:
    """Run a checker on certificates, one after the other.

    Args:
        checker: the command, to which the path of a certificate is added.
        certificates: the files.

    Raises:
        InputError: the command cannot be run.
    """
    command = shlex.split(checker, posix=os.name == "posix")
    if not command:
        raise InputError(
            "the checker is an empty command: give the path of a program such as viprchk"
        )
    found = []
    for path in certificates:
        try:
            # the command is the person's own choice, and no shell looks at it
            run = subprocess.run(  # noqa: S603
                [*command, str(path)], capture_output=True, text=True, errors="replace", check=False
            )
        except OSError as cause:
            raise InputError(
                f"the checker {command[0]!r} cannot be run: {describe_os_error(cause)}"
            ) from None
        output = (run.stdout + run.stderr).replace(str(path), "")
        # some checkers end with 0 whatever they find: their words count, too
        found.append(CheckerVerdict(path, run.returncode == 0 and _states_success(output), output))
    return found


def _states_success(output: str) -> bool:
    """Return whether what a checker printed has the word verified, and none of a failure."""
    words = output.lower()
    return "verified" in words and not re.search(r"\bfail|not verified|unverified", words)
