"""What is said in several of the project's files is the same in each."""

from __future__ import annotations

import ast
import re
import tomllib

from documents import ROOT, module

from pmlopt.core.matrices.matrix_file import MECHANISM_FILE_VERSION

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
NOXFILE = ast.parse((ROOT / "noxfile.py").read_text("utf-8"))
CHECKS = (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")


def test_the_software_is_cited_by_its_version() -> None:
    cited = re.findall(
        r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text("utf-8"), re.MULTILINE
    )
    assert cited == [PROJECT["version"]]
    versions = (ROOT / "docs" / "versioning.md").read_text("utf-8")
    assert re.findall(r"version = \{(\S+)\}", versions) == [PROJECT["version"]]
    saved = (ROOT / "docs" / "certificate.md").read_text("utf-8")
    assert re.findall(r"format is JSON, version (\d+)", saved) == [str(MECHANISM_FILE_VERSION)]


def test_the_conda_recipe_has_the_version_and_the_needs_of_the_project() -> None:
    recipe = (ROOT / "packaging" / "recipe.yaml").read_text("utf-8")
    assert re.findall(r'^  version: "(\S+)"$', recipe, re.MULTILINE) == [PROJECT["version"]]
    run = re.search(r"^  run:\n((?:    - .+\n)+)", recipe, re.MULTILINE)
    assert run is not None
    needed = [line.removeprefix("    - ").replace(" ", "") for line in run[1].splitlines()]
    named = {"cvxpy": "cvxpy-base"}  # which has no solvers of its own beside it
    expected = [
        re.sub(r"^[\w-]+", lambda found: named.get(found[0], found[0]), need)
        for need in PROJECT["dependencies"]
    ]
    assert needed == ["python>=${{python_min}}", *expected]


def test_every_version_of_python_that_is_promised_is_checked() -> None:
    promised = [
        name.rpartition(" ")[2] for name in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", name)
    ]
    (checked,) = (
        ast.literal_eval(node.value)
        for node in NOXFILE.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "PYTHONS"
    )
    matrices = re.findall(r"python-version: (\[.*\])", CHECKS)
    assert len(matrices) == 2  # of all tests, and of the newest dependencies
    assert [ast.literal_eval(matrix) for matrix in matrices] == [promised] * 2
    assert promised == checked
    assert PROJECT["requires-python"] == f">={promised[0]}"


def test_every_task_that_is_named_is_there() -> None:
    tasks = {
        node.name
        for node in NOXFILE.body
        if isinstance(node, ast.FunctionDef) and node.decorator_list
    }
    tasks = {task.replace("benchmarks", "benchmarks-quick") for task in tasks}
    named = CHECKS + (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    for line in re.findall(r"nox -s ([\w. ${}-]+)", named):
        for task in line.replace("${{ matrix.python-version }}", "3.11").split():
            assert re.sub(r"-3\.\d+$", "", task) in tasks, task


def test_what_is_needed_has_a_lowest_version() -> None:
    groups = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    for need in {need for group in groups for need in group} - {"pmlopt[tests]"}:
        assert re.fullmatch(r"[\w-]+(\[\w+\])?>=[\d.]+", need), need


def test_every_page_is_in_the_navigation() -> None:
    listed = set(
        re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    )
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    written = {"commands.md", *module("evidence").evidence_pages()}  # when the site is built
    assert listed - written == pages
    assert written <= listed


POLICIES = ("SECURITY.md", "CODE_OF_CONDUCT.md", "docs/versioning.md")


def test_policies_are_linked_for_contributors_and_travel_with_the_source() -> None:
    contributing = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    build = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]
    packed = build["targets"]["sdist"]["include"]
    for name in POLICIES:
        assert f"]({name})" in contributing, name
        assert f"/{name}" in packed or f"/{name.partition('/')[0]}" in packed, name


def test_links_of_policies_between_files_lead_somewhere() -> None:
    for name in ("SECURITY.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md"):
        links = re.findall(r"\]\(([^)#]+)[^)]*\)", (ROOT / name).read_text("utf-8"))
        local = [link for link in links if "://" not in link]
        assert [link for link in local if not (ROOT / link).is_file()] == [], name


def test_policies_name_no_address_that_does_not_exist() -> None:
    for name in POLICIES:
        text = (ROOT / name).read_text("utf-8")
        assert re.findall(r"[\w.+-]+@[\w-]+\.\w+|mailto:", text) == [], name
        hosts = set(re.findall(r"https?://([\w.-]+)", text))
        assert hosts <= {"www.contributor-covenant.org", "semver.org"}, name
    assert "urls" not in PROJECT


def test_security_problems_are_those_of_claims_draws_and_values() -> None:
    text = (ROOT / "SECURITY.md").read_text("utf-8").lower()
    for problem in ("false level", "biased draw", "leak of true values", "how to report"):
        assert problem in text


def test_the_template_that_reports_name_is_there() -> None:
    template = (ROOT / ".github" / "ISSUE_TEMPLATE" / "wrong-claim.yml").read_text("utf-8")
    assert "name: A claim that is not true" in template
    for name in ("SECURITY.md", "CONTRIBUTING.md"):
        words = (ROOT / name).read_text("utf-8").split()
        assert '"A claim that is not true"' in " ".join(words)


def test_the_readiness_that_is_classified_is_that_of_the_version() -> None:
    (status,) = [
        name for name in PROJECT["classifiers"] if name.startswith("Development Status ::")
    ]
    assert ("Stable" in status) == (int(PROJECT["version"].partition(".")[0]) >= 1)
    assert ("Typing :: Typed" in PROJECT["classifiers"]) == (ROOT / "pmlopt" / "py.typed").is_file()
    assert not any(name.startswith("License ::") for name in PROJECT["classifiers"])
