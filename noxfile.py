"""Tasks: `nox -s fast` for one, `nox -l` for the list. Each runs in an environment of its own."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import nox

ROOT = Path(__file__).parent

nox.options.default_venv_backend = "venv"
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = ["lint", "types", "fast"]
FLAGS = ["-o", "doctest_optionflags=NORMALIZE_WHITESPACE"]
"""As in pyproject.toml, which is not there without the checkout."""

IMPORTS = """
import pkgutil, pmlopt
from pmlopt.errors import MissingExtraError
for module in pkgutil.walk_packages(pmlopt.__path__, "pmlopt."):
    if not module.name.endswith("__main__"):
        try:
            __import__(module.name)
        except MissingExtraError as missing:
            print(f"{module.name}: {missing}")
"""
"""Imports every module, where only an extra may be missing."""

PYTHONS = ["3.11", "3.12", "3.13", "3.14"]


@nox.session
def fast(session: nox.Session) -> None:
    """The tests that a developer runs: less than half a minute."""
    session.install("-e", ".[tests]")
    session.run("pytest", "-q", "-m", "fast", "-n", "auto", *session.posargs)


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """All tests, on each version of Python that is there."""
    session.install("-e", ".[tests]")
    session.run("pytest", "-q", "-n", "auto", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Lint and format, without changing anything."""
    session.install("ruff>=0.9")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Types, strictly."""
    session.install("-e", ".[dev]")
    session.run("mypy")


@nox.session
def docs(session: nox.Session) -> None:
    """The site, where a broken link, a formula that is not set or a name not described is an error."""
    session.install("-e", ".[docs]")
    session.run("python", "docs/hooks/check.py", str(Path(session.create_tmp()) / "site"))


@nox.session
def wheel(session: nox.Session) -> None:
    """Build the wheel, install it, and use it in an empty folder, without the checkout."""
    session.install("build")
    empty = Path(session.create_tmp()).resolve()
    for left in (path for path in empty.rglob("*") if path.is_file()):
        left.unlink()
    session.run("python", "-m", "build", "--wheel", "--outdir", str(empty), silent=True)
    session.install("--force-reinstall", *map(str, empty.glob("*.whl")), "pytest>=8")
    session.chdir(empty)
    session.run("python", str(ROOT / ".ci" / "readme.py"))
    session.run("pmlopt", "solve", "adult-education-absolute", "-o", "solved.json")
    session.run("pmlopt", "bench")
    session.run("python", "-c", IMPORTS)
    # what needs an extra has no tests here; that nothing else fails to import was just seen
    session.run(
        "pytest", "-q", "--doctest-modules", "--doctest-ignore-import-errors", *FLAGS, "--pyargs", "pmlopt"
    )


@nox.session(python="3.11")
def minimum(session: nox.Session) -> None:
    """All tests with the lowest versions of the dependencies that are allowed."""
    session.install("-e", ".[tests]", *lowest())
    session.run("pytest", "-q", "-n", "auto", *session.posargs)


@nox.session(name="benchmarks-quick")
def benchmarks(session: nox.Session) -> None:
    """Every benchmark at its smallest size: that they run; their times mean nothing."""
    session.install("-e", ".[benchmarks]")
    results = str(Path(session.create_tmp()) / "results")
    session.run("python", "benchmarks/run.py", "--quick", "--out", results, *session.posargs)


@nox.session
def papers(session: nox.Session) -> None:
    """Every figure and table of the papers, computed; one of them: `nox -s papers -- records-figure-3`."""
    session.install("-e", ".[benchmarks]")
    points = str(Path(session.create_tmp()).resolve() / "points")
    session.run("python", "benchmarks/papers.py", "--out", points, *session.posargs)


@nox.session
def durations(session: nox.Session) -> None:
    """Measure every test, and write down which are slow."""
    session.install("-e", ".[tests]")
    report = Path(session.create_tmp()).resolve() / "durations.txt"
    with report.open("w") as out:
        session.run("pytest", "-q", "--durations=0", "-vv", stdout=out)
    session.run("python", "tests/list_slow.py", str(report))


@nox.session
def mutants(session: nox.Session) -> None:
    """Whether tests notice a sample of mutants where promises are made: `nox -s mutants -- 50 measures`."""
    session.install("-e", ".[tests]", "mutmut>=3.8")
    folder = str(Path(session.create_tmp()).resolve())
    session.run("python", ".ci/mutants.py", folder, *session.posargs)


def lowest() -> list[str]:
    """The dependencies, each at its lowest version: `numpy>=2.0` as `numpy==2.0`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return [re.sub(r">=([\d.]+)$", r"==\1", dependency) for dependency in project["dependencies"]]
