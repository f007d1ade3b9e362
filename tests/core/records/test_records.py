"""Records: what is written is read back as it was, and whatever else stands there is refused by its path."""

from __future__ import annotations

import copy
import json
import math
import typing
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import jsonschema
import numpy as np
import pytest
from fuzzing.tampering import places
from hypothesis import given, settings
from hypothesis import strategies as st
from saved_cases import REQUIREMENTS

from pmlopt import (
    LDP,
    LIP,
    PML,
    GainLeakage,
    L1Ball,
    MetricPrivacy,
    MinimumMass,
    Prior,
    Pufferfish,
    Secret,
    confidence_ball,
    confidence_box,
)
from pmlopt.core.numbers.arrays import BoolArray, DefaultLabels, FloatArray, IntArray, Label
from pmlopt.core.records.converters import to_plain
from pmlopt.core.records.fields import (
    COUNT,
    INFINITE,
    Context,
    ContextReference,
    Range,
    Record,
    Shape,
    find_tagged_classes,
    have_equal_content,
    resolve_alias,
)
from pmlopt.core.records.record import build_definitions, parse_json, read_record
from pmlopt.data.symmetry import CirclePrior, IIDPrior, InvariantPrior, ProductPrior
from pmlopt.data.symmetry.prior import PairSpace, SymmetricPrior
from pmlopt.errors import FileFormatError, InputError, InstanceError
from pmlopt.model.privacy import Requirement
from pmlopt.model.queries import Explicit, ModularSum, Quadratic, Query, Weight
from pmlopt.model.queries.kinds import ResidueTypes
from pmlopt.model.uncertainty import AllPriors, Box, ConvexHull, JointLaws, PriorSet
from pmlopt.model.uncertainty.center import Center
from pmlopt.verification.file_schema import build_file_schema


def read_json(base: type, text: str, where: str = "", context: Context | None = None) -> Any:
    return read_record(base, parse_json(text, where), where, context)


SCALARS = st.text(max_size=3) | st.integers(-5, 5) | st.floats(-2, 2)
LABELS = st.lists(
    st.recursive(SCALARS, lambda part: st.tuples(part, part), max_leaves=3),
    min_size=3,
    max_size=3,
    unique=True,
)
COUNTS = st.lists(st.integers(1, 10**20), min_size=3, max_size=3)
LEVELS = st.floats(0.01, 3.0)


@st.composite
def priors(draw: st.DrawFn) -> Prior:
    """Priors on three letters, of every making."""
    labels, counts = draw(st.none() | LABELS), draw(COUNTS)
    make: Any = draw(st.sampled_from([Prior.from_counts, Prior.from_weights, None]))
    if make is not None:
        return make(counts, labels)  # type: ignore[no-any-return]
    return Prior([0.5, 0.25, 0.25], labels, draw(st.none() | st.integers(1, 99)))


@st.composite
def sets(draw: st.DrawFn, prior: Prior) -> PriorSet:
    """Sets of priors on three letters, of which some are around a prior, or know its labels."""
    radius, delta, point = (
        draw(st.floats(0.1, 2)),
        draw(st.none() | st.floats(0.01, 0.5)),
        [0.2, 0.3, 0.5],
    )
    labels = draw(st.sampled_from([None, prior.labels, ("a", "b", "c")]))
    kinds: list[Callable[[], PriorSet]] = [
        lambda: L1Ball(prior, radius, delta),
        lambda: L1Ball(point, radius, delta),
        lambda: L1Ball(Center.of([0.5, 0.5, 0.0]), radius),
        lambda: confidence_ball({"a": 3, ("b", 1): 0, "c": 2}, 0.1),
        lambda: confidence_box([5, 3, 0], 0.1),
        lambda: Box([0.125, radius / 8, 0.0], [1.0, 1.0, 1.0], delta, labels),
        lambda: MinimumMass(3, radius / 8),
        lambda: AllPriors(3),
        lambda: ConvexHull([point, [1 / 3, 1 / 3, 1 / 3]]),
    ]
    return draw(st.sampled_from(kinds))()


SECRET = Secret.from_counts([[30, 1, 4], [10, 50, 9]], values=["ill", ("well", 1)])
LAWS = [[[0.25, 0.125, 0.125], [0.25, 0.125, 0.125]], [[0.5, 0.0, 0.125], [0.125, 0.125, 0.125]]]
TWO_LAWS = Secret(LAWS, name="the disease")


@st.composite
def requirements(draw: st.DrawFn, prior: Prior) -> Requirement:
    """Requirements on three letters, of every kind, of which some are over a set or about a secret."""
    epsilon, other = draw(LEVELS), draw(LEVELS)
    kinds: list[Callable[[], Requirement]] = [
        lambda: draw(st.sampled_from(list(REQUIREMENTS.values()))),
        lambda: PML([epsilon, other, 0.0]) & LDP(other) & LIP(epsilon, other),
        lambda: PML(epsilon, over=draw(sets(prior))),
        lambda: PML(epsilon, about=draw(st.sampled_from([SECRET, TWO_LAWS]))),
        lambda: PML(epsilon, about=SECRET, over=JointLaws.ball(SECRET, 0.1)),
        lambda: PML(epsilon, about=SECRET, over=JointLaws.confidence(SECRET, 0.2)),
        lambda: MetricPrivacy(epsilon, [[0, other, 4.0], [other, 0, 4.0], [4.0, 4.0, 0]]),
        lambda: Pufferfish(epsilon, SECRET, draw(st.sampled_from([None, [("ill", ("well", 1))]]))),
    ]
    return draw(st.sampled_from(kinds))()


@st.composite
def symmetric(draw: st.DrawFn) -> SymmetricPrior:
    """Symmetric priors."""
    mirrored = Prior([0.25, 0.5, 0.25], draw(st.none() | LABELS))
    kinds: list[Callable[[], SymmetricPrior]] = [
        lambda: IIDPrior(draw(priors()), 2),
        lambda: CirclePrior(draw(st.integers(1, 9)), draw(st.booleans())),
        lambda: InvariantPrior(mirrored, [[2, 1, 0]]),
        lambda: InvariantPrior(mirrored, [([2, 1, 0], [1, 0])], ["low", "high"]),
        lambda: ProductPrior(CirclePrior(3), IIDPrior(draw(priors()), 1)),
    ]
    return draw(st.sampled_from(kinds))()


@st.composite
def queries(draw: st.DrawFn) -> Query:
    """Queries of every kind."""
    labels: Any = draw(st.lists(st.text(max_size=2) | st.integers(-3, 3), min_size=4, max_size=4))
    sizes: Any = draw(st.sampled_from([2, [2, 3, 2]]))
    sums = ModularSum(3, draw(st.integers(1, 5)), sizes)
    table = np.empty((2, 2), dtype=object)
    table[:] = [labels[:2], labels[2:]]
    kinds: list[Callable[[], Query]] = [
        lambda: sums,
        lambda: ResidueTypes(sums),
        lambda: Quadratic(3),
        lambda: Weight(3),
        lambda: Weight(3, labels.__getitem__),
        lambda: Explicit(table),
    ]
    return draw(st.sampled_from(kinds))()


@st.composite
def records(draw: st.DrawFn) -> tuple[type, Any, Context | None]:
    """A record of the package with a base of its class, and a context that it may refer to."""
    prior = draw(priors())
    kinds: list[tuple[type, Callable[[], Any]]] = [
        (Prior, lambda: prior),
        (Prior, lambda: draw(symmetric())),
        (PriorSet, lambda: draw(sets(prior))),
        *[(Requirement, lambda: draw(requirements(prior)))] * 3,
        (Query, lambda: draw(queries())),
        (PairSpace, lambda: draw(symmetric()).make_pairs()),
        (Secret, lambda: draw(st.sampled_from([SECRET, TWO_LAWS]))),
    ]
    base, make = draw(st.sampled_from(kinds))
    return base, make(), draw(st.sampled_from([None, prior.context]))


@cache
def schema_of(name: str) -> Any:
    defs = build_definitions(Prior, PriorSet, Requirement, Query, PairSpace, Secret)
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": defs})


@settings(max_examples=80, deadline=None)
@given(case=records())
def test_what_is_written_meets_the_schema_and_is_read_back_as_it_was(
    case: tuple[type, Any, Context | None],
) -> None:
    base, record, context = case
    data = to_plain(record, context)
    text = json.dumps(data, allow_nan=False)
    again: Any = read_json(base, text, "file", context)
    assert again == record
    assert hash(again) == hash(record)
    assert json.dumps(to_plain(again, context)) == text
    validator = schema_of("AnyPrior" if base is Prior else base.__name__)
    assert not [error.message[:200] for error in validator.iter_errors(data)]


def test_the_schema_of_saved_results_is_that_of_the_records() -> None:
    text = (Path(__file__).parents[3] / "docs" / "mechanism.schema.json").read_text()
    assert json.loads(text) == json.loads(json.dumps(build_file_schema()))


def places_of(data: Any, path: str = "file") -> list[tuple[str, tuple[str | int, ...], Any]]:
    """All tables, lists and leaves of plain data, with their paths."""
    found = []
    for keys in places(data):
        part, below = data, path
        for key in keys:
            part, below = part[key], f"{below}[{key}]" if isinstance(key, int) else f"{below}.{key}"
        found.append((below, keys, part))
    return found


def with_at(data: Any, keys: tuple[str | int, ...], value: Any) -> Any:
    """A copy with another value at a place."""
    if not keys:
        return value
    made = copy.deepcopy(data)
    place = made
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    return made


def refused(base: type, data: Any, context: Context | None, path: str) -> None:
    """That data are refused, with an error that names a path."""
    with pytest.raises(FileFormatError) as caught:
        read_record(base, data, "file", context)
    assert path in str(caught.value)


@settings(max_examples=50, deadline=None)
@given(case=records(), choice=st.randoms(use_true_random=False))
def test_whatever_else_stands_in_a_record_is_refused_by_its_path(
    case: tuple[type, Any, Context | None], choice: Any
) -> None:
    base, record, context = case
    data = json.loads(json.dumps(to_plain(record, context)))
    path, keys, leaf = choice.choice(
        [one for one in places_of(data) if not isinstance(one[2], dict)]
    )
    refused(base, with_at(data, keys, {"strange": 1}), context, path)
    refused(base, with_at(data, keys, math.nan), context, path)
    if "distance" not in path:  # which may be infinite
        refused(base, with_at(data, keys, math.inf), context, path)
    nested: Any = leaf
    for _ in range(60):
        nested = [nested]
    refused(base, with_at(data, keys, nested), context, path.rpartition("[")[0] or path)
    if isinstance(leaf, float | bool) and not path.endswith(".delta"):  # which a set may lack
        refused(base, with_at(data, keys, None), context, path.rpartition(".")[0])
    path, keys, table = choice.choice([one for one in places_of(data) if isinstance(one[2], dict)])
    refused(
        base, with_at(data, keys, {**table, "zzz": 0}), context, f"{path}.zzz is not a known key"
    )
    later = ("over", "about") if table.get("name") == "renyi-pml" else ()
    key = choice.choice([name for name in table if name not in later])  # which old files lack
    less = {name: value for name, value in table.items() if name != key}
    refused(base, with_at(data, keys, less), context, f"{path} lacks the key {key!r}")
    twice = json.dumps(with_at(data, keys, {**table, "@twice": 0})).replace(
        '"@twice"', json.dumps(key)
    )
    with pytest.raises(FileFormatError, match="twice") as caught:
        read_json(base, twice, "file", context)
    assert f"{path} has the key {key!r} twice" in str(caught.value)


def test_a_size_that_the_file_does_not_hold_is_refused_before_any_work() -> None:
    huge: list[tuple[type, Any]] = [
        (PriorSet, {"kind": "minimum-mass", "size": 3 * 10**8, "mass": 0.0}),
        (PriorSet, {"kind": "all-priors", "size": 10**30}),
        (Prior, {"kind": "circle", "size": 10**9, "reflections": True}),
        (Prior, {**to_plain(IIDPrior([0.5, 0.5], 2)), "records": 10**9}),
        (Prior, {**to_plain(Prior([0.5, 0.5])), "labels": 10**9}),
    ]
    for base, data in huge:
        with pytest.raises(FileFormatError, match="may speak of 10,000 at most"):
            read_record(base, data, "file")
        with pytest.raises(FileFormatError, match="may speak of"):
            read_json(base, json.dumps(data), "file")


class Colour(StrEnum):
    """Two colours."""

    RED = "red"
    BLUE = "blue"


class Shade(Record, ABC):
    """A base of records."""

    kind: ClassVar[str]

    @abstractmethod
    def dark(self) -> bool:
        """Whether it is dark."""


@dataclass(frozen=True, eq=False)
class Plain(Shade):
    """With a field of every type."""

    kind: ClassVar[str] = "plain"
    table: Annotated[FloatArray, Shape("N", "M"), Range(0, 1)]
    row: Annotated[IntArray, Shape("N")]
    flags: Annotated[BoolArray, Shape("M", 2)]
    free: FloatArray
    names: Annotated[tuple[Label, ...], Shape("N"), ContextReference("names")]
    share: Fraction
    pair: tuple[int, str]
    colour: Colour
    side: Literal["left", "right"]
    far: Annotated[float, INFINITE]
    size: Annotated[int, Range(1), COUNT]
    by_name: Mapping[str, float]
    anything: Any = None
    inside: tuple[Shade, ...] = ()

    def dark(self) -> bool:
        return True


GOOD: dict[str, Any] = {
    "kind": "plain",
    "table": [[0.0, 0.5], [1, 0.25], [0, 0]],
    "row": [1, 2, -3],
    "flags": [[True, False], [False, False]],
    "free": [[[1.5]]],
    "names": ["a", ["b", 1], 2],
    "share": "3/8",
    "pair": [1, "x"],
    "colour": "red",
    "side": "left",
    "far": "-inf",
    "size": 10_000,
    "by_name": {"x": 1.0},
    "anything": {"y": [None, "z"]},
    "inside": [],
}


def test_every_type_of_field_comes_back() -> None:
    inner = read_record(Shade, GOOD)
    assert isinstance(inner, Plain)
    assert (inner.far, inner.share, inner.names[1]) == (-math.inf, Fraction(3, 8), ("b", 1))
    assert not inner.table.flags.writeable
    outer = {**GOOD, "inside": [GOOD, GOOD]}
    found = read_record(Plain, outer)
    assert to_plain(found) == outer
    assert found == read_record(Plain, outer) != inner
    assert found.inside[0] == inner
    context = Context(given={"names": inner.names})
    assert to_plain(inner, context)["names"] == "names"
    assert read_record(Plain, {**GOOD, "names": "names"}, "", context) == inner
    assert read_record(Plain, {**GOOD, "names": 3}).names == DefaultLabels(3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"table": [[0.0], [1]]}, r"file\.row has the shape \(3,\): 3 must be 2 \(N is 2 here\)"),
        ({"table": [[0.0, 1], [1]]}, r"file\.table\[1\] has 1 entries, and the first 2"),
        ({"table": [[0.0, 1], [1, 1.5], [0, 0]]}, r"file\.table\[1\]\[1\] is 1\.5: it must be from 0 to 1"),
        ({"table": [[0.0, True], [1, 1], [0, 0]]}, r"file\.table\[0\]\[1\] is True"),
        ({"table": [0.5]}, r"file\.table\[0\] is 0\.5: it must be a list"),
        ({"row": [1, 2.0, 3]}, r"file\.row\[1\] is 2\.0: it must be a whole number"),
        ({"row": [1, 2**63, 3]}, r"file\.row\[1\] is 9223372036854775808"),
        ({"free": [[0, 0], [[[0]], 0]]}, r"file\.free\[1\]\[0\] is \[\[0\]\]: it must be a number"),
        ({"free": [10**400]}, r"file\.free\[0\] is 1000"),
        ({"flags": [[True, False]]}, r"file\.flags has the shape \(1, 2\)"),
        ({"flags": [[True], [False]]}, r"file\.flags .* 1 must be 2"),
        ({"names": ["a", "b"]}, r"file\.names has the shape \(2,\)"),
        ({"names": "other"}, r"file\.names is 'other'"),
        ({"names": "names"}, r"no names is given here"),
        ({"share": "1e999999999"}, r"file\.share is '1e999999999'"),
        ({"share": "1" * 5000}, r"file\.share"),
        ({"share": "1/0"}, r"divided by 0"),
        ({"pair": [1, "x", 2]}, r"file\.pair has 3 entries: it must have 2"),
        ({"colour": "green"}, r"file\.colour is 'green': it must be one of 'red', 'blue'"),
        ({"side": "up"}, r"file\.side"),
        ({"far": "nan"}, r"file\.far"),
        ({"size": 10_001}, r"file\.size"),
        ({"size": True}, r"file\.size"),
        ({"by_name": {"x": "y"}}, r"file\.by_name\.x"),
        ({"anything": {"y": math.nan}}, r"file\.anything\.y"),
        ({"inside": [{**GOOD, "kind": "dark"}]}, r"file\.inside\[0\]\.kind is 'dark': known are plain"),
        ({"inside": {"kind": "plain"}}, r"file\.inside"),
        ({"tabel": 1}, r"file\.tabel is not a known key: did you mean 'table'\?"),
    ],
)  # fmt: skip
def test_an_error_says_what_is_wrong_and_where(change: dict[str, Any], message: str) -> None:
    with pytest.raises(FileFormatError, match=message):
        read_record(Plain, {**GOOD, **change}, "file")


def test_sizes_of_the_context_hold_in_every_record() -> None:
    with pytest.raises(FileFormatError, match=r"table has the shape .* \(N is 4 here\)"):
        read_record(Plain, GOOD, "file", Context(sizes={"N": 4}))
    assert read_record(Plain, GOOD, "file", Context(sizes={"N": 3, "M": 2})) == read_record(
        Plain, GOOD
    )


def test_problem_files_may_leave_out_what_has_a_default() -> None:
    context = Context(complete=False, error=InstanceError)
    data = to_plain(LIP(0.5, 1.0) & PML(0.25), context)
    assert data["parts"][1] == {"name": "pml", "epsilon": 0.25}
    again = read_record(Requirement, data, "privacy", context)
    assert again == LIP(0.5, 1.0) & PML(0.25)
    with pytest.raises(InstanceError, match=r"privacy\.parts\[1\] lacks the key 'epsilon'"):
        read_record(
            Requirement, {**data, "parts": [data["parts"][0], {"name": "pml"}]}, "privacy", context
        )
    with pytest.raises(FileFormatError, match="lacks the key 'over'"):
        read_record(Requirement, data["parts"][1], "privacy")


@pytest.mark.parametrize(
    "text", ['{"a": 1', "[" * 5000, '{"a": NaN}', '{"a": -Infinity}', '{"a": ' + "1" * 5000 + "}"]
)
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(FileFormatError, match="file: is not a whole JSON file"):
        parse_json(text, "file")


def test_what_the_constructor_refuses_has_its_path() -> None:
    data = to_plain(PML(0.5) & LIP(0.5, 0.5))
    data["parts"][1]["upper"] = 800.0
    with pytest.raises(
        FileFormatError, match=r"privacy\.parts\[1\]: the upper bound 800\.0 is past 700"
    ):
        read_record(Requirement, data, "privacy")


def test_a_class_without_a_name_of_its_own_or_with_that_of_another_cannot_be_saved() -> None:
    class Nameless(LIP):
        """As LIP is, with other levels perhaps."""

    with pytest.raises(
        FileFormatError, match="Nameless cannot be saved: give it a `name` that no other"
    ):
        to_plain(Nameless(0.5, 0.5))

    class Family(Record):
        """A base."""

    members = [type("First", (Family,), {"kind": "one"})]
    assert find_tagged_classes(Family) == {"one": members[0]}
    members.append(type("Second", (Family,), {"kind": "one"}))
    with pytest.raises(FileFormatError, match="First and Second have the same kind, 'one'"):
        find_tagged_classes(Family)


@pytest.mark.parametrize(
    "value", [object(), {1, 2}, lambda x: x, math.nan, Prior([0.5, 0.5], [None, "b"])]
)
def test_what_no_file_can_hold_is_not_written(value: Any) -> None:
    with pytest.raises(InputError):
        to_plain({"x": value})


def test_equal_is_what_has_equal_fields() -> None:
    assert have_equal_content({"a": [np.ones(2), 1]}, {"a": [np.ones(2), 1.0]})
    assert not have_equal_content(np.ones(2), np.ones(3))
    assert not have_equal_content(True, np.bool_(True))
    assert not have_equal_content((True, "a"), (1, "a"))
    assert Prior([0.5, 0.5]) == Prior([0.5, 0.5]) != Prior([0.5, 0.5], samples=2)
    assert Prior([0.5, 0.5]) != Prior([0.5, 0.5], [0, 1])
    assert L1Ball([0.5, 0.5], 0.1) != L1Ball([0.5, 0.5], 0.2)
    assert GainLeakage(0.5, np.eye(2)) == GainLeakage(0.5, np.eye(2)) != GainLeakage(0.5, np.eye(3))


def test_aliases_of_types_are_read_as_the_types_that_they_stand_for() -> None:
    # numpy 2.5 makes NDArray such an alias; on 3.11 typing_extensions has what 3.12 has in typing
    home: Any = (
        typing if hasattr(typing, "TypeAliasType") else pytest.importorskip("typing_extensions")
    )
    alias = home.TypeAliasType
    kind: Any = TypeVar("kind")  # type: ignore[misc]
    other: Any = TypeVar("other")  # type: ignore[misc]
    swapped = alias("swapped", dict[other, kind], type_params=(kind, other))
    numbers = alias("numbers", np.ndarray[Any, np.dtype[kind]], type_params=(kind,))
    own = alias("own", Annotated[numbers[np.float64], Shape("letters")])
    real = alias("real", float)
    maybe = alias("maybe", real | None)
    label: Any = alias("label", Hashable)
    itself = alias("itself", kind, type_params=(kind,))
    assert resolve_alias(swapped[int, str]) == dict[str, int]
    assert resolve_alias(itself[real]) is float

    def check(values: Any, limit: Any, table: Any, labels: Any) -> tuple[Any, ...]:
        return values, limit, table, labels

    check.__annotations__ = {
        "values": Annotated[own, Range(0)],
        "limit": maybe,
        "table": swapped[itself[real], str],
        "labels": Annotated[tuple[label, ...], Shape("letters")],
    }
    context = Context(complete=False, forms={Aliased: {"": check}})
    given = {"values": [0.5, 1.0], "limit": None, "table": {"a": 2}, "labels": ["x", 3]}
    made: Any = read_record(Aliased, given, "", context)
    values, *rest = made
    assert values.tolist() == [0.5, 1.0]
    assert rest == [None, {"a": 2.0}, ("x", 3)]
    for wrong in (
        {"values": [-1.0, 1.0]},
        {"limit": "x"},
        {"table": {"a": "b"}},
        {"labels": ["x"]},
    ):
        with pytest.raises(FileFormatError, match=next(iter(wrong))):
            read_record(Aliased, given | wrong, "", context)


class Aliased(Record):
    """A class whose objects a function makes."""
