"""Lazy imports of slow or optional packages, and of parts of the standard library that few commands use.

`import pmlopt` needs none of them, and a small design no package; a module that does names them at its top
like any other.

Examples:
    >>> from pmlopt.core.lazy_imports import special
    >>> float(special.xlogy(0.0, 0.0))
    0.0
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pmlopt.errors import MissingExtraError

if TYPE_CHECKING:
    import difflib
    import graphlib
    import hashlib
    import html
    import pkgutil
    import shutil
    import tempfile
    import traceback
    import unicodedata
    import zipfile
    from concurrent import futures

    import cvxpy as cp
    import pyarrow
    from pyarrow import compute, ipc, parquet
    from pyarrow import csv as arrow_csv
    from scipy import linalg, optimize, sparse, special
else:

    class LazyModule:
        """A module proxy that imports on first attribute access."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):  # a caller that only inspects its type
                raise AttributeError(name)
            found = getattr(import_module(self._name), name)
            # found again without this function, which small arrays would notice
            self.__dict__[name] = found
            return found

    cp, linalg, optimize, sparse, special = map(
        LazyModule, ("cvxpy", "scipy.linalg", "scipy.optimize", "scipy.sparse", "scipy.special")
    )
    pyarrow, arrow_csv, compute, ipc, parquet = map(
        LazyModule, ("pyarrow", "pyarrow.csv", "pyarrow.compute", "pyarrow.ipc", "pyarrow.parquet")
    )
    # of the standard library what many commands never use: together a tenth of the start of one
    difflib, futures, graphlib, hashlib, html = map(
        LazyModule, ("difflib", "concurrent.futures", "graphlib", "hashlib", "html")
    )
    pkgutil, shutil, tempfile, traceback, unicodedata, zipfile = map(
        LazyModule, ("pkgutil", "shutil", "tempfile", "traceback", "unicodedata", "zipfile")
    )


def import_optional(module: str, purpose: str) -> Any:
    """Import an optional package, or raise an error that names its extra.

    Args:
        module: its full name, such as "pyarrow.parquet".
        purpose: what needs it, as the subject of a sentence in the plural.

    Raises:
        MissingExtraError: the package is not installed; the message names it.

    Examples:
        >>> import_optional("json", "files of JSON").dumps([1])
        '[1]'
    """
    check_installed(purpose, module.partition(".")[0])
    return import_module(module)


@contextmanager
def require_extra(need: str, extra: str) -> Iterator[None]:
    """Name the extra to install where an import in the block fails.

    Args:
        need: what needs which package, as a sentence.
        extra: of pmlopt.

    Raises:
        MissingExtraError: in place of the ImportError.
    """
    try:
        yield
    except ImportError:
        raise MissingExtraError(
            f"{need}: install the extra {extra} of pmlopt, in its checkout by pip install '.[{extra}]'"
        ) from None


def check_installed(purpose: str, *packages: str) -> None:
    """Raise a MissingExtraError for the first missing package.

    Args:
        purpose: what needs them, as the subject of a sentence in the plural.
        packages: their names, which are those of their modules.
    """
    for package in packages:
        if not is_installed(package):
            raise MissingExtraError(
                f"{purpose} need {package}, which is not installed: pip install {package}"
            )


def is_installed(module: str) -> bool:
    """Return whether there is a module or a package, which is not imported."""
    from importlib.util import find_spec

    return find_spec(module) is not None


__all__ = [
    "arrow_csv", "check_installed", "compute", "cp", "difflib", "futures", "graphlib", "hashlib", "html",
    "import_optional", "ipc", "is_installed", "linalg", "optimize", "parquet", "pkgutil", "pyarrow",
    "require_extra", "shutil", "sparse", "special", "tempfile", "traceback", "unicodedata", "zipfile",
]  # fmt: skip
