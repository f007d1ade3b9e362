"""Tasks: `nox -s fast` for one, `nox -l` for the list. Each runs in an environment of its own."""

from __future__ import annotations

import re
import shutil
import subprocess
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


@nox.session(python=PYTHONS)
def newest(session: nox.Session) -> None:
    """The README's first command, saved files and the fast tests with the newest dependencies."""
    session.run("bash", ".ci/newest", str(session.virtualenv.bin) + "/python", external=True)


TOOLKIT = [
    "core", "data", "measures", "solvers", "model", "programs", "sweeps", "library", "verification",
    "testing",
]  # fmt: skip
"""The rooms of the lower layer; docs/architecture.md has the picture."""

APART = ["pyarrow", "narwhals", "filelock"]
"""Packages that files and frames of people need, and the toolkit does without."""


@nox.session
def toolkit(session: nox.Session) -> None:
    """The fast tests of the toolkit, in an environment without the packages that stand around it."""
    session.install("-e", ".")
    session.install("pytest", "pytest-xdist", "hypothesis", "jsonschema")
    session.run("pip", "uninstall", "-y", *APART)
    rooms = [f"tests/{room}" for room in TOOLKIT]
    absent = ["--without", ",".join(APART)]
    session.run("pytest", "-q", "-m", "fast", "-n", "auto", *absent, *rooms, *session.posargs)
    session.run("pytest", "-q", *absent, "tests/test_few_packages.py")


DESIGNED_WITH = ["numpy", "scipy", "highspy", "clarabel", "cvxpy", "click", "lazy-loader"]
"""All that a design, its certificate and its files need."""


@nox.session
def few(session: nox.Session) -> None:
    """Designs, certificates, files and commands with few packages; what needs more names the package."""
    session.install(*DESIGNED_WITH, "pytest", "hypothesis")
    session.install("--no-deps", ".")
    session.run("pytest", "-q", "tests/test_few_packages.py", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Lint, format and spelling, without changing anything."""
    session.install("codespell>=2.4", "ruff>=0.9")
    session.run("codespell")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    session.run("ruff", "format", "--check", "--line-length", "88", *map(str, pages))


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
        "pytest",
        "-q",
        "--doctest-modules",
        "--doctest-ignore-import-errors",
        *FLAGS,
        "--pyargs",
        "pmlopt",
    )


@nox.session(python="3.11")
def minimum(session: nox.Session) -> None:
    """All tests with the lowest versions that are allowed, also of what the extras need."""
    session.install("-e", ".[tests]", *lowest())
    session.run("pytest", "-q", "-n", "auto", *session.posargs)


@nox.session(name="benchmarks-quick")
def benchmarks(session: nox.Session) -> None:
    """Every benchmark at its smallest size: that they run; their times mean nothing."""
    session.install("-e", ".[benchmarks]")
    results = str(Path(session.create_tmp()) / "results")
    session.run("python", "benchmarks/run.py", "--quick", "--out", results, *session.posargs)


@nox.session
def browser(session: nox.Session) -> None:
    """The pages to explore, and some of the site, in headless Chromium; skipped where there is none."""
    session.install("-e", ".[browser,docs]")
    session.run("pytest", "-q", "tests/browser/check_pages.py", *session.posargs)


@nox.session
def papers(session: nox.Session) -> None:
    """Every figure and table of the papers, computed; one of them: `nox -s papers -- records-figure-3`."""
    session.install("-e", ".[benchmarks]")
    points = str(Path(session.create_tmp()).resolve() / "points")
    session.run("python", "benchmarks/papers.py", "--out", points, *session.posargs)


@nox.session(python=False)
def findings(session: nox.Session) -> None:
    """Whether other software still surprises as findings/ says; one of them: `nox -s findings -- NAME`."""
    session.run("bash", "findings/run", *session.posargs, external=True)


@nox.session
def durations(session: nox.Session) -> None:
    """Measure every test, and write down which are slow, and which nightly."""
    session.install("-e", ".[tests]")
    report = Path(session.create_tmp()).resolve() / "durations.txt"
    with report.open("w") as out:
        session.run("pytest", "-q", "--durations=0", "--durations-min=0", stdout=out)
    session.run("python", "tests/list_slow.py", str(report))


@nox.session
def mutants(session: nox.Session) -> None:
    """Whether tests notice a sample of mutants where promises are made: `nox -s mutants -- 50 measures`."""
    session.install("-e", ".[tests]", "mutmut>=3.8")
    folder = str(Path(session.create_tmp()).resolve())
    session.run("python", ".ci/mutants.py", folder, *session.posargs)


@nox.session
def planted(session: nox.Session) -> None:
    """Whether fast tests find errors that are planted in methods: `nox -s planted -- SEED COUNT`."""
    session.install("-e", ".[tests]")
    folder = str(Path(session.create_tmp()).resolve() / "planted")
    session.run("python", ".ci/planted.py", folder, *session.posargs)


@nox.session
def spark(session: nox.Session) -> None:
    """Releases inside Spark, where Java 17 or 21 is at hand."""
    if shutil.which("java") is None:
        session.skip("Spark needs Java 17 or 21")
    session.install("-e", ".[tests,spark]")
    session.run("java", "-version", external=True)
    session.run(
        "pytest", "-q", "-p", "no:cacheprovider", "tests/adapters/test_spark.py", *session.posargs
    )


SOLVERS = [
    "coptpy", "cplex", "cvxopt", "cylp", "daqp", "ecos", "gurobipy", "ortools", "piqp", "pyscipopt",
    "qoco", "xpress",
]  # fmt: skip
"""What brings cvxpy's other solvers of linear programs; those of firms have licences for small ones."""


@nox.session
def solvers(session: nox.Session) -> None:
    """The README's design by each solver of linear programs that cvxpy knows and pip can install."""
    session.install("-e", ".[tests]")
    for name in SOLVERS:  # one at a time: not all have a wheel for each Python
        session.run("python", "-m", "pip", "install", "-q", name, success_codes=[0, 1])
    tested = [
        "tests/solvers/test_installed_solvers.py",
        "tests/solvers/test_solution_files.py",
        "tests/solvers/test_mps.py",
    ]
    session.run("pytest", "-q", "-rs", *tested, *session.posargs)


@nox.session
def exchange(session: nox.Session) -> None:
    """Round trips through real R and Octave, where Debian's packages r-base and octave are installed."""
    session.install("-e", ".[tests]")
    tested = ["tests/core/matrices/test_other_programs.py", "tests/docs/test_r_snippets.py"]
    session.run("pytest", "-q", "-rs", *tested, *session.posargs)


@nox.session
def accounting(session: nox.Session) -> None:
    """Privacy loss distributions, beside dp-accounting, which needs an older attrs than the other tests."""
    session.install("-e", ".[accounting]", "pytest", "hypothesis", "jsonschema")
    tested = [
        "--doctest-modules",
        "pmlopt/adapters/accounting.py",
        "tests/adapters/test_accounting.py",
    ]
    session.run("pytest", "-q", *tested, *session.posargs)


@nox.session
def postgres(session: nox.Session) -> None:
    """SQL, and tables as data, in a server of PostgreSQL, where Debian's package postgresql is installed."""
    if not any(Path("/usr/lib/postgresql").glob("*/bin/initdb")):
        session.skip("there is no PostgreSQL here: apt-get install postgresql")
    session.install("-e", ".[tests]")
    session.run(
        "pytest",
        "-q",
        "tests/data/samplers/test_postgres.py",
        "tests/tables/test_databases.py",
        *session.posargs,
        env={"PMLOPT_NEEDS_POSTGRES": "1"},
    )


@nox.session
def package(session: nox.Session) -> None:
    """The source and the wheel in dist/, checked, with the list of what an installation holds (CycloneDX)."""
    session.install("build", "twine>=6", "cyclonedx-bom>=5")
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    session.run("python", "-m", "build", silent=True)
    built = sorted(map(str, (ROOT / "dist").iterdir()))
    session.run("twine", "check", "--strict", *built)
    clean = Path(session.create_tmp()).resolve() / "clean"
    session.run("python", "-m", "venv", "--clear", str(clean))
    python = str(clean / "bin" / "python")
    session.run(
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        *[name for name in built if name.endswith(".whl")],
        external=True,
    )
    session.run("cyclonedx-py", "environment", "--pyproject", "pyproject.toml", "--output-reproducible",
                "--output-file", "dist/pmlopt.cdx.json", python)  # fmt: skip


@nox.session
def wheelhouse(session: nox.Session) -> None:
    """All that an installation needs, in wheelhouse/; and an installation from it without an index."""
    house = ROOT / "wheelhouse"
    shutil.rmtree(house, ignore_errors=True)
    session.run(
        "python", "-m", "pip", "wheel", "--quiet", "--wheel-dir", str(house), ".[plots,pandas]"
    )
    offline = Path(session.create_tmp()).resolve() / "offline"
    session.run("python", "-m", "venv", "--clear", str(offline))
    pip, command = str(offline / "bin" / "pip"), str(offline / "bin" / "pmlopt")
    where = ["--isolated", "--no-index", "--find-links", str(house)]
    session.run(pip, "install", "--quiet", *where, "pmlopt[plots,pandas]", external=True)
    session.chdir(offline)
    session.run(command, "solve", "adult-education-absolute", "-o", "solved.json", external=True)
    session.run(command, "verify", "solved.json", external=True)


@nox.session
def container(session: nox.Session) -> None:
    """Build the image and use it, where a builder works: `nox -s container -- --build-arg BASE=IMAGE`."""
    builder = next((name for name in ("podman", "docker", "buildah") if _builds(name)), None)
    if builder is None:
        session.skip("no podman, docker or buildah works here")
    about = ["-t", "pmlopt", "-f", "packaging/Containerfile", *session.posargs, "."]
    use = [
        "sh",
        "-c",
        "cd /tmp && pmlopt solve adult-education-absolute -o m.json && pmlopt verify m.json",
    ]
    if builder == "buildah":
        session.run(builder, "bud", "--isolation", "chroot", *about, external=True)
        held = str(
            session.run(builder, "from", "localhost/pmlopt", external=True, silent=True)
        ).strip()
        session.run(builder, "run", "--isolation", "chroot", held, "--", *use, external=True)
        return
    session.run(builder, "build", *about, external=True)
    session.run(
        builder,
        "run",
        "--rm",
        "--network",
        "none",
        "--entrypoint",
        use[0],
        "pmlopt",
        *use[1:],
        external=True,
    )


def _builds(name: str) -> bool:
    """Whether a builder of images works: its program is there, and so is what it speaks to."""
    found = shutil.which(name)
    return (
        found is not None and subprocess.run([found, "info"], capture_output=True).returncode == 0
    )


def lowest() -> list[str]:
    """The dependencies and those of the tests, each at its lowest version: `numpy>=2.0` as `numpy==2.0`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["tests"]]
    return [re.sub(r">=([\d.]+)$", r"==\1", dependency) for dependency in needed]
