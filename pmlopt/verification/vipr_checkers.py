"""Proofs given to a checker of VIPR certificates that a person names."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

from pmlopt.core.files.disk import describe_os_error
from pmlopt.errors import FileFormatError, InputError

VIPR_ENDING = ".vipr"


@dataclass(frozen=True)
class CheckerVerdict:
    """What a checker found of one certificate.

    Attributes:
        file: the name of the certificate.
        accepts: whether it ended with exit code 0 and states that something is verified, and no failure.
        output: what it printed.
    """

    file: str
    accepts: bool
    output: str


def run_checker(checker: str, place: Path) -> list[CheckerVerdict]:
    """Run a checker on the VIPR certificates of a folder, one after the other, or on the one that is given.

    Args:
        checker: the command, to which the path of a certificate is added.
        place: the folder, or the certificate.

    Raises:
        FileFormatError: there is no certificate.
        InputError: the command cannot be run.
    """
    paths = sorted(place.glob(f"*{VIPR_ENDING}")) if place.is_dir() else [place]
    if not paths:
        raise FileFormatError(
            f"{place}: has no file *{VIPR_ENDING}: `pmlopt prove RESULT -o FOLDER` writes a folder with some"
        )
    command = shlex.split(checker, posix=os.name == "posix")
    if not command:
        raise InputError(
            "the checker is an empty command: give the path of a program such as viprchk"
        )
    try:
        return [_check_certificate(command, path) for path in paths]
    except OSError as cause:
        text = f"the checker {command[0]!r} cannot be run: {describe_os_error(cause)}"
        raise InputError(text) from None


def _check_certificate(command: list[str], path: Path) -> CheckerVerdict:
    """Run a checker on one certificate."""
    # the command is the person's own choice, and no shell looks at it
    run = subprocess.run(  # noqa: S603
        [*command, str(path)], capture_output=True, text=True, errors="replace", check=False
    )
    output = (run.stdout + run.stderr).replace(str(path), "")
    # some checkers end with 0 whatever they find: their words count, too
    failed = re.search(r"\bfail|not verified|unverified", output.lower()) is not None
    accepts = run.returncode == 0 and "verified" in output.lower() and not failed
    return CheckerVerdict(path.name, accepts, output)
