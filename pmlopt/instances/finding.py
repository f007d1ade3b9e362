"""Problem files found and loaded: by path, by id, or all of the library."""

from __future__ import annotations

import os
import tomllib
from difflib import get_close_matches
from pathlib import Path

from pmlopt.errors import InputError, InstanceError
from pmlopt.files import is_standard, read_bytes
from pmlopt.instances.instance import Instance
from pmlopt.instances.reading import read_instance
from pmlopt.instances.toml_table import Table


def library() -> Path:
    """The folder of the problem library: inside the installed package, or in the checkout."""
    package = Path(__file__).parent.parent
    installed = package / "problems"
    return installed if installed.is_dir() else package.parent / "problems"


def load_all() -> list[Instance]:
    """Every instance of the library, in the order of their ids."""
    return sorted((load(path) for path in library().glob("*/*.toml")), key=lambda instance: instance.id)


def find(name: str | os.PathLike[str]) -> Instance:
    """An instance by the path of its file (`-` is standard input), or by its id in the library.

    Raises:
        InstanceError: there is neither, or the file breaks the schema.
    """
    path = Path(name)
    if path.suffix == ".toml" or is_standard(path):
        return load(path)
    files = {file.stem: file for file in library().glob("*/*.toml")}
    if str(name) in files:
        return load(files[str(name)])
    near = get_close_matches(str(name), list(files), n=1)
    hint = f"did you mean {near[0]!r}?" if near else "`pmlopt problems` lists them"
    raise InstanceError(f"{name}: there is no problem of that name, nor a .toml file; {hint}")


def load(path: str | os.PathLike[str]) -> Instance:
    """Read and check a problem file.

    Raises:
        FileFormatError: the file cannot be read.
        InstanceError: the message names the file, the key and the remedy.
    """
    file = Path(path)
    content = read_bytes(file)
    try:
        data = tomllib.loads(content.decode())
    except (ValueError, RecursionError) as cause:  # not TOML, not text, a number too long, nested too deep
        raise InstanceError(f"{file}: is not a whole TOML file: {cause}") from None
    try:
        return read_instance(file, Table(file, "", data))
    except InstanceError:
        raise
    except InputError as cause:
        raise InstanceError(f"{file}: {cause}") from None
