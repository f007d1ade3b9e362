"""The plain notation of formulas in docstrings and pages, as LaTeX.

Formulas are written so that they can be read in a terminal: `P[x,y] <= e^eps q[y]`, `sum_y max_x P[x,y]`,
`<p, v> - radius/2 (max v - min v)`. `latex` sets them: brackets behind a letter are indices, greek letters
have their names, `<a, b>` is an inner product, and a name of several letters is a word.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

GREEK = {
    "alpha", "beta", "gamma", "delta", "zeta", "eta", "theta", "kappa", "lambda", "mu", "nu", "xi", "pi",
    "rho", "sigma", "tau", "phi", "chi", "psi", "omega",
}  # fmt: skip
NAMED = {
    "eps": r"\varepsilon", "epsilon": r"\varepsilon", "lam": r"\lambda", "Lam": r"\Lambda",
    "grad": r"\nabla", "inf": r"\infty", "infinity": r"\infty", "in": r"\in", "and": r"\text{ and }",
    "or": r"\text{ or }", "union": r"\cup",
}  # fmt: skip
FUNCTIONS = {
    "log": r"\log",
    "exp": r"\exp",
    "min": r"\min",
    "max": r"\max",
    "sup": r"\sup",
    "det": r"\det",
}
BIG = {"sum": r"\sum", "prod": r"\prod"}
UPRIGHT = {"tr", "diag", "CVaR", "argmax", "argmin", "Var", "softplus", "median", "rank", "sqrt"}
RELATIONS = {
    "<=": r"\le ", ">=": r"\ge ", "!=": r"\ne ", "==": "=", "->": r"\to ", "+-": r"\pm ", "...": r"\dots ",
    "..": r"\dots ", "||": r"\Vert ", "*": r"\ast ", "~": r"\propto ", "%": r"\%", "#": r"\#", "&": r"\,\&\,",
}  # fmt: skip
TOKEN = re.compile(
    r"(?P<gap>  +|\n)|(?P<space> )|(?P<number>\d+(?:,\d{3})+|\d+(?:\.\d+)?(?:e-?\d+)?)"
    r"|(?P<word>[A-Za-z]+\d*)|(?P<prime>')"
    r"|(?P<relation><=|>=|!=|==|->|\+-|\.\.\.|\.\.|\|\||[*~%#&])|(?P<other>.)"
)
CLOSING = {"(": ")", "[": "]", "{": "}"}
SEPARATING = {" ", r"\,", "+", "-", ",", ";", "=", "<", ">", r"\mid ", r"\sum", r"\quad "}
"""What ends a factor that is divided."""
OPERATORS = {*BIG, *FUNCTIONS}
"""With an index they take all factors behind them: `a / sum_z p(z) q(z)` is a over the sum of products."""
ENDING = {"for", "with", "if", "iff", "where", "over", "subject"}
"""Words that end what an operator takes, next to signs, relations, commas and closing brackets."""


IS_FORMULA = re.compile(
    r" <= | >= | = | < | > | ~ | - | \+ | / |\^|<[\w' ]+, |\bsum_|\bmax_|\bmin_|\blog |\bI\(|\bH\(|\bE "
    r"|[(\w] \| \w|\b\w\|\w"
)
"""What a formula has in plain notation."""

IS_CODE = re.compile(
    r"==|@|\"|--|&|::|\.\w+\(|\bnp\.|\w=\S|^\w+ = \[|\*\*|\bfor \w+ in\b|\blambda \w+:|\bimport\b"
    r"|\b(?!min_|max_|sum_|log_)[a-z]{2,}_[a-z]{3,}|[a-z]\.[a-z]|\[\d*:|:\d*\]|^\W+$|^pip |^python |^pmlopt "
    r"|->|\$|\\|\*\.|\w/\w+\.|//|\bNone\b|\bTrue\b|\bnot \w|^'|<\w+>|\b[A-Z][a-z]+[A-Z]\w*|^- |\(shape|\bif\b"
    r"|%|^[A-Z]{2,} [A-Z]+"
)
"""What code has and a formula has not."""

LETTER = rf"(?:[A-Za-z]|eps|epsilon|lam|{'|'.join(sorted(GREEK))})"
INDEX = r"(?:_\w\b|_\{[\w, +-]+\}|\[[a-z](?:, ?[a-z])?\])"
INDEXED = re.compile(rf"{LETTER}'?{INDEX}+'?(?:\({LETTER}(?:, ?{LETTER})*\))?")
"""A letter with an index: `q_N`, `P[x,y]`, `eps_c(delta)`."""


def is_formula(code: str) -> bool:
    """Whether code in a line is a formula in plain notation."""
    if re.fullmatch(r"[A-Za-z0-9]+(?:_[A-Za-z0-9]+){2,}", code):  # a name: no index has an index
        return False
    return bool(INDEXED.fullmatch(code) or IS_FORMULA.search(code)) and not IS_CODE.search(code)


_END = r"(?![A-Za-z0-9])"
_INDEX = r"(?:_(?:\{[^}]*\}|\([^)]*\)|\w+))?'?(?:\[[a-z0-9', +-]*\])?"
_POWER = r"(?:\^(?:-?\w+|\([^)]*\)))?"
_NAME = (
    rf"(?:{'|'.join(sorted(GREEK | {'eps', 'epsilon', 'lam'}, key=len, reverse=True))}|[A-Za-z])"
)
_WORD = r"(?:log|exp|sqrt|tr|det|(?:max|min|sum)(?:_\{[^}]*\}|_\w+)?)"
_NUMBER = rf"\d+(?:,\d{{3}})*(?:\.\d+)?(?:e-?\d+)?{_END}"
_ATOM = rf"(?:{_WORD}{_END}|{_NAME}(?:(?=[_'\[^(])|{_END}){_INDEX}|{_NUMBER}){_POWER}"
_ROUND = r"\((?:[^()\n|]|\([^()\n]*\))*\)"
_FACTOR = rf"(?:{_ATOM}(?:{_ROUND})?|{_ROUND}(?:\^[\w+]+)?|<[^<>\n|]+, [^<>\n|]+>|\|[\w ]+\|)"
_SIDE = rf"{_FACTOR}(?:(?: [+*/-] | (?![aAI]\b(?! [-+*/<>=]))|/){_FACTOR})*"
IN_PROSE = rf"(?<![\w`.$^,\x02\x03-])-?{_SIDE}(?: (?:<=|>=|=|<|>|!=) -?{_SIDE})+(?![\w(\x02])"
"""A relation between formulas in a sentence: `l(y) = log(max_x P[x,y] / q[y])` without its code style."""


_SCRIPT = rf"_(?:{_NAME}|\d+|max|min|\{{[^{{}}\n]*\}})(?![A-Za-z0-9_])"
_EXPONENT = (
    rf"-?(?:{_NAME}|lower|upper|level|\d+(?:\.\d+)?)(?![A-Za-z0-9_])|\([^()\n]*\)|\{{[^{{}}\n]*\}}"
)
_TERM = rf"(?:{_NAME}'?{_SCRIPT}'?(?:\^(?:{_EXPONENT}))?|(?:{_NAME}|\d+)\^(?:{_EXPONENT}))"
_CALL = r"(?:[A-Za-z]|log|exp|min|max)\((?=[^()\n]*[_^])[^()\n|]*\)"
_PLAIN = rf"{_NAME}(?:{_SCRIPT}|(?![A-Za-z0-9_]))"
_TUPLE = rf"\((?=[^()\n]*_){_PLAIN}(?:, {_PLAIN})+\)"
TERM_IN_PROSE = rf"(?<![\w`.$^\\/@\x02\x03])-?(?:{_CALL}|{_TUPLE}|{_TERM})(?![\w`/@\x02])"
"""A letter with an index or a power in a sentence, alone or in a function of it: `I(X_i; Y)`, `e^-eps`."""


class NotationError(ValueError):
    """A formula whose brackets do not match."""


@dataclass(frozen=True)
class Token:
    """A token: its kind, as the group of `TOKEN`, and its text."""

    kind: str
    text: str


class Formula:
    """A formula that is read from the left; `display` stacks fractions and lets brackets grow."""

    def __init__(self, text: str, display: bool) -> None:
        found = TOKEN.finditer(text.strip())
        self.tokens = [Token(str(match.lastgroup), match[0]) for match in found]
        self.place = 0
        self.display = display

    def peek(self, ahead: int = 0) -> str:
        """The text of a token that comes, "" past the end."""
        place = self.place + ahead
        return self.tokens[place].text if 0 <= place < len(self.tokens) else ""

    def run(self, end: str = "") -> str:
        """All up to the bracket that closes, which is taken too."""
        parts: list[str] = []
        while self.place < len(self.tokens):
            if end and self.peek() == end and not (end == ">" and self.peek(-1) == " "):
                self.place += 1
                return "".join(parts)
            self._next(parts)
        if end:
            raise NotationError(f"no {end}")
        return "".join(parts)

    def _next(self, parts: list[str]) -> None:
        token = self.tokens[self.place]
        self.place += 1
        if token.kind == "gap":
            parts.append(r"\quad ")
        elif token.kind == "space":
            parts.append(self._product(parts))
        elif token.kind == "relation":
            parts.append(RELATIONS[token.text])
        elif token.text == "/" and parts:
            self._quotient(parts)
        elif token.text == "^" and parts:
            parts.append("^" + self._script(raised=True))
        elif token.text == "|":
            parts.append(r"\mid " if parts and self._is_bar() else "|")
        elif token.text == "<":
            parts.append(self._angle())
        else:
            parts.append(self._atom(token))

    def _product(self, parts: list[str]) -> str:
        """A space: thin between two factors, none beside an operator."""
        before = parts[-1] if parts else ""
        after = self.peek()
        if before in RELATIONS.values() or after in RELATIONS or before == r"\mid ":
            return " "
        factor = re.match(r"[\w\[({<|]", after) and not (after in "|<" and self.peek(1) == " ")
        return r"\," if factor and re.search(r"[\w)\]}'>|]$", before.strip()) else " "

    def _is_bar(self) -> bool:
        """Whether the bar just read is that of a condition: `P(y | x)`, `P(z|x)`; not that of `|x - y|`."""
        before = self.tokens[self.place - 2].text if self.place > 1 else ""
        spaced = before == " " and self.peek() == " "
        tight = re.match(r"\w|\]|\)", before) and re.match(r"\w", self.peek()) and self._inside("|")
        return bool(spaced or tight)

    def _inside(self, bar: str) -> bool:
        """Whether a bar is the only one of its bracket."""
        depth, first = 0, self.place - 2
        while first >= 0:
            depth += {")": 1, "(": -1}.get(self.tokens[first].text, 0)
            if depth < 0:
                break
            first -= 1
        depth, last = 0, self.place
        while last < len(self.tokens):
            depth += {"(": 1, ")": -1}.get(self.tokens[last].text, 0)
            if depth < 0:
                break
            last += 1
        within = [token.text for token in self.tokens[max(first, 0) : last]]
        return within.count(bar) == 1 and first >= 0

    def _angle(self) -> str:
        """`<a, b>` as an inner product, else less than."""
        start = self.place
        if self.peek() not in ("", " "):
            try:
                inner = self.run(">")
            except NotationError:
                inner = ""
            if "," in inner:
                return rf"\langle {inner}\rangle "
            self.place = start
        return "<"

    def _atom(self, token: Token) -> str:
        if token.text == "{" and token.kind == "other":
            return rf"\{{{self.run('}')}\}}"
        if token.text in CLOSING:
            inner = self.run(CLOSING[token.text])
            if not self.display:
                return f"{token.text}{inner}{CLOSING[token.text]}"
            return rf"\left{token.text}{inner}\right{CLOSING[token.text]}"
        if token.text in CLOSING.values():
            raise NotationError(f"{token.text} closes nothing")
        if token.kind == "prime":
            return "'"
        if token.kind == "number":
            return decimal(token.text)
        if token.kind != "word":
            return token.text
        return self._root() if token.text == "sqrt" else self._scripted(token.text)

    def _root(self) -> str:
        """The root of a bracket, or of the factor behind a space: `sqrt(a + b)`, `sqrt 2`."""
        if self.peek() == "(":
            self.place += 1
            return rf"\sqrt{{{self.run(')')}}}"
        if self.peek() == " " and re.fullmatch(r"\w+", self.peek(1)):
            self.place += 1
            factor: list[str] = []
            self._next(factor)
            return rf"\sqrt{{{''.join(factor)}}}"
        return self._scripted("sqrt")

    def _scripted(self, word: str) -> str:
        """A name with its primes and indices: `q'[y]`, `x_i`, `max_x`, `sum_{x,y}`."""
        name = named(word)
        indexed = "_" in name
        while self.peek() == "'":
            self.place += 1
            name += "'"
        if self.peek() == "_" and not indexed:
            self.place += 1
            name += "_" + self._script()
            indexed = True
        if self.peek() == "[" and word not in FUNCTIONS and word not in BIG and word != "E":
            self.place += 1
            inner = self.run("]")
            name = rf"{name}[{inner}]" if indexed else f"{name}_{{{inner}}}"
        if word in FUNCTIONS and self.peek() == "(":
            name += " "
        return name

    def _script(self, *, raised: bool = False) -> str:
        """What is raised or lowered: one atom, its brackets left out."""
        sign = ""
        if self.peek() == "-":
            self.place += 1
            sign = "-"
        if self.place >= len(self.tokens):
            raise NotationError("nothing to raise")
        token = self.tokens[self.place]
        self.place += 1
        if token.text in ("(", "{"):
            return f"{{{sign}{Formula.run(self, CLOSING[token.text])}}}"
        if token.text == "|":
            inner = self.run("|")
            return f"{{{sign}|{inner}|}}"
        if token.kind == "word" and len(token.text) > 1 and named(token.text).startswith(r"\text"):
            letters = token.text if len(token.text) <= 2 and token.text.islower() else None
            text = letters or named(token.text)
        elif token.kind == "word":
            text = (
                self._scripted(token.text) if raised and self.peek() == "[" else named(token.text)
            )
            if self.peek() == "_":
                self.place += 1
                text += "_" + self._script()
        else:
            text = token.text
        if sign and self.peek() == "'":
            self.place += 1
            text += "'"
        return f"{{{sign}{text}}}"

    def _takes_more(self) -> bool:
        """Whether the divisor begins with an operator on all that follows: `sum_z`, not `max(a, b)`."""
        ahead = 1 if self.peek() == " " else 0
        return self.peek(ahead) in OPERATORS and self.peek(ahead + 1) == "_"

    def _term(self) -> str:
        """All factors up to the next sign, relation, comma or closing bracket."""
        if self.peek() == " ":
            self.place += 1
        parts: list[str] = []
        while self.place < len(self.tokens) and not self._is_end():
            self._next(parts)
        return "".join(parts)

    def _is_end(self) -> bool:
        token = self.tokens[self.place]
        follows = self.peek(1) if token.kind == "space" else token.text
        if token.kind == "space" and follows in ("+", "-", *ENDING):
            return follows in ENDING or self.peek(2) == " "
        relation = follows in RELATIONS and follows not in ("...", "||", "*")
        spaced = follows in ("=", "<") and token.kind == "space" and self.peek(2) == " "
        return token.kind == "gap" or relation or spaced or follows in (*",;)]}>", "~")

    def _quotient(self, parts: list[str]) -> None:
        """A fraction of the factor before and the one behind; in a line of text a slash."""
        spaced = bool(parts) and parts[-1] == " "
        stacked = self.display and spaced and len(parts) > 1
        divisor = self._term() if self._takes_more() else ""
        if not stacked:
            left, right = (r"\left(", r"\right)") if self.display else ("(", ")")
            parts.append(f"/{' ' * spaced}{left}{divisor}{right}" if divisor else "/")
            return
        parts.pop()
        numerator = ""
        while parts and parts[-1] not in SEPARATING and not parts[-1].startswith("\\quad"):
            numerator = parts.pop() + numerator
        if divisor:
            parts.append(rf"\frac{{{bare(numerator)}}}{{{divisor}}}")
            return
        if self.peek() == " ":
            self.place += 1
        following: list[str] = []
        if self.peek() in OPERATORS and self.peek(1) == " ":  # `min p`: one factor
            self._next(following)
            self._next(following)
        while self.place < len(self.tokens) and self.peek() not in (
            " ",
            ",",
            ";",
            ")",
            "]",
            "}",
            "\n",
        ):
            if self.tokens[self.place].kind in ("gap", "relation"):
                break
            self._next(following)
        parts.append(rf"\frac{{{bare(numerator)}}}{{{bare(''.join(following))}}}")


def decimal(text: str) -> str:
    """A number as LaTeX: `1e-6` as a power of ten, commas without a space."""
    digits, exponent, power = text.replace(",", "{,}").partition("e")
    if not exponent:
        return digits
    return f"10^{{{power}}}" if digits == "1" else rf"{digits}\cdot 10^{{{power}}}"


def bare(part: str) -> str:
    """A part without the brackets around it."""
    found = re.fullmatch(r"\\left\((.*)\\right\)", part)
    return found[1] if found and r"\right)" not in found[1] else part


def named(word: str) -> str:
    """A name as LaTeX: a letter, a greek letter, a function, or a word."""
    if word in NAMED:
        return NAMED[word] + " "
    if word in GREEK:
        return f"\\{word} "
    if word in FUNCTIONS or word in BIG:
        return (FUNCTIONS | BIG)[word]
    if word in UPRIGHT:
        return rf"\operatorname{{{word}}}"
    if len(word) == 1:
        return word
    lettered = re.fullmatch(r"([A-Za-z]|[a-z]+)(\d+)", word)
    if lettered and (len(lettered[1]) == 1 or lettered[1] in GREEK):
        return f"{named(lettered[1]).strip()}_{{{lettered[2]}}}"
    if word in ("xy", "ay", "at", "xx"):
        return word
    return rf"\text{{{word}}}"


def latex(text: str, display: bool = False) -> str:
    r"""LaTeX of a formula in plain notation.

    Args:
        text: the formula, one line of it.
        display: for a line of its own, with fractions stacked.

    Raises:
        NotationError: brackets do not match.

    Examples:
        >>> print(latex("P[x,y] <= 2 q[y]"))
        P_{x,y} \le  2\,q_{y}
        >>> print(latex("a / (b + 1)", display=True))
        \frac{a}{b + 1}
        >>> print(latex("a / sum_z p(z) q(z) + 1", display=True))
        \frac{a}{\sum_{z}\,p\left(z\right)\,q\left(z\right)} + 1
    """
    joined = Formula(text, display).run()
    words = re.compile(r"(\\text\{[^{}]*\})(?:\\,| )+(?=\\text\{)")  # "for each" is one text
    joined = words.sub(lambda found: found[1][:-1] + "~}", joined)
    return joined.replace(r"~}\text{", "~").replace("~", " ")
