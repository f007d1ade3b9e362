"""Running a command, and writing a problem file for it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import click
import jsonschema
from click.testing import CliRunner, Result

from pmlopt.cli import main

OUTPUT_SCHEMA: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "docs" / "output.schema.json").read_text("utf-8")
)
VALIDATOR = jsonschema.Draft202012Validator(OUTPUT_SCHEMA)


def run_fully(*arguments: object, code: int = 0) -> Result:
    """What becomes of a command, given its exit code; JSON that it prints has the keys of the schema."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    if "--json" in arguments and "--verbose" not in arguments and result.stdout:
        check_output_schema(json.loads(result.stdout))
    return result


def check_output_schema(content: Any) -> None:
    """Fail where JSON of a command has other keys than docs/output.schema.json, or other types."""
    assert isinstance(content, dict), "a list has no format"
    if content.get("format") == "pmlopt release 2":  # a release.json
        return
    kinds = [one["properties"]["format"]["const"] for one in OUTPUT_SCHEMA["oneOf"]]
    place = kinds.index(content["format"])
    own = OUTPUT_SCHEMA["oneOf"][place]["properties"]
    faults = [one.message for one in VALIDATOR.iter_errors(content)]
    assert not faults, f"{faults}; {sorted(set(content) ^ set(own))}"


def run(*arguments: object, code: int = 0) -> str:
    """What a command prints, given its exit code."""
    return run_fully(*arguments, code=code).output


def run_line(line: str, given: str | bytes | None = None, code: int = 0) -> Result:
    """What becomes of a command as it is typed, given its standard input and its exit code."""
    result = CliRunner().invoke(main, shlex.split(line), input=given)
    assert result.exit_code == code, result.output
    return result


def find_command(name: str, group: click.Group = main) -> click.Command:
    """The command of a name, which there is."""
    found = group.get_command(click.Context(group), name)
    assert found is not None
    return found


COUNTING = ("design", "--epsilon", 1, "--utility", "hamming", "--prior")
"""A command that counts columns of a data file, which follows with `--column`."""


def write(folder: Path, text: str) -> Path:
    """A problem file of the id `small`."""
    path = folder / "small.toml"
    path.write_text(text)
    return path


KILLED = """
import os, sys
from pmlopt.cli import main
from pmlopt.core.files import drafts
from pmlopt.core.files import disk
left = [int(sys.argv.pop(1))]
def counted(kept):
    def rename(source, target):
        if left[0] == 0:
            os.kill(os.getpid(), 9)
        left[0] -= 1
        kept(source, target)
    return rename
disk.rename_durably = counted(disk.rename_durably)
drafts.publish_new = disk.publish_new = counted(disk.publish_new)
main()
"""
"""The command line as a script, killed before a file or folder gets its name for the k-th time."""
