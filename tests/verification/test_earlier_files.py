"""Files that an earlier version wrote are read and proved as they were, whatever keys came since."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from pmlopt import load, verify_file
from pmlopt.core.records.fields import find_tagged_classes
from pmlopt.programs.certificate import Certificate
from pmlopt.verification.verify_saved import read_any_mechanism

ROOT = Path(__file__).parents[2]
FILES = sorted((Path(__file__).parent / "earlier_files").iterdir())
"""Results of `saved_cases` as revision 34f51637 saved them, `renyi-pml` as 68294678 did: for each kind of
certificate, and for some requirements with records in them."""

KINDS_WITHOUT_FILE = {"continuous", "compliance", "least-epsilon", "sub-convex-cost"}
"""A file of the first has 40 kB, and cannot prove the law of its numbers; the others came later."""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_of_an_earlier_version_is_read_and_proved(path: Path, tmp_path: Path) -> None:
    verdict = verify_file(path)
    assert verdict.holds is True, str(verdict)
    result, again = load(path), tmp_path / path.name
    assert result.certificate.verify()
    result.save(again)
    assert verify_file(again).holds is True
    assert load(again).value == result.value


@pytest.mark.parametrize(
    ("name", "place", "key"),
    [
        ("information", (), "laws"),
        ("information-over", (), "laws"),
        ("variation", (), "laws"),
        ("renyi-pml", ("privacy",), "over"),
        ("renyi-pml", ("privacy",), "about"),
    ],
)
def test_a_key_that_came_later_is_none_where_a_file_lacks_it(
    name: str, place: tuple[str, ...], key: str
) -> None:
    path = ROOT / "tests" / "verification" / "earlier_files" / f"{name}.json"
    data = json.loads(path.read_text("utf-8"))
    owner, stated = load(path).certificate, data["metadata"]["certificate"]
    for part in place:
        owner, stated = getattr(owner, part), stated[part]
    assert key not in stated
    assert getattr(owner, key) is None
    schema = json.loads((ROOT / "docs" / "mechanism.schema.json").read_text("utf-8"))
    assert jsonschema.Draft202012Validator(schema).is_valid(data)


def read_kind(path: Path) -> str:
    """Return the kind of the certificate in a file."""
    return str(read_any_mechanism(path)[1]["certificate"]["kind"])


def test_each_kind_of_certificate_has_a_file() -> None:
    own = {
        name
        for name, kind in find_tagged_classes(Certificate).items()
        if kind.__module__.startswith("pmlopt.")
    }
    assert own - {read_kind(path) for path in FILES} <= KINDS_WITHOUT_FILE
