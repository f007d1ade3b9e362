"""Problem files that are refused, each with the file, the key and a remedy."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import write
from library.problem_files import (
    DESIGN,
    ENVELOPE,
    ESTIMATION,
    LEAST,
    PRIVACY,
    RECORD,
    TRADEOFF,
    WORST,
)

from pmlopt.errors import InputError, PmloptError
from pmlopt.library import load

DEEP = 2_000
PRIOR = 'prior = { probabilities = [0.5, 0.5], labels = ["a", "b"] }'
QUERY = 'query = { kind = "modular-sum", records = 3, modulus = 2 }'
LEVEL = '{ log = "5/4" }'
Rows = list[tuple[str, str, str]]
HOSTILE: Rows = [
    (DESIGN, "", "is not a whole TOML|lacks the key"),
    (DESIGN, "this is no table", "is not a whole TOML"),
    (DESIGN, f"a = {'[' * DEEP}{']' * DEEP}", "is not a whole TOML"),
    (DESIGN, f"a = {'{b=' * DEEP}1{'}' * DEEP}", "is not a whole TOML"),
    ("value = 0.375", f"value = {'1' * 5000}", "is not a whole TOML"),
    ("value = 0.375", f"value = 1{'0' * 400}", r"expected\.value is too large"),
    *(("value = 0.375", f"value = {value}", r"expected\.value is") for value in ("inf", "-inf", "nan")),
    *(("value = 0.375", f"value = 0.375\nrtol = {rtol}", r"expected\.rtol is")
      for rtol in ("1e9", "inf", "nan", "0.02", "-1e-9")),
    ("value = 0.375", "value = 1\nmechanism = [[0.5, 0.6]]", "expected: .* sums to 1.1"),
    ("value = 0.375", "", "expected lacks the key 'value'"),
    *((line, "", "lacks the key") for line in ('title = "A small problem"', 'builder = "design"')),
    ('"small"', "1", "id is 1"),
    *((PRIOR, f"prior = {{ {keys} }}", r"params\.prior") for keys in (
        "", "uniform = 3, counts = [1, 2, 3]", "uniform = 0", "uniform = -1", "uniform = 2.5",
        "uniform = true", "uniform = 30000000", f"uniform = {10**30}", "probabilities = [0.5, 0.6]",
        "probabilities = [nan, 0.5]", "counts = [0, 1]", "counts = [inf, 1]",
        'uniform = 3, labels = ["a", "a", "b"]', "uniform = 3, labels = [nan, nan, 1]",
        'uniform = 3, labels = ["a"]')),
    (PRIOR, "", r"params\.prior is missing"),
    (PRIVACY, "", "is not a whole TOML"),
    ('"pml"', '["pml", "ldp"]', r"params\.privacy\.name is"),
    *((LEVEL, level, r"params\.privacy") for level in (
        "nan", "inf", '{ log = "1e400" }', '{ log = "1e999999999" }', '{ log = "1e-999999999" }',
        f'{{ log = "{"9" * 4000}" }}', '{ log = "-1" }', '{ log = "1/0" }', "{ log = nan }", "{ log = inf }",
        '{ log = "1e1e1" }', "1" * 400, '0.5, over = { kind = "l1-ball", radius = nan }',
        '0.5, over = { kind = "confidence-ball", delta = 2 }')),
    *(('"hamming"', f'"hamming"\noutputs = {many}', r"params\.outputs is")
      for many in ("0", "100000000000", "true")),
    ('"hamming"', '{ kind = "expected-loss", matrix = [[nan, 1], [1, 0]] }', r"matrix\[0\]\[0\] is nan"),
]  # fmt: skip
"""Lines of `DESIGN`, what stands in their place, and what is said of it."""

BAD: dict[str, Rows] = {
    DESIGN: [
        *HOSTILE,
        *((PRIVACY, f"{{ {keys} }}", said) for keys, said in (
            ('name = "pml"', r"params\.privacy lacks the key 'epsilon'"),
            ('name = "pml", epsilon = 1, radius = 0.1', r"privacy\.radius is not a known key"),
            ('name = "strict", epsilon = 1', r"params\.privacy\.name is 'strict': known are"),
            ('name = "lip", lower = 800.0, upper = 1', "the lower bound 800"),
            ('name = "pml", epsilon = [0.5, -1.0]', r"budget of letter 1"),
            ('name = "metric", epsilon = 1.0', r"exactly one of distance, edges"),
            ('name = "metric", epsilon = 1.0, distance = "l2"', r"'l2' is not known: .* hamming"),
            ('name = "metric", epsilon = 1.0, edges = [["a", "b"]]', r"edges\[0\] has 2 entries"),
            ('name = "metric", epsilon = 1.0, edges = [[[], {}, 1]]', r"edges\[0\]\[1\] is \{\}"),
            ('name = "pufferfish", epsilon = 1.0', r"params\.privacy lacks the key 'secret'"),
            ('name = "pml", epsilon = 1.0, about = "secret"', r"no secret is given"),
            ('name = "pml", epsilon = 1.0, about = { counts = [[1, 0], [1, 0]] }', r"never occurs"),
            ('name = "pml", epsilon = 1.0, over = { kind = "l1-ball", radius = 2.5 }',
             r"params\.privacy\.over\.radius is 2\.5: it must be from 0 to 2"),
            ('name = "pml", epsilon = 1.0, over = { kind = "confidence-ball", delta = 0.1 }',
             r"no sample size"),
            ('name = "pml", epsilon = 1.0, over = { kind = "box", lower = [0.1, 0.1] }',
             r"privacy\.over lacks the key 'upper'"),
            ('name = "all-of", parts = [{ name = "pml", epsilon = 1.0, colour = 1 }]',
             r"privacy\.parts\[0\]\.colour is not a known"),
            ('name = "pufferfish", epsilon = 1, secret = { counts = [[1, 1], [1, 1]] }, pairs = [[0]]',
             r"pairs\[0\] has 1 entries: it must have 2"),
        )),
        ("title", "titel", r"titel is not a known key: did you mean 'title'"),
        ('relation = "=="', 'relation = "=="\nrelatoin = 1', r"expected\.relatoin .* mean 'relation'"),
        ("privacy = {", "privasy = {", r"params\.privasy is not a known key: did you mean 'privacy'"),
        ('"pml"', '"pmml"', r"params\.privacy\.name is 'pmml': known are .*ldp"),
        ('"hamming"', '"haming"', r"the utility 'haming' is not known: did you mean 'hamming'"),
        ('"hamming"', "3", r"params\.utility is 3: it must be a table or text"),
        ('"derived"', '"guess"', r"expected\.basis is 'guess'"),
        ("value = 0.375", 'value = "0.375"', r"expected\.value is '0\.375': it must be a number"),
        ("value = 0.375", "value = 0.375\nrtol = 0.1", r"expected\.rtol is 0\.1: it must be from 0 to 0\.01"),
        ("value = 0.375", 'value = 1\nclosed_form = "magic"', r"expected\.closed_form is 'magic'"),
        ('"5/4"', '"five"', r"params\.privacy\.epsilon is .*five.* a positive rational"),
        ("log = ", "ln = ", r"params\.privacy\.epsilon is .*'ln'"),
        ('{ log = "5/4" }', "-1.0", r"epsilon must be at least 0 nats, not -1\.0"),
        ("[0.5, 0.5]", "[0.5, 0.6]", r"sum to 1\.1"),
        ("{ probabilities", "{ uniform = 2, probabilities", r"params\.prior: give exactly one of uniform"),
        ('"design"', '"magic"', r"builder is 'magic': write one of design"),
        ('id = "small"', 'id = "large"', r"id is 'large' and the file's name 'small'"),
        ("[source]", "[sauce]", r"sauce is not a known key: did you mean 'source'"),
        ("where =", "wher =", r"source\.wher is not a known key"),
    ],
    WORST: [
        ("threshold = 2", "", r"params\.threshold is missing"),
        ("threshold = 2", "threshold = 2.5", r"params\.threshold is 2\.5: it must be a whole number"),
        ("threshold = 2", "threshold = 2\nthreshhold = 2", r"params\.threshhold .*mean 'threshold'"),
        ("order = ", "ordre = ", r"params\.ordre is not a known key: did you mean 'order'"),
        ("[[3, 2, 1], [1, 3, 2], [2, 1, 3]]", "3", r"params\.order is 3: it must be a list"),
        ("[[3, 2, 1], [1, 3, 2], [2, 1, 3]]", "[3, 2, 1]", r"params\.order\[0\] is 3: it must be a list"),
        ("[1, 3, 2]", "[1, 3]", r"params\.order\[1\] has 2 entries"),
        ("[1, 3, 2]", '[1, "a", 2]', r"params\.order\[1\]\[1\] is 'a'"),
        ("[params]", '[params]\nutility = "hamming"', r"params\.utility is not a known"),
        ("value = 0", 'closed_form = "binary"\nvalue = 0', r"'binary': write one of utility_safe_mechanism"),
    ],
    LEAST: [
        ('"match"', '"mach"', r"the utility 'mach' is not known: did you mean 'match'"),
        ("expected = 0.5", 'expected = "0.5"', r"params\.expected is '0\.5': it must be a number"),
        ("value = 0", 'closed_form = "binary"\nvalue = 0', r"none, for none is known here"),
        ("expected = 0.5", "privacy = { pml = 1.0 }\nworst = 1", r"params\.privacy lacks the key 'name'"),
    ],
    RECORD: [
        ("modular-sum", "modularsum", r"params\.query\.kind is 'modularsum': known are .*modular-sum"),
        ("records = 3, ", "", r"params\.query lacks the key 'records'"),
        ("modulus = 2 }", "modulus = 2, moduls = 2 }", r"mean 'modulus'"),
        ("modulus = 2 }", "modulus = 0 }", r"modulus must be a whole number of at least 1"),
        ("error = 0.25", "error = 1.5", r"error probability is 1\.5"),
        ('"symmetric-channel"', '"symmetrical"', r"params\.mechanism\.kind is 'symmetrical': known are"),
        ('"symmetric-channel", error = 0.25', '"laplace", epsilon = -1', r"epsilon is -1"),
        ('kind = "symmetric-channel", error = 0.25', "matrix = [[1.0, 0.5]]", r"sums to 1\.5"),
        ("entropy = { log = 4 }", "", r"params\.entropy is missing"),
        ("entropy = { log = 4 }", 'entropy = "1"', r"params\.entropy is '1'"),
        ("parity_leakage", "binary", r"'binary': write one of parity_leakage"),
        *((QUERY, f"query = {{ {keys} }}", r"params\.query|.") for keys in (
            f'kind = "modular-sum", records = 2, modulus = {10**30}',
            'kind = "modular-sum", records = 2, modulus = 1e30',
            'kind = "modular-sum", records = 2, modulus = 2, letters = 100000000',
            'kind = "modular-sum", records = 2, modulus = 90000, letters = 4000',
            'kind = "quadratic", records = 1000000000000', 'kind = "quadratic", records = 0',
            'kind = "explicit", places = [[0, 1], [1]], labels = [0, 1]')),
    ],
    TRADEOFF: [
        ("distortion = 0.25", "", r"params\.distortion is missing"),
        ("distortion = 0.25", "leakage = 0.25", r"params\.leakage is not a known key"),
        ("distortion = 0.25", "distortion = 0.25\nloss = [1, 0]",
         r"params\.loss\[0\] is 1: it must be a list"),
    ],
    ENVELOPE: [
        ("delta = 0.25", "", "delta"),
        ("delta = 0.25", "delta = 0.25\nepsilon = 1.0", "epsilon is not a known key"),
        ("matrix = [[0.9, 0.1], [0.2, 0.8]]", "laplace = 1.0",
         "laplace is not a known key: the keys here are matrix"),
        ('basis = "derived"', 'basis = "derived"\nclosed_form = "binary"', "randomized_response_envelope"),
        ('basis = "derived"', 'basis = "derived"\nclosed_form = "randomized_response_envelope"',
         "is for randomized response"),
    ],
    ESTIMATION: [
        ('"prefix"', '"all"', "use identity"),
        ('"prefix"', "[[1, 2]]", "2 columns for 3 letters"),
        ('"prefix"', '"prefix", criterion = "D"', "does not depend on a workload"),
        ('"prefix"', '"prefix", criterion = "E"', "criterion"),
        ('"prefix"', "3", "workload"),
    ],
}  # fmt: skip
CASES = [(text, *row) for text, rows in BAD.items() for row in rows]


def use(path: Path) -> None:
    """Do with a problem file what a command does."""
    instance = load(path)
    instance.program()
    instance.closed_value()


@pytest.mark.parametrize(("text", "old", "new", "message"), CASES, ids=range(len(CASES)))
def test_a_bad_file_is_refused_with_file_key_and_remedy(
    tmp_path: Path, text: str, old: str, new: str, message: str
) -> None:
    assert old in text
    path = write(tmp_path, text.replace(old, new, 1))
    with pytest.raises(InputError, match=f"(?s){message}") as caught:
        use(path)
    assert str(path) in str(caught.value) or "is for" in message or text == ESTIMATION


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (WORST, "threshold = 2", "threshold = 4"),
        (WORST, "threshold = 2", "threshold = 0"),
        (WORST, "[1, 3, 2]", "[1, 4, 2]"),
        (WORST, ", [2, 1, 3]]", "]"),
        (LEAST, "expected = 0.5", ""),
        (LEAST, "expected = 0.5", "expected = 1.5"),
        (LEAST, "expected = 0.5", "worst = 2"),
        (LEAST, "expected = 0.5", "expected = nan"),
        (LEAST, "outputs = 4", "outputs = 0"),
        (DESIGN, '"hamming"', '{ kind = "expected-loss", matrix = [[0, 1]] }'),
        (DESIGN, '"hamming"', '{ kind = "expected-loss", matrix = [[1e300, 1], [1, 0], [1, 1]] }'),
        (DESIGN, '"hamming"', '"hamming"\noutputs = ["a", "a"]'),
        (DESIGN, '"hamming"', '"hamming"\noutputs = []'),
        (RECORD, "{ log = 4 }", "3.0"),
        (RECORD, "{ log = 4 }", "-1"),
    ],
)
def test_demands_that_no_program_meets_are_refused_by_load_or_by_the_program(
    tmp_path: Path, text: str, old: str, new: str
) -> None:
    path = write(tmp_path, text.replace(old, new, 1))
    with pytest.raises(PmloptError):
        load(path).program()


def test_a_file_cut_short_anywhere_is_an_error_or_a_whole_problem(tmp_path: Path) -> None:
    for end in range(0, len(DESIGN), 7):
        path = write(tmp_path, DESIGN[:end])
        try:
            instance = load(path)
        except PmloptError:
            continue
        assert instance.title == "A small problem"
