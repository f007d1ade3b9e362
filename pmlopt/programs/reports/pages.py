"""A report as a self-contained HTML page, and as Markdown."""

from __future__ import annotations

import html
import os
from collections.abc import Iterable, Sequence

from pmlopt.core import files
from pmlopt.core.arrays import shown
from pmlopt.core.display import matrix_html
from pmlopt.errors import FileFormatError
from pmlopt.measures.posterior import MOST_TOLD
from pmlopt.programs.certificate import Certificate, Verdict
from pmlopt.programs.reports.facts import Facts, facts_of

ROW, LEFT, WIDTH, RIGHT = 26, 150, 560, 84
"""Heights and widths in pixels: of a bar with its space, of the names, of the picture, of the numbers."""

LONGEST_NAME = 20


def bars_svg(
    title: str, rows: Sequence[tuple[str, float]], limit: float | None = None, mark: str = ""
) -> str:
    """Horizontal bars with their numbers, and a line at a limit.

    Args:
        title: what it shows, for readers that do not see it.
        rows: names and finite numbers of at least 0.
        limit: where the line is.
        mark: the name of the row that stands out.

    Examples:
        >>> picture = bars_svg("two", [("a", 1.0), ("b", 0.5)], 0.75)
        >>> picture.count("<rect"), picture.count("<line")
        (2, 1)
    """
    largest = (
        max([abs(value) for _, value in rows] + ([limit] if limit is not None else []), default=0.0) or 1.0
    )
    scale = (WIDTH - LEFT - RIGHT) / largest
    height = ROW * len(rows) + (24 if limit is not None else 6)
    parts = []
    if limit is not None:
        x, bottom = LEFT + limit * scale, ROW * len(rows) + 4
        parts.append(f'<line x1="{x:.1f}" y1="0" x2="{x:.1f}" y2="{bottom}"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">limit {limit:.4g}</text>')
    for place, (name, value) in enumerate(rows):
        y = place * ROW + 4
        kind = "bar mark" if name == mark else "bar"
        length = max(1.0, abs(value) * scale)
        text = name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
        parts += [
            f'<text x="{LEFT - 8}" y="{y + 14}" text-anchor="end">{html.escape(shown(text))}'
            f"<title>{html.escape(shown(name))}</title></text>",
            f'<rect class="{kind}" x="{LEFT}" y="{y}" width="{length:.1f}" height="18" rx="2"/>',
            f'<text x="{LEFT + length + 6:.1f}" y="{y + 14}">{value:.4g}</text>',
        ]
    label = html.escape(title)
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{label}">'
        f"<title>{label}</title>{''.join(parts)}</svg>"
    )


TOLD = ("outcome", "probability", "letter", "before", "after", "leakage")
"""The columns of `OutcomeTells.row`."""

MOST_OUTCOMES = 20
"""Outcomes that are listed; the rest leak less, and are counted."""

VERDICTS = {
    True: "all of it, and it holds",
    None: "what can be checked from the file, and that holds; a part cannot",
}

STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --paper: #fff; --soft: #5b6675; --line: #d5dae1;
  --bar: #7a99c9; --mark: #0072b2; --limit: #c2410c; --good: #1a7f4b; --bad: #c0262d; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ee; --paper: #14181f; --soft: #9aa5b5;
  --line: #333c49; --bar: #48628c; --mark: #4aa3df; --limit: #fb923c; --good: #4cc38a; --bad: #ff6b6b; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 46rem; padding: 1.25rem 1rem 4rem; background: var(--paper);
  color: var(--ink); font: 16px/1.55 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: .5rem 0; }
h2 { font-size: 1.1rem; margin: 2.2rem 0 .5rem; border-top: 1px solid var(--line); padding-top: 1.1rem; }
.promise { font-size: 1.15rem; border-left: 4px solid var(--mark); padding: .2rem 0 .2rem .9rem; }
.soft { color: var(--soft); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
th, td { text-align: left; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }
.facts td:first-child, .parts td:nth-child(-n+2), .parts th { white-space: nowrap; }
.yes { color: var(--good); } .no { color: var(--bad); font-weight: 600; }
.warn { border: 1px solid var(--limit); border-radius: 6px; padding: .5rem .8rem; }
svg { width: 100%; height: auto; max-width: 560px; font-size: 13px; }
svg text { fill: currentColor; paint-order: stroke; stroke: var(--paper); stroke-width: 4px; }
.bar { fill: var(--bar); } .mark { fill: var(--mark); }
svg line { stroke: var(--limit); stroke-width: 2; stroke-dasharray: 5 4; }
code, pre { font: .88rem/1.5 ui-monospace, monospace; } pre { overflow-x: auto; padding: .7rem .9rem;
  border: 1px solid var(--line); border-radius: 6px; }
"""


def page_html(facts: Facts, name: str) -> str:
    """The report of a file as one page: light and dark, for a phone too, and nothing from the network."""
    verdict, told = VERDICTS[facts.verdict.holds], text_html(name)
    body = [
        f"<p class='soft'>{told}, a result of the kind {text_html(facts.kind)}</p>",
        "<h1>What this mechanism promises</h1>",
        f"<p class='promise'>{text_html(facts.promise)}</p>",
        _list(facts.meanings),
        *(f"<p class='warn'><b>Warning:</b> {text_html(line)}</p>" for line in facts.warnings),
        rows_html([("about", facts.about), ("for whom", facts.scope), ("checked", verdict)]),
        "<h2>What is not promised</h2>",
        _list(facts.not_promised),
        *_outcomes_html(facts),
        *_utility_html(facts),
        "<h2>How it was checked</h2>",
        _verdict_html(facts),
        "<h2>Check it yourself</h2>",
        f"<pre>pmlopt verify {told}\npython -m pmlopt.verification.verifier {told}</pre>",
        "<p class='soft'>The second is a script that needs Python alone, and runs where no pmlopt is "
        "installed once it is copied there. It takes every number as the rational that it is. Both say what "
        "they do not check.</p>",
        "<h2>The mechanism</h2>",
        "<div class='wide'>",
        matrix_html(
            "Probability of each output (columns) for each input (rows)",
            facts.mechanism.matrix, facts.mechanism.inputs, facts.mechanism.outputs,
        ),
        "</div>",
        *(["<h2>Sources</h2>", _list(facts.sources)] if facts.sources else []),
    ]  # fmt: skip
    return whole_page(f"{name}: what it promises", body)


def whole_page(title: str, body: Iterable[str]) -> str:
    """A self-contained page in HTML, of parts that are HTML already."""
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{text_html(title)}</title><style>{STYLE}</style></head>"
        f"<body>{''.join(body)}</body></html>\n"
    )


def page_markdown(facts: Facts, name: str) -> str:
    """The report of a file as Markdown, with tables in place of pictures."""
    lines = ["# What this mechanism promises", "", f"`{shown(name)}`, a result of the kind {facts.kind}.", ""]
    lines += [f"> {_plain(facts.promise)}", "", *(f"- {_plain(line)}" for line in facts.meanings), ""]
    lines += [f"**Warning:** {_plain(line)}\n" for line in facts.warnings]
    lines += [f"About {_plain(facts.about)}. Holds {_plain(facts.scope)}.", "", "## What is not promised", ""]
    lines += [f"- {line}" for line in facts.not_promised]
    if facts.outcomes:
        lines += ["", "## What each outcome tells", ""]
        lines += _markdown_table(TOLD, [one.row for one in facts.outcomes[:MOST_OUTCOMES]])
    if facts.utility is not None:
        values = [(name, f"{value:.6g}") for name, value in facts.utility.rows]
        lines += ["", f"## What it is worth: {facts.utility.what}", ""]
        lines += _markdown_table(("", facts.utility.what), values)
    parts = [(p.name, p.verdict, p.arithmetic, p.detail) for p in facts.verdict.parts]
    lines += ["", "## How it was checked", ""]
    lines += _markdown_table(("part", "verdict", "decided in", "found"), parts)
    lines += [
        "",
        "Check it with `pmlopt verify`, or by the script `python -m pmlopt.verification.verifier`, which",
    ]
    lines += ["needs Python alone and may be copied to where no pmlopt is installed."]
    lines += ["", *(f"- {source}" for source in facts.sources)]
    return "\n".join(lines).rstrip() + "\n"


def _outcomes_html(facts: Facts) -> list[str]:
    if not facts.outcomes:
        return []
    told = facts.outcomes[:MOST_OUTCOMES]
    rows = [(str(one.output), one.leakage) for one in told]
    left = len(facts.outcomes) - len(rows)
    more = [f"<p class='soft'>and {left} more, which tell less</p>"] if left else []
    picture = bars_svg("Leakage of each outcome in nats", rows, facts.limit)
    note = "<p class='soft'>Under the prior of the file; the promise may be for more priors.</p>"
    table = rows_html([one.row for one in told[:MOST_TOLD]], TOLD)
    return [
        "<h2>What each outcome tells, in nats</h2>",
        picture,
        *more,
        f"<div class='wide'>{table}</div>",
        note,
    ]


def _utility_html(facts: Facts) -> list[str]:
    if facts.utility is None:
        return []
    better = "more is better" if facts.utility.more_is_better else "less is better"
    title = f"What it is worth: {facts.utility.what} ({better})"
    rows = [(name.replace(" at the same limits", ""), value) for name, value in facts.utility.rows]
    note = "Randomized response keeps the same limits with as little noise as it can."
    return [
        f"<h2>{text_html(title)}</h2>",
        bars_svg(title, rows, mark="this mechanism"),
        f"<p class='soft'>{note}</p>",
    ]


def _verdict_html(facts: Facts) -> str:
    rows = "".join(
        f"<tr><td>{text_html(p.name)}</td><td class='{'yes' if p.holds else 'no'}'>{p.verdict}</td>"
        f"<td>{text_html(p.arithmetic)}</td><td>{text_html(p.detail)}</td></tr>"
        for p in facts.verdict.parts
    )
    head = "<tr><th>part</th><th>verdict</th><th>decided in</th><th>found</th></tr>"
    return f"<div class='wide'><table class='parts'>{head}{rows}</table></div>"


def rows_html(rows: Iterable[Sequence[str]], head: Sequence[str] = ()) -> str:
    """A table of texts as HTML: of facts and their names, or with a head."""
    body = "".join("<tr>" + "".join(f"<td>{text_html(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    names = "".join(f"<th>{text_html(cell)}</th>" for cell in head)
    return f"<table><tr>{names}</tr>{body}</table>" if head else f"<table class='facts'>{body}</table>"


def _list(lines: Iterable[str]) -> str:
    items = "".join(f"<li>{text_html(line)}</li>" for line in lines)
    return f"<ul>{items}</ul>" if items else ""


def _markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(_plain(cell) for cell in line) + " |" for line in lines]


def text_html(text: str) -> str:
    """A text of somebody else's as HTML."""
    return html.escape(shown(text))


def _plain(text: str) -> str:
    return shown(text).replace("|", r"\|").replace("<", "&lt;")


ENDINGS = (".html", ".md")


def write_page(
    certificate: Certificate, verdict: Verdict, path: str | os.PathLike[str], source: str = "mechanism.json"
) -> None:
    """Write what a result promises, about what and for whom, what it does not promise, and how to check it.

    The page is one file without scripts, and loads nothing; it follows the reader's light or dark mode.

    Args:
        certificate: what is claimed.
        verdict: its claims, checked.
        path: where to write: .html, or .md for Markdown.
        source: the name of the file in which the reader finds the result.

    Raises:
        FileFormatError: a claim is false (there is no report of a promise that does not hold), or the path
            has another ending or cannot be written.
    """
    ending = files.ending_of(path, ENDINGS)
    if verdict.failures:
        raise FileFormatError(
            f"{source}: there is no report of a result that is false: "
            + "; ".join(f"{claim.name}: {claim.detail}" for claim in verdict.failures)
        )
    facts = facts_of(certificate, verdict)
    page = page_html(facts, source) if ending == ".html" else page_markdown(facts, source)
    files.write_whole(path, page.encode())
