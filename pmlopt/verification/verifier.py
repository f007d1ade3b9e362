#!/usr/bin/env python3
"""Check a saved design of pmlopt (.json, a plain matrix) in rational arithmetic: `python verifier.py FILE`.

This file stands alone: Python's standard library, no pmlopt, no solver, no floating point in a decision.
Every float is a rational number; e^x is enclosed by two. docs/certificate.md states what each number means.
Exit code 0: all that the file claims is proved. 1: a claim is false. 2: nothing is proved of a file that is
not of the format to the letter, or makes other claims. 3: its leakage is proved, its value and bound are not.

Read it from `check` on, the last function but two.
"""

import json
import sys
from decimal import Context, Decimal
from fractions import Fraction
from pathlib import Path

DECIMALS = Context(prec=60)
TOLERANCE = Fraction(1, 10**12)

FILE_KEYS = "format version inputs outputs unnamed matrix metadata"
RESULT_KEYS = (
    "status value bound gap level prior certificate solver reason attempts iterations warm_started "
    "closed_form timings solver_options"
)
SHARED_KEYS = "kind mechanism value bound privacy prior multipliers residuals repair"
OWN_KEYS = {
    "linear": "maximised table witness added",
    "least-leakage": "allowed expected weight laws",
}
REQUIREMENT_KEYS = {
    "pml": "epsilon over about",
    "ldp": "epsilon",
    "lip": "lower upper",
    "maximal-leakage": "epsilon",
}
PRIOR_SET_KEYS = {
    "l1-ball": "center radius delta",
    "minimum-mass": "size mass",
    "all-priors": "size",
}
MALFORMED = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    OSError,
    RecursionError,
)


class FalseClaimError(Exception):
    """The message states which claim is false."""


class RefusedError(Exception):
    """The message states what is not of the format, or not proved by this script."""


def need(condition, claim):
    """Require that a claim of the file is true."""
    if not condition:
        raise FalseClaimError(claim)


def must(condition, what):
    """Require that the file is of the format, and claims what this script proves."""
    if not condition:
        raise RefusedError(what)


# What a file holds, read to the letter


def read_keys(data, names, what):
    """Require a table with exactly these keys."""
    must(
        type(data) is dict and set(data) == set(names.split()), f"{what} must have the keys {names}"
    )
    return data


def read_number(value):
    """Read a number; a whole number is the double that it is read as."""
    must(type(value) in (int, float), f"{value!r:.40} stands where a number belongs")
    return Fraction(float(value))


def read_count(value):
    """Read a whole number of at least 0."""
    must(type(value) is int and value >= 0, f"{value!r:.40} stands where a whole number belongs")
    return value


def read_row(values, size=None):
    """Read a list of numbers, of a size perhaps."""
    must(
        type(values) is list and (size is None or len(values) == size), "a list has another length"
    )
    return [read_number(value) for value in values]


def read_table(rows, height=None, width=None):
    """Read a list of rows of one length."""
    must(
        type(rows) is list and rows and len(rows) == (height or len(rows)),
        "a table has another height",
    )
    found = [read_row(values, width) for values in rows]
    must(len({len(values) for values in found}) == 1, "the rows of a table have different lengths")
    return found


def read_label(value):
    """Read a label: a list, also within a list, as a tuple."""
    must(
        type(value) in (str, int, float, bool, list), "a label is text, a number or a list of these"
    )
    must(
        type(value) is not float or abs(value) < float("inf"), "a label that is a number is finite"
    )
    if type(value) is list:
        return tuple(map(read_label, value))
    return value


def read_labels(values):
    """Read distinct labels."""
    must(type(values) is list, "labels are a list")
    found = [read_label(value) for value in values]
    must(found and len(set(found)) == len(found), "labels must be distinct")
    return found


def read_law(record, what, *inputs):
    """Read a law: its counts over their sum, or else its floats over theirs; and its sample."""
    read_keys(record, "kind labels probabilities counts samples", what)
    # compared as texts, as 1, 1.0 and true are not the same
    on_inputs = repr(record["labels"]) in map(repr, ("labels", *inputs))
    must(record["kind"] == "prior" and on_inputs, f"{what} is a law on the inputs")
    counts = record["counts"]
    samples = record["samples"]
    floats = record["probabilities"]
    weights = read_row(floats)
    need(abs(sum(weights) - 1) < Fraction(2, 10**9) and min(weights) >= 0, f"{what} is a law")
    must(samples is None or read_count(samples) > 0, "a sample has a size")
    if counts is not None:
        weights = [Fraction(read_count(count)) for count in counts]
        people = sum(counts)
        is_law = type(counts) is list and people > 0 and [c / people for c in counts] == floats
        need(
            is_law and samples in (None, people), f"the counts of {what} are its law and its sample"
        )
    total = sum(weights)
    return [weight / total for weight in weights]


# Rational arithmetic


def power(x, up=False):
    """Return a rational just below e^x, or just above: 60 digits, widened by more than they can be off."""
    if not x:
        return Fraction(1)
    x = min(max(x, Fraction(-(10**5))), Fraction(10**5))
    exponent = DECIMALS.divide(Decimal(x.numerator), Decimal(x.denominator))
    near = Fraction(DECIMALS.exp(exponent))
    return near * (1 + Fraction(1 if up else -1, 10**50))


def dot(u, v):
    """Compute an inner product."""
    return sum((a * b for a, b in zip(u, v, strict=True)), Fraction(0))


def weigh_distances(p, gain, level):
    """Compute `p (gain - level)`, letter by letter."""
    return [weight * (value - level) for weight, value in zip(p, gain, strict=True)]


def positive_parts(values, level=0):
    """Compute by how much values are above a level, 0 where they are below."""
    return [max(value - level, Fraction(0)) for value in values]


class StatedPriorSet:
    """The priors with `Q(A) >= max(0, lower(A) - shift)` for all sets A of letters."""

    def __init__(self, data, p, prior, inputs):
        kind = data.get("kind")
        must(kind in PRIOR_SET_KEYS, f"a set of the kind {kind!r:.40} is not proved by this script")
        read_keys(data, f"kind {PRIOR_SET_KEYS[kind]}", "the set of priors")
        has_size = read_count(data.get("size", len(p))) == len(p)
        must(has_size, "the set of priors is on the letters of the prior")
        self.lower = read_row([data.get("mass", 0)]) * len(p)
        self.shift = Fraction(0)
        mass = float(self.lower[0])
        self.description = f"every prior with a mass of {mass} or more on each letter"
        if kind == "l1-ball":
            self.read_ball(data, len(p), prior, inputs)
        has_room = self.lower[0] >= 0 and sum(self.lower) <= 1 + TOLERANCE
        need(has_room, "a least mass leaves room for a law")
        self.total = max(Fraction(1), sum(self.lower))

    def read_ball(self, data, size, prior, inputs):
        """Read the l1 ball around a law."""
        center = prior if data["center"] == "prior" else data["center"]
        self.lower = read_law(center, "the centre", inputs, len(inputs))
        self.shift = read_number(data["radius"]) / 2
        fits = len(self.lower) == size and 0 <= self.shift <= 1
        need(fits, "the radius of a ball is at most 2")
        self.description = f"every prior within l1 distance {data['radius']} of the centre"
        if data["delta"] is not None:
            self.check_confidence(data["delta"], center["counts"])

    def check_confidence(self, stated, counts):
        """Check that the true law is in the ball around a sample's law but with a stated probability.

        By Hoeffding's inequality for each set of letters.
        """
        must(
            counts and 0 < read_number(stated) < 1,
            "the probability of a set without counts is not proved by this script",
        )
        sets = 2 ** len(self.lower) - 2
        outside = sets * power(-2 * sum(counts) * self.shift * self.shift, True)
        is_shown = outside <= read_number(stated) * (1 + Fraction(1, 10**9))
        must(is_shown, "the counts do not show the ball")
        self.description = f"the true law, but with probability {stated} over the sample"

    def has_all_point_laws(self):
        """Return whether the set may have all mass on any letter."""
        total = sum(self.lower)
        return all(total - mass <= self.shift for mass in self.lower)

    def min_mean(self, column):
        """Compute the least mean of a column over the set: a Choquet integral."""
        order = sorted(range(len(column)), key=lambda x: -column[x])
        mean = Fraction(0)
        sum_of_lower = Fraction(0)
        before = Fraction(0)
        for x in order:
            sum_of_lower += self.lower[x]
            mass = self.total if x == order[-1] else max(Fraction(0), sum_of_lower - self.shift)
            mean += (mass - before) * column[x]
            before = mass
        return mean / self.total

    def evaluate_dual(self, costs, theta, exp_neg_epsilon):
        """Compute `min_Q sum (costs + theta Q)^+ - theta e^-epsilon` over the set."""
        laws = [mass / self.total for mass in self.lower]
        mixed = sum(positive_parts(a + theta * q for a, q in zip(costs, laws, strict=True)))
        return max(
            sum(costs) + theta * (1 - exp_neg_epsilon),
            mixed - theta * (self.shift / self.total + exp_neg_epsilon),
            sum(positive_parts(costs)) - theta * exp_neg_epsilon,
        )


class StatedRequirement:
    """PML (over a set of priors, too), LDP or LIP of each column of a matrix, or maximal leakage of all."""

    def __init__(self, record, p, prior, inputs):
        self.name = record.get("name")
        must(
            self.name in REQUIREMENT_KEYS,
            f"a requirement of the kind {self.name!r:.40} is not proved by this script",
        )
        read_keys(record, f"name {REQUIREMENT_KEYS[self.name]}", f"the requirement {self.name}")
        must(
            type(record.get("epsilon")) is not list and record.get("about") is None,
            "a requirement about a secret, or with budgets by letter, is not proved by this script",
        )
        self.limits = read_row(
            [record[key] for key in ("lower", "upper", "epsilon") if key in record]
        )
        must(0 <= min(self.limits) <= max(self.limits) <= 10**5, "a limit is from 0 to 100000 nats")
        self.over = None
        self.priors = "the prior of the file"
        if record.get("over") is not None:
            self.over = StatedPriorSet(record["over"], p, prior, inputs)
            self.priors = self.over.description

    def compute_mean(self, p, column):
        """Compute the mean that the largest entry of a column is compared with."""
        if self.name == "ldp":
            return min(column)
        if self.over is not None:
            return self.over.min_mean(column)
        return dot(p, column)

    def find_violation(self, limits, p, columns, names):
        """Describe where it is violated at these limits; empty where it holds."""
        factor = power(limits[-1])
        if self.name == "maximal-leakage":
            leaks_more = factor < len(p) and sum(map(max, columns)) > factor
            return "all outcomes together leak more" if leaks_more else ""
        inputs, outputs = names
        for outcome, column in zip(outputs, columns, strict=True):
            largest = max(column)
            smallest = min(column)
            mean = self.compute_mean(p, column)
            if largest > factor * mean:
                letter = inputs[column.index(largest)]
                return f"the outcome {outcome!r} tells too much of {letter!r}"
            if self.name == "lip" and mean > power(limits[0]) * smallest:
                letter = inputs[column.index(smallest)]
                return f"the outcome {outcome!r} tells too much of {letter!r}"
        return ""

    def bounds_gains(self, p, gains, witness, most):
        """Whether each column v >= 0 that it allows, of <p, v> = 1, has <p g, v> <= most for all g."""
        factor = power(self.limits[-1], True)
        if self.name == "ldp" or (self.over is not None and self.over.has_all_point_laws()):
            return all(bounds_by_ratio(p, gain, 1 / factor, most) for gain in gains)
        if self.name == "maximal-leakage":
            largest = max(dot(p, positive_parts(gain)) for gain in gains)
            return min(factor, Fraction(len(p))) * largest <= most
        if self.over is not None and (self.over.shift > 0 or self.over.lower != p):
            return self.bounds_over_set(p, gains, witness, most, factor)
        # v has its entries from low to factor, and mean 1
        low = power(-self.limits[0]) if self.name == "lip" else Fraction(0)
        return all(bounds_in_box(p, gain, low, factor, most) for gain in gains)

    def bounds_over_set(self, p, gains, witness, most, factor):
        """Whether it bounds the gains of the columns allowed over a set of priors, by a theta for each."""
        stated = read_keys(witness, "theta", "the witness")["theta"]
        (thetas,) = read_table(stated, 1, len(gains))
        for gain, theta in zip(gains, positive_parts(thetas), strict=True):
            costs = weigh_distances(p, gain, most)
            if max(costs) <= 0:
                continue
            # at level 0 each column is constant
            dual = sum(costs) if factor == 1 else self.over.evaluate_dual(costs, theta, 1 / factor)
            if dual > 0:
                return False
        return True


def bounds_by_ratio(p, gain, least_ratio, most):
    """Whether <p g, v> <= most for v with entries in [least_ratio, 1], times a number."""
    costs = weigh_distances(p, gain, most)
    return sum(cost * (1 if cost > 0 else least_ratio) for cost in costs) <= 0


def bounds_in_box(p, gain, low, high, most):
    """Whether <p g, v> <= most for v in [low, high] of mean 1: by a dual bound at some entry of the gain."""
    mean = dot(p, gain)
    return any(
        low * mean + (1 - low) * level + (high - low) * dot(p, positive_parts(gain, level)) <= most
        for level in gain
    )


# The claims


def check_levels(requirement, level, matrix, p, names):
    """Check that the matrix is a mechanism within its limits, its largest level the stated one."""
    columns = [list(column) for column in zip(*matrix, strict=True)]
    need(all(sum(row) == 1 and min(row) >= 0 for row in matrix), "each row is a law, exactly")
    inputs, _ = names
    limits = requirement.limits
    constant = [[Fraction(1)] * len(p)]
    violation = requirement.find_violation(limits, p, constant, (inputs, [None]))
    need(not violation, "a constant is within")
    violation = requirement.find_violation(limits, p, columns, names)
    need(not violation, violation)
    near = TOLERANCE * max(1, abs(level))
    above = [level + near] * len(limits)
    below = [level - near] * len(limits)
    holds_above = not requirement.find_violation(above, p, columns, names)
    need(holds_above, "the matrix has the stated level")
    fails_below = requirement.find_violation(below, p, columns, names)
    need(fails_below, "the matrix has the stated level")


def check_linear(record, requirement, matrix, p):
    """Check value and bound of an expected gain or loss, and describe them in a sentence."""
    must(
        type(record["maximised"]) is bool and record["added"] == [],
        "added constraints are not proved",
    )
    outputs = len(matrix[0])
    rows = read_table(record["table"], len(p), outputs)
    value = read_number(record["value"])
    if record["witness"] != {}:
        names = "theta" if requirement.over else ""
        read_table(read_keys(record["witness"], names, "the witness")["theta"], 1, outputs)
    # a pair that never occurs has no part in the rounding of the value
    size = dot(p, map(dot, matrix, [map(abs, row) for row in rows]))
    rounding = Fraction(len(p) + outputs + 8, 2**48) * (size + Fraction(1, 2**1022))
    need(abs(value - dot(p, map(dot, matrix, rows))) <= rounding, "the value")
    must(type(record["bound"]) is not str, "without a bound nothing is proved of other mechanisms")
    sign = 1 if record["maximised"] else -1
    multipliers = read_row(record["multipliers"], len(p))
    rho = [own + sign * min(row) for own, row in zip(multipliers, rows, strict=True)]
    gains = [
        [sign * row[y] - own for row, own in zip(rows, rho, strict=True)] for y in range(outputs)
    ]
    most = sign * read_number(record["bound"]) - dot(p, rho)  # rationals need no room for rounding
    is_bound = requirement.bounds_gains(p, gains, record["witness"], most)
    need(is_bound, "the multipliers prove the bound")
    what, side = ("gain", "above") if record["maximised"] else ("loss", "below")
    return (
        f"its expected {what} is {record['value']}, "
        f"and no other mechanism that does has one {side} {record['bound']}"
    )


def check_least_leakage(record, requirement, matrix, p):
    """Check a least level on allowed pairs: a column of mean one meets the multipliers, within e^level."""
    level = read_number(record["value"])
    bound = read_number(record["bound"])
    allowed = record["allowed"]
    must(
        requirement.name == "pml" and requirement.over is None,
        "a least level over a set of priors is not proved",
    )
    must(
        record["expected"] is None and record["laws"] is None,
        "a floor on the utility is not proved",
    )
    multipliers = read_row([*record["multipliers"], record["weight"]], len(p) + 1)[:-1]
    must(
        [len(row) for row in allowed] == [len(matrix[0])] * len(p),
        "the allowed pairs have another shape",
    )
    must(
        all(type(value) is bool for row in allowed for value in row),
        "allowed pairs are true or false",
    )
    need(level == requirement.limits[0], "the value is the level that is claimed")
    need(
        all(allowed[x][y] for x, row in enumerate(matrix) for y, value in enumerate(row) if value),
        "the pairs",
    )
    mean = dot(p, multipliers)
    share = Fraction(0)
    for column in zip(*allowed, strict=True):
        letters = zip(multipliers, p, column, strict=True)
        pairs = [(own - mean, mass) for own, mass, may_occur in letters if may_occur]
        share = max(share, find_filled_mass(pairs))
    need(bound <= 0 or power(-bound) >= share, "the multipliers prove the bound")
    return f"no mechanism on the allowed pairs has a level below {record['bound']}"


def find_filled_mass(pairs):
    """Find the mass up to which the sum of worths, taken from the largest on, is at least 0."""
    total = Fraction(0)
    filled = Fraction(0)
    for worth, mass in sorted(pairs, reverse=True):
        if total + mass * worth < 0:
            return filled - total / worth
        total += mass * worth
        filled += mass
    return filled


# The rest of the format: how the design was found, which proves nothing


def check_search_record(result, record):
    """Check the form of what a file states of the solver and its work."""
    must(
        result["status"] in ["optimal", "unproved", "limit_reached", "stopped", "violated"],
        "the status",
    )
    attempts = result["attempts"]
    form = result["closed_form"]
    texts = [result["solver"], result["reason"], *attempts]
    if form is not None:
        texts.append(read_keys(form, "name value difference", "the closed form")["name"])
    must(type(attempts) is list and all(type(text) is str for text in texts), "texts")
    is_counted = type(result["iterations"]) in (int, type(None))
    must(is_counted and type(result["warm_started"]) is bool, "the iterations")
    options = result["solver_options"]
    must(
        type(options) is dict and json.dumps(options, allow_nan=False), "the options of the solver"
    )
    repair = record.get("repair", {"theta": 0, "shift": 0, "dropped": []})
    read_keys(repair, "theta shift dropped", "repair")
    read_row([repair["theta"], repair["shift"], *record.get("residuals", {}).values()])
    dropped = repair["dropped"]
    must(all(type(y) is int for y in dropped) and type(dropped) is list, "what was dropped")
    timings = read_keys(result["timings"], "compile solve certify total", "the timings")
    read_row(list(timings.values()))


def read_names(file):
    """Read the labels of inputs and outputs, and check which sides have none of their own."""
    names = read_labels(file["inputs"]), read_labels(file["outputs"])
    unnamed = file["unnamed"]
    must(
        unnamed in ([], ["inputs"], ["outputs"], ["inputs", "outputs"]), "the sides without labels"
    )
    for side in unnamed:
        places = list(range(len(file[side])))
        must(list(map(read_count, file[side])) == places, "their labels")
    return names


def read_result(file):
    """Read what a file states of a result, and its certificate."""
    must(file.get("format") == "pmlopt-mechanism", "only a plain matrix is proved by this script")
    metadata = read_keys(file, FILE_KEYS, "the file")["metadata"]
    result = read_keys({"solver_options": {}, **metadata}, RESULT_KEYS, "the result")
    record = result["certificate"]
    kind = record.get("kind")
    must("privacy" in record, f"results of the kind {kind!r:.40} are not proved here")
    keys = f"{SHARED_KEYS} {OWN_KEYS[kind]}" if kind in OWN_KEYS else " ".join(record)
    read_keys(record, keys, "the certificate")
    stated = read_count(file["version"]), record["mechanism"], record["prior"]
    must(
        stated == (3, "mechanism", "prior"),
        "it is of another version, or matrix and prior are not the file's",
    )
    return result, record


def has_no_bound(result, record):
    """Whether nothing is claimed of other mechanisms."""
    return (record["bound"], result["bound"], result["gap"]) == ("inf", None, None)


def check_value(result, record, requirement, matrix, p):
    """Check value, bound, gap and closed form, and describe the optimum."""
    has_same = all(
        read_number(record[key]) == read_number(result[key]) for key in ("value", "bound")
    )
    need(has_same, "the result is its proof's")
    check_optimum = check_linear if record["kind"] == "linear" else check_least_leakage
    optimum = check_optimum(record, requirement, matrix, p)
    value = read_number(record["value"])
    sign = 1 if record.get("maximised") else -1
    gap = (read_number(record["bound"]) - value) * sign
    need(read_number(result["gap"]) == Fraction(float(gap)), "the gap")
    form = result["closed_form"]
    if form is not None:
        off = value - read_number(form["value"]) - read_number(form["difference"])
        need(abs(off) <= TOLERANCE * max(1, abs(value)), "the closed form")
    return optimum


def check(file):
    """Check all claims of a file; return the exit code, and what was proved."""
    result, record = read_result(file)
    inputs, outputs = names = read_names(file)
    check_search_record(result, record)
    matrix = read_table(file["matrix"], len(inputs), len(outputs))
    p = read_law(result["prior"], "the prior")
    need(len(p) == len(inputs) and min(p) > 0, "the prior has every letter")
    requirement = StatedRequirement(record["privacy"], p, result["prior"], file["inputs"])
    level = read_number(result["level"])
    value = read_number(record["value"])
    check_levels(requirement, level, matrix, p, names)
    limits = " and ".join(f"{float(limit)}" for limit in requirement.limits)
    proved = (
        f"proved: the {len(p)} x {len(outputs)} matrix keeps {requirement.name} of {limits} nats "
        f"about the data for {requirement.priors}"
    )
    kind = record.get("kind")
    if kind == "compliance" and has_no_bound(result, record):
        is_level = abs(value - level) <= TOLERANCE * max(1, level)
        need(read_number(result["value"]) == value and is_level, "the value")
        return 0, proved
    if kind not in OWN_KEYS:
        return 3, f"{proved}; not proved: value and bound of a result of the kind {kind!r:.40}"
    return 0, f"{proved}; {check_value(result, record, requirement, matrix, p)}"


def read_pairs(pairs):
    """Read a table of JSON whose keys are distinct."""
    must(len(dict(pairs)) == len(pairs), "a key stands there twice")
    return dict(pairs)


def main(path):
    """Check a file, and write what was found; return the exit code."""
    try:
        content = Path(path).read_bytes()
        must(len(content) <= 10**8, "the file is too large")
        file = json.loads(
            content.decode(), object_pairs_hook=read_pairs, parse_constant=read_number
        )
        code, found = check(file)
    except FalseClaimError as error:
        code, found = 1, f"FALSE: {error}"
    except RefusedError as error:
        code, found = 2, f"nothing is proved: {error}"
    except MALFORMED as error:
        code, found = 2, f"nothing is proved: it is not as the format says: {error!r}"
    sys.stdout.write(f"{path}: {found}\n")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
