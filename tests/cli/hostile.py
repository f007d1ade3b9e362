"""Files that whole commands read, and files that no command should take; running a command beside them."""

from __future__ import annotations

import io
import json
import math
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner

from pmlopt.cli import main

BAD_INPUT = 2


def refused(folder: Path, command: str, code: int = BAD_INPUT) -> str:
    """What a command complains of: it exits with a code, without a traceback, and touches no file."""
    before = contents(folder)
    result = CliRunner().invoke(main, shlex.split(command))
    assert result.exit_code == code, f"{command}: {result.exit_code}: {result.output}"
    assert "Traceback" not in result.output
    assert result.stderr.strip()
    assert contents(folder) == before
    return result.stderr


def contents(folder: Path) -> dict[str, bytes | None]:
    """Every file below a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


def write(folder: Path, name: str, content: str | bytes) -> Path:
    """Write a file of text or of bytes."""
    path = folder / name
    path.write_bytes(
        content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    )
    return path


def mechanism(**changes: Any) -> str:
    """A mechanism file in JSON, with some keys changed; None takes one out."""
    whole = {
        "format": "pmlopt-mechanism",
        "version": 3,
        "inputs": ["a", "b", "c"],
        "outputs": ["a", "b", "c"],
        "unnamed": [],
        "matrix": [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]],
        "metadata": {},
    }
    return json.dumps(
        {key: value for key, value in {**whole, **changes}.items() if value is not None}
    )


def npz(**arrays: Any) -> bytes:
    """An NPZ file of some arrays."""
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def problem(**changes: str) -> str:
    """A problem file of the id `small`, with some lines changed; an empty one is left out."""
    lines = {
        "id": 'id = "small"',
        "title": 'title = "Small"',
        "builder": 'builder = "design"',
        "source": '[source]\ncite = "grosse2024extremal"\nwhere = "Theorem 3"',
        "params": "[params]",
        "prior": "prior = { uniform = 3 }",
        "privacy": 'privacy = { name = "pml", epsilon = 0.5 }',
        "utility": 'utility = "hamming"',
        "outputs": "",
        "expected": '[expected]\nbasis = "derived"',
        "relation": 'relation = "=="',
        "value": f"value = {1 - math.exp(0.5) / 3!r}",
        "rtol": "",
    }
    assert set(changes) <= set(lines)
    return "\n".join(line for line in {**lines, **changes}.values() if line) + "\n"


ABOUT = np.frombuffer(mechanism(matrix=[]).encode(), dtype=np.uint8)

GOOD: Mapping[str, str | bytes] = {
    "p.csv": "letter,count\na,40\nb,30\nc,20\n",
    "numbers.csv": "letter,count\n1,40\n2,30\n3,20\n",
    "joint.csv": "disease,age,count\nill,a,10\nwell,a,30\nill,b,20\nwell,b,10\nwell,c,20\n",
    "distances.csv": ",a,b,c\na,0,1,2\nb,1,0,1\nc,2,1,0\n",
    "shares.csv": "letter,probability\na,0.5\nb,0.3\nc,0.2\n",
    "m.json": mechanism(),
    "m.csv": ",a,b,c\na,0.5,0.25,0.25\nb,0.25,0.5,0.25\nc,0.25,0.25,0.5\n",
    "m.npz": npz(matrix=np.eye(3), about=ABOUT),
    "parity.json": mechanism(inputs=[0, 1], outputs=[0, 1], matrix=[[0.75, 0.25], [0.25, 0.75]]),
    "data.csv": "id,level\n1,a\n2,b\n3,c\n",
    "drawn.csv": ",a,b,c\na,50,25,25\nb,25,50,25\nc,25,25,50\n",
    "gains.csv": ",x,y\na,1,0\nb,0,1\nc,0.5,0.5\n",
    "small.toml": problem(),
}
"""Files that commands take."""
