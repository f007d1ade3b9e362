#!/usr/bin/env python3
"""Check a saved design of pmlopt (.json, a plain matrix) in rational arithmetic: `python verifier.py FILE`.

This file stands alone: Python's standard library, no pmlopt, no solver, no floating point in a decision.
Every float is a rational number; e^x is enclosed by two. docs/certificate.md states what each number means.
Exit code 0: all that the file claims is proved. 1: a claim is false. 2: nothing is proved of a file that is
not of the format to the letter, or makes other claims. 3: its leakage is proved, its value and bound are not.
"""

import json
import sys
from decimal import Context, Decimal
from fractions import Fraction as Q
from pathlib import Path

DIGITS, NEAR, LARGEST, VERSION = Context(prec=60), Q(1, 10**12), 10**8, 3  # LARGEST in bytes of a file
FILE = "format version inputs outputs unnamed matrix metadata"
RESULT = ("status value bound gap level prior certificate solver reason attempts iterations warm_started "
          "closed_form timings solver_options")  # fmt: skip
SHARED = "kind mechanism value bound privacy prior multipliers residuals repair"  # of results in OWN
OWN = {"linear": "maximised table witness added", "least-leakage": "allowed expected weight laws"}
ASKED = {"pml": "epsilon over about", "ldp": "epsilon", "lip": "lower upper", "maximal-leakage": "epsilon"}
SETS = {"l1-ball": "center radius delta", "minimum-mass": "size mass", "all-priors": "size"}
MALFORMED = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, OSError, RecursionError)

class FalseClaimError(Exception):
    """The message states which claim is false."""

class RefusedError(Exception):
    """The message states what is not of the format, or not proved by this script."""

def need(condition, claim, error=FalseClaimError):
    if not condition:
        raise error(claim)

def must(condition, what):
    need(condition, what, RefusedError)

def keys(data, names, what):
    """Require a table with exactly these keys."""
    must(type(data) is dict and set(data) == set(names.split()), f"{what} must have the keys {names}")
    return data

def number(value):
    must(type(value) in (int, float), f"{value!r:.40} stands where a number belongs")
    return Q(float(value))  # of a whole number the double that it is read as

def whole(value):
    must(type(value) is int and value >= 0, f"{value!r:.40} stands where a whole number belongs")
    return value

def row(values, size=None):
    must(type(values) is list and (size is None or len(values) == size), "a list has another length")
    return [number(v) for v in values]

def table(rows, height=None, width=None):
    must(type(rows) is list and rows and len(rows) == (height or len(rows)), "a table has another height")
    found = [row(values, width) for values in rows]
    must(len({len(values) for values in found}) == 1, "the rows of a table have different lengths")
    return found

def labels(values):
    """Distinct labels, lists within as tuples."""
    def plain(v):
        must(type(v) in (str, int, float, bool, list), "a label is text, a number or a list of these")
        must(type(v) is not float or abs(v) < float("inf"), "a label that is a number is finite")
        return tuple(map(plain, v)) if type(v) is list else v
    must(type(values) is list, "labels are a list")
    found = [plain(v) for v in values]
    must(found and len(set(found)) == len(found), "labels must be distinct")
    return found

def power(x, up=False):
    """Return a rational just below e^x, or just above: 60 digits, widened by more than they can be off."""
    x = min(max(x, Q(-(10**5))), Q(10**5))
    near = Q(DIGITS.exp(DIGITS.divide(Decimal(x.numerator), Decimal(x.denominator))))
    return near * (1 + Q(1 if up else -1, 10**50)) if x else Q(1)

def dot(u, v):
    return sum((a * b for a, b in zip(u, v, strict=True)), Q(0))

def above(values, c):  # by how much
    return [max(v - c, Q(0)) for v in values]

def law(record, what, *inputs):
    """Read a law: its counts over their sum, or else its floats over theirs; and its sample."""
    keys(record, "kind labels probabilities counts samples", what)
    same = repr(record["labels"]) in map(repr, ("labels", *inputs))  # 1, 1.0 and true are not the same
    must(record["kind"] == "prior" and same, f"{what} is a law on the inputs")
    counts, samples, found = record["counts"], record["samples"], row(floats := record["probabilities"])
    need(abs(sum(found) - 1) < Q(2, 10**9) and min(found) >= 0, f"{what} is a law")
    must(samples is None or whole(samples) > 0, "a sample has a size")
    if counts is not None:
        found = [Q(whole(c)) for c in counts]
        same = type(counts) is list and sum(counts) > 0 and [c / sum(counts) for c in counts] == floats
        need(same and samples in (None, sum(counts)), f"the counts of {what} are its law and its sample")
    return [v / sum(found) for v in found]

class StatedRequirement:
    """PML (over a set of priors, too), LDP or LIP of each column of a matrix, or maximal leakage of all."""

    def __init__(self, record, p, prior, inputs):
        self.name, self.over, self.priors = record.get("name"), None, "the prior of the file"
        must(self.name in ASKED, f"a requirement of the kind {self.name!r:.40} is not proved by this script")
        keys(record, f"name {ASKED[self.name]}", f"the requirement {self.name}")
        own = type(record.get("epsilon")) is not list and record.get("about") is None
        must(own, "a requirement about a secret, or with budgets by letter, is not proved by this script")
        self.limits = row([record[key] for key in ("lower", "upper", "epsilon") if key in record])
        must(0 <= min(self.limits) <= max(self.limits) <= 10**5, "a limit is from 0 to 100000 nats")
        if record.get("over") is not None:
            self.read_prior_set(record["over"], p, prior, inputs)

    def read_prior_set(self, data, p, prior, inputs):
        """Read a set of priors: those with `Q(A) >= max(0, lower(A) - shift)` for sets A of letters."""
        kind = data.get("kind")
        must(kind in SETS, f"a set of the kind {kind!r:.40} is not proved by this script")
        keys(data, f"kind {SETS[kind]}", "the set of priors")
        must(whole(data.get("size", len(p))) == len(p), "the set of priors is on the letters of the prior")
        lower, shift = row([data.get("mass", 0)]) * len(p), Q(0)
        self.priors = f"every prior with a mass of {float(lower[0])} or more on each letter"
        if kind == "l1-ball":
            center = prior if data["center"] == "prior" else data["center"]
            lower, shift = law(center, "the centre", inputs, len(inputs)), number(data["radius"]) / 2
            need(len(lower) == len(p) and 0 <= shift <= 1, "the radius of a ball is at most 2")
            self.priors = f"every prior within l1 distance {data['radius']} of the centre"
            if data["delta"] is not None:
                known = center["counts"] and 0 < number(data["delta"]) < 1
                must(known, "the probability of a set without counts is not proved by this script")
                outside = (2 ** len(p) - 2) * power(-2 * sum(center["counts"]) * shift * shift, True)
                must(outside <= number(data["delta"]) * (1 + Q(1, 10**9)), "the counts do not show the ball")
                self.priors = f"the true law, but with probability {data['delta']} over the sample"
        need(lower[0] >= 0 and sum(lower) <= 1 + NEAR, "a least mass leaves room for a law")
        self.over = (lower, shift, max(Q(1), sum(lower)))

    def least_mean(self, column):
        """Compute the least mean of a column over the set of priors: a Choquet integral."""
        lower, shift, total = self.over
        order, mean, before = sorted(range(len(column)), key=lambda x: -column[x]), Q(0), Q(0)
        for k, x in enumerate(order, start=1):
            now = max(Q(0), sum(lower[z] for z in order[:k]) - shift) if k < len(order) else total
            mean, before = mean + (now - before) * column[x], now
        return mean / total

    def broken(self, limits, p, columns, names):
        """Where it is broken at these limits, in words; empty where it holds."""
        factor = power(limits[-1])
        if self.name == "maximal-leakage" and factor < len(p) and sum(map(max, columns)) > factor:
            return "all outcomes together leak more"
        for outcome, c in zip(names[1], columns, strict=True):
            mean = min(c) if self.name == "ldp" else self.least_mean(c) if self.over else dot(p, c)
            if self.name != "maximal-leakage" and max(c) > factor * mean:
                return f"the outcome {outcome!r} tells too much of {names[0][c.index(max(c))]!r}"
            if self.name == "lip" and mean > power(limits[0]) * min(c):
                return f"the outcome {outcome!r} tells too much of {names[0][c.index(min(c))]!r}"
        return ""

    def within(self, p, gains, proof, most):
        """Whether each column v >= 0 that it allows, of <p, v> = 1, has <p g, v> <= most for all g."""
        name, up, own = self.name, power(self.limits[-1], True), self.over is not None
        keep = 1 / up
        if own:
            lower, shift, _ = self.over
            some = any(sum(lower) - v > shift for v in lower)
            name, own = (name if some else "ldp"), shift > 0 or lower != p  # all priors, or the prior alone
        if name == "ldp":  # such a v has its entries in [keep, 1], times a number
            return all(sum(w * (v - most) * (1 if v > most else keep) for w, v in zip(p, g, strict=True)) <= 0
                       for g in gains)
        if name == "maximal-leakage":
            return min(up, Q(len(p))) * max(dot(p, above(g, Q(0))) for g in gains) <= most
        if own:
            theta = above(table(keys(proof, "theta", "the witness")["theta"], 1, len(gains))[0], Q(0))
            costs = [[w * (v - most) for w, v in zip(p, g, strict=True)] for g in gains]
            return all(max(a) <= 0 or (sum(a) <= 0 if up == 1 else max(self.pieces(a, t, keep)) <= 0)
                       for a, t in zip(costs, theta, strict=True))
        low = power(-self.limits[0]) if name == "lip" else Q(0)  # v in [low, up]
        return all(any(low * dot(p, g) + (1 - low) * c + (up - low) * dot(p, above(g, c)) <= most for c in g)
                   for g in gains)

    def pieces(self, a, t, keep):
        """`min_Q sum (a + t Q)^+ - t keep` over the set of priors Q is the largest of these."""
        lower, shift, total = self.over
        mixed = sum(above((v + t * w / total for v, w in zip(a, lower, strict=True)), 0))
        return [sum(a) + t * (1 - keep), mixed - t * (shift / total + keep), sum(above(a, 0)) - t * keep]

def levels(asked, level, matrix, p, names):
    """Check that the matrix is a mechanism within its limits, its largest level the stated one."""
    columns = [list(c) for c in zip(*matrix, strict=True)]
    need(all(sum(r) == 1 and min(r) >= 0 for r in matrix), "each row is a law, exactly")
    need(not asked.broken(asked.limits, p, [[Q(1)] * len(p)], (names[0], [None])), "a constant is within")
    need(not (fault := asked.broken(asked.limits, p, columns, names)), fault)
    near, count = NEAR * max(1, abs(level)), len(asked.limits)
    need(not asked.broken([level + near] * count, p, columns, names), "the matrix has the stated level")
    need(asked.broken([level - near] * count, p, columns, names), "the matrix has the stated level")

def linear(record, asked, matrix, p):
    """Value and bound of an expected gain or loss, in a sentence."""
    must(type(record["maximised"]) is bool and record["added"] == [], "added constraints are not proved")
    what, side, sign = ("gain", "above", 1) if record["maximised"] else ("loss", "below", -1)
    rows, value = table(record["table"], len(p), len(matrix[0])), number(record["value"])
    if record["witness"] != {}:
        table(keys(record["witness"], "theta" if asked.over else "", "the witness")["theta"], 1, len(rows[0]))
    size = dot(p, map(dot, matrix, [map(abs, r) for r in rows]))  # a pair that never occurs has no part
    rounding = Q(len(p) + len(rows[0]) + 8, 2**48) * (size + Q(1, 2**1022))
    need(abs(value - dot(p, map(dot, matrix, rows))) <= rounding, "the value")
    must(type(record["bound"]) is not str, "without a bound nothing is proved of other mechanisms")
    rho = [v + sign * min(r) for v, r in zip(row(record["multipliers"], len(p)), rows, strict=True)]
    left = [[sign * r[y] - v for r, v in zip(rows, rho, strict=True)] for y in range(len(rows[0]))]
    most = sign * number(record["bound"]) - dot(p, rho)  # rationals need no room for rounding
    need(asked.within(p, left, record["witness"], most), "the multipliers prove the bound")
    what = f"its expected {what} is {record['value']}"
    return f"{what}, and no other mechanism that does has one {side} {record['bound']}"

def least_leakage(record, asked, matrix, p):
    """Check a least level on allowed pairs: a column of mean one meets the multipliers, within e^level."""
    level, bound, allowed = number(record["value"]), number(record["bound"]), record["allowed"]
    must(asked.name == "pml" and asked.over is None, "a least level over a set of priors is not proved")
    must(record["expected"] is None and record["laws"] is None, "a floor on the utility is not proved")
    share, rows = Q(0), row([*record["multipliers"], record["weight"]], len(p) + 1)[:-1]
    must([len(r) for r in allowed] == [len(matrix[0])] * len(p), "the allowed pairs have another shape")
    must(all(type(v) is bool for r in allowed for v in r), "allowed pairs are true or false")
    need(level == asked.limits[0], "the value is the level that is claimed")
    need(all(allowed[x][y] for x, r in enumerate(matrix) for y, v in enumerate(r) if v), "the pairs")
    for column in zip(*allowed, strict=True):
        some = [(r - dot(p, rows), w) for r, w, may in zip(rows, p, column, strict=True) if may]
        left = filled = Q(0)
        for worth, mass in sorted(some, reverse=True):  # the mass up to which the sum is at least 0
            part = mass if left + mass * worth >= 0 else -left / worth
            left, filled = left + part * worth, filled + part
            if part < mass:
                break
        share = max(share, filled)
    need(bound <= 0 or power(-bound) >= share, "the multipliers prove the bound")
    return f"no mechanism on the allowed pairs has a level below {record['bound']}"

def told(result, record):  # how it was found, which proves nothing, has the form of the format
    must(result["status"] in ["optimal", "unproved", "limit_reached", "stopped", "violated"], "the status")
    form, texts = result["closed_form"], [result["solver"], result["reason"], *result["attempts"]]
    texts += [] if form is None else [keys(form, "name value difference", "the closed form")["name"]]
    must(type(result["attempts"]) is list and all(type(text) is str for text in texts), "texts")
    count, options = result["iterations"], result["solver_options"]
    must(type(count) in (int, type(None)) and type(result["warm_started"]) is bool, "the iterations")
    must(type(options) is dict and json.dumps(options, allow_nan=False), "the options of the solver")
    fix = keys(record.get("repair", {"theta": 0, "shift": 0, "dropped": []}), "theta shift dropped", "repair")
    row([fix["theta"], fix["shift"], *record.get("residuals", {}).values()])
    must(all(type(y) is int for y in fix["dropped"]) and type(fix["dropped"]) is list, "what was dropped")
    row(list(keys(result["timings"], "compile solve certify total", "the timings").values()))

def check(file):
    """All claims of a file; the exit code, and what was proved."""
    must(file.get("format") == "pmlopt-mechanism", "only a plain matrix is proved by this script")
    result = keys({"solver_options": {}, **keys(file, FILE, "the file")["metadata"]}, RESULT, "the result")
    record, kind = result["certificate"], result["certificate"].get("kind")
    must("privacy" in record, f"results of the kind {kind!r:.40} are not proved here")
    keys(record, f"{SHARED} {OWN[kind]}" if kind in OWN else " ".join(record), "the certificate")
    must((whole(file["version"]), record["mechanism"], record["prior"]) == (VERSION, "mechanism", "prior"),
         "it is of another version, or matrix and prior are not the file's")
    names, unnamed = (labels(file["inputs"]), labels(file["outputs"])), file["unnamed"]
    must(unnamed in ([], ["inputs"], ["outputs"], ["inputs", "outputs"]), "the sides without labels")
    must(all(list(map(whole, file[side])) == [*range(len(file[side]))] for side in unnamed), "their labels")
    told(result, record)
    matrix, p = table(file["matrix"], *map(len, names)), law(result["prior"], "the prior")
    need(len(p) == len(names[0]) and min(p) > 0, "the prior has every letter")
    asked = StatedRequirement(record["privacy"], p, result["prior"], file["inputs"])
    level, value, form = number(result["level"]), number(record["value"]), result["closed_form"]
    levels(asked, level, matrix, p, names)
    most = " and ".join(f"{float(v)}" for v in asked.limits) + f" nats about the data for {asked.priors}"
    what = f"proved: the {len(p)} x {len(names[1])} matrix keeps {asked.name} of {most}"
    if kind == "compliance" and (record["bound"], result["bound"], result["gap"]) == ("inf", None, None):
        need(number(result["value"]) == value and abs(value - level) <= NEAR * max(1, level), "the value")
        return 0, what
    if kind not in OWN:
        return 3, f"{what}; not proved: value and bound of a result of the kind {kind!r:.40}"
    need(all(number(record[k]) == number(result[k]) for k in ("value", "bound")), "the result is its proof's")
    found = (linear if kind == "linear" else least_leakage)(record, asked, matrix, p)
    gap = (number(record["bound"]) - value) * (1 if record.get("maximised") else -1)
    need(number(result["gap"]) == Q(float(gap)), "the gap")
    off = form and value - number(form["value"]) - number(form["difference"])
    need(form is None or abs(off) <= NEAR * max(1, abs(value)), "the closed form")
    return 0, f"{what}; {found}"

def once(pairs):
    must(len(dict(pairs)) == len(pairs), "a key stands there twice")
    return dict(pairs)

def main(path):
    """Check a file, and say what was found; the exit code."""
    try:
        must(len(content := Path(path).read_bytes()) <= LARGEST, "the file is too large")
        code, found = check(json.loads(content.decode(), object_pairs_hook=once, parse_constant=number))
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
