#!/usr/bin/env python3
"""Check a saved result of pmlopt (.json) in rational arithmetic: `python verifier.py FILE`.

This file stands alone: Python's standard library, no pmlopt, no solver, no floating point in a decision.
Every float is a rational number; e^x is enclosed by two. docs/certificate.md says what each number means.
Exit code 0: all that the file claims is true. 1: a claim is false. 2: no such file. 3: what was checked is
true, and a part (it says which) is not checked by this script: logarithms, eigenvalues, searches.
"""

import json
import sys
from decimal import Context, Decimal
from fractions import Fraction as Q
from pathlib import Path

PAIRS, OTHERS = "pml ldp lip metric g-leakage ratio-bound pufferfish", "maximal-leakage approximate-pml"
SETS = ("l1_ball", "box", "minimum_mass", "all_priors", "vertices")
DIGITS, NEAR = Context(prec=60), Q(1, 10**12)  # recorded levels are right to this much, or this share

class FalseClaimError(Exception):
    """The message says which claim is false."""

def need(condition, claim):
    if not condition:
        raise FalseClaimError(claim)

def power(x, up=False):
    """A rational just below e^x, or just above: 60 digits, widened by more than they can be off."""
    x = min(max(x, Q(-(10**5))), Q(10**5))
    near = Q(DIGITS.exp(DIGITS.divide(Decimal(x.numerator), Decimal(x.denominator))))
    return near * (1 + Q(1 if up else -1, 10**50)) if x else Q(1)

def dot(u, v):
    return sum((a * b for a, b in zip(u, v, strict=True)), Q(0))

def above(values, c):  # by how much
    return [max(Q(v) - c, Q(0)) for v in values]

def table(rows):
    return [[Q(v) for v in row] for row in rows]

def law(record):
    """The prior: its counts over their sum, or else its floats over theirs."""
    counts, floats = record["counts"], record["probabilities"]
    need(abs(sum(map(Q, floats)) - 1) < Q(2, 10**9) and min(floats) > 0, "the prior is a law")
    if counts is not None:
        same = [c / sum(counts) for c in counts] == floats and record["samples"] in (None, sum(counts))
        need(same, "the counts of the prior are its probabilities and its sample")
    return [Q(v) / sum(map(Q, counts or floats)) for v in counts or floats]

def joined(privacy, limits):
    """The parts of a conjunction with their limits; else itself."""
    if privacy["name"] != "all-of":
        return [(privacy, limits)]
    return [(part, {name: limits[name] for name in part["limits"]}) for part in privacy["parts"]]

def is_pairs(privacy):
    """Whether a requirement is a list of pairs."""
    return not any({p["name"], *p} & {*OTHERS.split(), *SETS} for p, _ in joined(privacy, privacy["limits"]))

def pairs(privacy, limits, p):
    """The pairs `<num, v> <= e^exponent <den, v>` of each column v; sides are {letter: coefficient}."""
    name, mean, letters, found, near = privacy["name"], dict(enumerate(p)), range(len(p)), [], 0
    at, epsilon = [{x: Q(1)} for x in letters], Q(next(iter(limits.values()), 0))
    if name == "all-of":
        return [pair for part, own in joined(privacy, limits) for pair in pairs(part, own, p)]
    if name == "lip":
        low, high = Q(limits["lip_lower"]), Q(limits["lip_upper"])
        return [(mean, at[x], low) for x in letters] + [(at[x], mean, high) for x in letters]
    if name == "ldp":
        return [(at[x], at[z], epsilon) for x in letters for z in letters if x != z]
    if name == "metric":
        return [(at[e[k]], at[e[1 - k]], epsilon * Q(e[2])) for k in (0, 1) for e in privacy["edges"]]
    if name == "g-leakage":
        rows = [[Q(g) * v for g, v in zip(row, p, strict=True)] for row in privacy["gain"] if any(row)]
        return [({x: v / max(map(sum, rows)) for x, v in enumerate(row)}, mean, epsilon) for row in rows]
    if name == "ratio-bound":
        num, den = ([dict(enumerate(r)) for r in table(privacy[s])] for s in ("numerators", "denominators"))
        need(all(min(side.values()) >= 0 for side in num + den), "the sides of a pair are not negative")
        each = [Q(e) + epsilon for e in privacy.get("epsilon", [0] * len(num))]
        return list(zip(num, den, each, strict=True))
    if "about" in privacy:
        for joint in privacy["about"]["weights"]:
            given = [{x: Q(v, sum(row)) for x, v in enumerate(row)} for row in joint]
            whole = {x: Q(sum(row[x] for row in joint), sum(map(sum, joint))) for x in letters}
            near += all(abs(v - p[x]) <= Q(1, 10**9) for x, v in whole.items())
            some = [(given[s], given[t]) for s, t in privacy.get("pairs", [])]
            some += [(b, a) for a, b in some] or [(row, whole) for row in given]
            found += [(a, b, epsilon) for a, b in some]
        return need(near, "a joint law has the prior") or found
    budgets = privacy.get("budgets", [0] * len(p))
    return [(at[x], mean, Q(budget) + epsilon) for x, budget in zip(letters, budgets, strict=True)]

def lower_probability(data):
    """The least probability `max(0, lower(A) - shift, total - upper(not A))` of letters over a set."""
    own = next(data[key] for key in SETS if key in data)
    if "l1_ball" in data:
        raw = [Q(v) for v in own.get("counts", own["center"])]
        same = "counts" not in own or [float(v / sum(raw)) for v in raw] == own["center"]
        need(same and abs(sum(map(Q, own["center"])) - 1) < Q(2, 10**9), "the centre is a law")
        return [v / sum(raw) for v in raw], Q(own["radius"]) / 2, None, Q(1)
    lower = [Q(v) for v in own.get("lower") or [own.get("mass", 0)] * own["size"]]
    upper = [Q(v) for v in own.get("upper", [1] * len(lower))]
    total = max(Q(1), sum(lower))
    if any(u < 1 - sum(lower) + v - NEAR for v, u in zip(lower, upper, strict=True)):
        return lower, Q(0), upper, min(total, sum(upper))
    return lower, Q(0), None, total  # the sum of one implies the upper ends

def least_mean(data, column):
    """The least mean of a column over a set of priors: a Choquet integral, or that of a vertex."""
    if "vertices" in data:
        need(all(abs(sum(q) - 1) < Q(2, 10**9) for q in table(data["vertices"])), "the vertices are laws")
        return min(dot(point, column) / sum(point) for point in table(data["vertices"]))
    lower, shift, upper, total = lower_probability(data)
    need(len(lower) == len(column), "the set of priors is on these letters")
    order, mean, before = sorted(range(len(column)), key=lambda x: -column[x]), Q(0), Q(0)
    for k, x in enumerate(order, start=1):
        rest = total - sum(upper[z] for z in order[k:]) if upper else Q(0)
        now = max(Q(0), sum(lower[z] for z in order[:k]) - shift, rest) if k < len(order) else total
        mean, before = mean + (now - before) * column[x], now
    return mean / total

def broken(privacy, limits, p, columns, names):
    """Where a requirement is broken, in words; empty where it holds."""
    for part, own in joined(privacy, limits):
        factor = power(Q(next(iter(own.values()), 0)))
        if part["name"] == "maximal-leakage" and factor < len(p) and sum(map(max, columns)) > factor:
            return "all outcomes together leak more"
        for x, letter in enumerate(names[0]) if part["name"] == "approximate-pml" else []:
            if sum(max(Q(0), c[x] - factor * dot(p, c)) for c in columns) > Q(part["delta"]):
                return f"the slack is exceeded for {letter!r}"
        for outcome, c in zip(names[1], columns, strict=True):
            if set(SETS) & set(part) and max(c) > factor * least_mean(part, c):
                return f"the outcome {outcome!r} tells too much of {names[0][c.index(max(c))]!r}"
            every = {**part, "edges": part.get("edges", []) + part.get("implied", [])}
            for num, den, e in pairs(every, own, p) if is_pairs(part) and max(c) else []:
                if sum(w * c[x] for x, w in num.items()) > power(e) * sum(w * c[x] for x, w in den.items()):
                    return f"the outcome {outcome!r} tells too much of {names[0][max(num, key=num.get)]!r}"
    return ""

def within(privacy, limits, p, gains, proof, most):
    """Whether each column v >= 0 that a requirement allows, of <p, v> = 1, has <p g, v> <= most for all g."""
    name, n, up = privacy["name"], range(len(p)), power(Q(next(iter(limits.values()), 0)), True)
    keep, own = 1 / up, bool(set(SETS) & set(privacy))
    if "vertices" not in privacy and own:
        lower, shift, upper, total = lower_probability(privacy)
        some = any(sum(lower) - v > shift or (upper and total > upper[x]) for x, v in enumerate(lower))
        name, own = (name if some else "ldp"), shift > 0 or lower != p  # all priors, or the prior alone
    if name == "ldp":  # such a v has its entries in [keep, 1], times a number
        return all(sum(w * (v - most) * (1 if v > most else keep) for w, v in zip(p, g, strict=True)) <= 0
                   for g in gains)
    if name in ("lip", "pml") and not own and not {"about", "budgets"} & set(privacy):  # v in [low, high]
        low = power(-Q(limits["lip_lower"])) if name == "lip" else Q(0)
        high = power(Q(limits["lip_upper"]), True) if name == "lip" else up
        return all(any(low * dot(p, g) + (1 - low) * c + (high - low) * dot(p, above(g, c)) <= most
                       for c in g) for g in gains)
    if name == "maximal-leakage":
        return min(up, Q(len(p))) * max(dot(p, above(g, Q(0))) for g in gains) <= most
    if not proof:
        return None
    if name == "approximate-pml":
        left = most - Q(privacy["delta"]) * sum(prices := above(proof["prices"], Q(0)))
        least = [max(v - m / w for v, m, w in zip(g, prices, p, strict=True)) for g in gains]
        return all(any(c + up * dot(p, above(g, c)) <= left for c in [low, *(v for v in g if v > low)])
                   for low, g in zip(least, gains, strict=True))
    if is_pairs(privacy):
        whole, steps = dict(enumerate(p)), []  # one letter beside the mean: v[x] <= <p, v> / p[x] anyway
        for a, b, e in pairs(privacy, limits, p):
            free = 1 / p[min(a)] if len(a) == 1 and b == whole else power(e, True)
            steps.append((a, b, min(power(e, True), free)))
        for y, g in enumerate(gains):
            prices = above((row[y] for row in proof["weights"]), Q(0))
            paid = [(w, *step) for w, step in zip(prices, steps, strict=True) if w]
            lift = [sum(w * (f * b.get(x, 0) - a.get(x, 0)) for w, a, b, f in paid) for x in n]
            if any(g[x] + lift[x] / p[x] > most for x in n):
                return False
        return True
    if name == "all-of":
        return within(*dict(enumerate(joined(privacy, limits)))[proof["part"]], p, gains, proof, most)
    costs = [[w * (v - most) for w, v in zip(p, g, strict=True)] for g in gains]
    thetas = zip(*(above(row, Q(0)) for row in proof["theta"]), strict=True)
    return all(max(a) <= 0 or (sum(a) <= 0 if up == 1 else max(pieces(privacy, a, list(t), keep)) <= 0)
               for a, t in zip(costs, thetas, strict=True))

def pieces(data, a, theta, keep):
    """`min_Q sum (a + theta Q)^+ - theta keep` over a set of priors Q is the largest of these."""
    if "vertices" in data:
        laws = [(t, [v / sum(q) for v in q]) for t, q in zip(theta, table(data["vertices"]), strict=True)]
        mixed = (v + sum(t * q[x] for t, q in laws) for x, v in enumerate(a))
        return [sum(above(mixed, 0)) - keep * sum(theta)]
    (t,), (lower, shift, upper, total) = theta, lower_probability(data)
    ends = [(lower, sum(lower) - shift), ([Q(0)] * len(a), Q(0)), *([(upper, total)] if upper else [])]
    free = [] if upper else [sum(a) + t * (1 - keep)]
    return free + [sum(above((v + t * w / total for v, w in zip(a, q, strict=True)), 0))
                   + t * ((rate - sum(q)) / total - keep) for q, rate in ends]

def levels(record, matrix, p, names):
    """The matrix is a mechanism within its limits, and its recorded levels are its levels."""
    privacy, columns = record["privacy"], [list(c) for c in zip(*matrix, strict=True)]
    need(all(sum(row) == 1 and min(row) >= 0 for row in matrix), "each row is a law, exactly")
    limits, parts = privacy["limits"], [part for part, _ in joined(privacy, privacy["limits"])]
    need(all(part["limits"].items() <= limits.items() for part in parts), "the limits of all parts")
    need(not broken(privacy, limits, p, [[Q(1)] * len(p)], (names[0], [None])), "a constant is within")
    need(not (fault := broken(privacy, limits, p, columns, names)), fault)
    need(record["verified_exactly"] is True and record["denominator"] == 2**53, "it is exact")
    told = {name: (Q(level), NEAR * max(1, abs(Q(level)))) for name, level in record["levels"].items()}
    up = {name: sum(pair) for name, pair in told.items()}
    need(not broken(privacy, up, p, columns, names), "the matrix has the recorded levels, not more")
    for name, (level, room) in told.items():
        less = broken(privacy, {**up, name: level - room}, p, columns, names)
        need(less or (level <= room and "above" not in name), "the matrix has the recorded levels, not less")

def linear(record, matrix, p):
    """Value and bound of an expected gain or loss; what is returned was left unchecked."""
    source, privacy, value = record["bound_from"], record["privacy"], Q(record["value"])
    rows, sign = table(record["utility"]["table"]), {"gain": 1, "loss": -1}[record["utility"]["kind"]]
    rounding = Q(1, 2**48) * (len(p) + len(rows[0]) + 8) * max(max(map(abs, row)) for row in rows)
    need(abs(value - sum(map(lambda w, r, g: w * dot(r, g), p, matrix, rows))) <= rounding, "the value")
    gains, most = [[sign * v for v in row] for row in rows], sign * Q(record["bound"] or 0) + rounding / 16
    for one in source["added"] or []:
        unit = min(Q(1), max(abs(Q(c)) for row in one["rows"] for line in row["coefficients"] for c in line))
        for row in one["rows"]:
            lines, offset = table(row["coefficients"]), Q(row["offset"])
            price = Q(row["multiplier"]) if one["equal"] else max(Q(row["multiplier"]), Q(0))
            over = sum(map(dot, lines, matrix)) + offset
            size = (len(p) * len(rows[0]) + 8) * (sum(abs(c) for line in lines for c in line) + abs(offset))
            room = min(Q(record["residuals"][one["name"]]), Q(1, 10**6)) * unit + Q(1, 2**48) * size
            need((abs(over) if one["equal"] else over) <= room, f"the constraint {one['name']!r} is kept")
            most += price * offset
            gains = [[v - price * c / w for v, c in zip(g, line, strict=True)]
                     for g, line, w in zip(gains, lines, p, strict=True)]
    if record["bound"] is record["gap"] is None:
        return []
    need(abs(Q(record["gap"]) - abs(Q(record["bound"]) - value)) <= rounding, "the gap is between both")
    if source["added"] is None:
        return ["the bound, under constraints that are not in the file"]
    rho = [Q(v) + sign * min(row) for v, row in zip(source["multipliers"], rows, strict=True)]
    left = [[g[y] - r for g, r in zip(gains, rho, strict=True)] for y in range(len(rows[0]))]
    proved = within(privacy, privacy["limits"], p, left, source["witness"], most - dot(p, rho))
    need(proved is not False, "the multipliers prove the bound")
    return [] if proved else ["a bound that rests on a closed form"]

def least_leakage(record, matrix, p):
    """A least level on allowed pairs: a column of mean one has what the multipliers ask, within e^level."""
    source, allowed, level = record["bound_from"], record["utility"]["allowed"], Q(record["value"])
    need(level == Q(record["privacy"]["limits"]["pml"]), "the value is the level that is claimed")
    need(abs(level - Q(record["levels"]["pml"])) <= NEAR * max(1, level), "the value is the matrix's level")
    need(abs(Q(record["gap"]) - level + Q(record["bound"])) <= Q(1, 10**15) * max(1, level), "the gap")
    need(all(allowed[x][y] for x, row in enumerate(matrix) for y, v in enumerate(row) if v), "the pairs")
    if "expected" in record["utility"] or set(SETS) & set(record["privacy"]):
        return ["a floor on the expected utility, or a bound over a set of priors"]
    rows, share = list(map(Q, source["multipliers"])), Q(0)
    for column in zip(*allowed, strict=True):
        some = [(r - dot(p, rows), w) for r, w, may in zip(rows, p, column, strict=True) if may]
        left = filled = Q(0)
        for worth, mass in sorted(some, reverse=True):  # the mass up to which the sum is at least 0
            part = mass if left + mass * worth >= 0 else -left / worth
            left, filled = left + part * worth, filled + part
            if part < mass:
                break
        share = max(share, filled)
    need(record["bound"] <= 0 or power(-Q(record["bound"])) >= share, "the multipliers prove the bound")
    return []

def check(file):
    """All claims of a file; what is returned was left unchecked."""
    result, record = file["metadata"], file["metadata"]["certificate"]
    kind, matrix, value = record["kind"], table(file["matrix"]), Q(result["value"])
    form = result["closed_form"] or {"value": value, "difference": 0}
    off = abs(value - Q(form["value"]) - Q(form["difference"])) / max(1, abs(value))
    same = all(record[name] == result[name] for name in ("value", "bound", "gap"))
    need(same and off <= NEAR, "what stands there twice, and the difference from the closed form")
    if kind not in ("linear", "least-leakage", "sub-convex", "estimation"):
        return [f"a result of the kind {kind!r}"]
    parts = [part for part, _ in joined(record["privacy"], record["privacy"]["limits"])]
    if any(part["name"] not in f"{PAIRS} {OTHERS}".split() or "joint_laws" in part for part in parts):
        return ["a requirement of this form"]
    need(file["inputs"] == record["prior"]["labels"] and result["level"] == max(record["levels"].values()),
         "letters and level stand there twice")
    levels(record, matrix, p := law(record["prior"]), (file["inputs"], file["outputs"]))
    parts = {"linear": linear, "least-leakage": least_leakage}.get(kind)
    return parts(record, matrix, p) if parts else [f"value and bound of the kind {kind!r}"]

def main(path):
    """Check a file, and say what was found; the exit code."""
    try:
        file = json.loads(Path(path).read_bytes())
        known = {"pmlopt-mechanism": 2, "pmlopt-orbit-mechanism": 1}
        need(known.get(file["format"]) == file["version"], "it is of version 2 of the format, or by orbits")
        left = ["a mechanism by orbits"] if "orbit" in file["format"] else check(file)
        code, found = (3, f"not checked by this script: {left[0]}") if left else (0, "true")
    except FalseClaimError as error:
        code, found = 1, f"FALSE: {error}"
    except (ValueError, KeyError, TypeError, IndexError, ArithmeticError, OSError) as error:
        code, found = 2, f"is not as the format says: {error!r}"
    sys.stdout.write(f"{path}: {found}\n")
    return code

if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
