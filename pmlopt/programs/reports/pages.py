"""The content of a report on a result, and its rendering as HTML or Markdown."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from pmlopt.core.descriptions import escape_control_characters
from pmlopt.core.display import format_matrix_html
from pmlopt.core.files import disk
from pmlopt.core.files.sealing import check_not_sealed
from pmlopt.core.lazy_imports import html
from pmlopt.core.light_dataclass import light_dataclass
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.errors import FileFormatError
from pmlopt.measures.estimable import rank_warnings
from pmlopt.measures.outcomes import (
    OUTCOME_COLUMNS,
    OutcomeSummary,
    list_outcome_warnings,
    select_table_outcomes,
    summarize_outcomes,
)
from pmlopt.model.privacy.requirement import Requirement
from pmlopt.programs.certificate import Certificate, DesignCertificate, ListedCertificate, Verdict
from pmlopt.programs.reports.baselines import compute_baselines

SOURCES = {
    "pml": "Saeidian, Cervia, Oechtering, Skoglund: Pointwise maximal leakage (2023)",
    "ldp": "Kasiviswanathan, Lee, Nissim, Raskhodnikova, Smith: What can we learn privately? (2011)",
    "maximal_leakage": "Issa, Wagner, Kamath: An operational approach to information leakage (2020)",
    "pufferfish": "Kifer, Machanavajjhala: Pufferfish (2014)",
    "metric": "Chatzikokolakis, Andres, Bordenabe, Palamidessi: Broadening the scope of DP (2013)",
}
"""Where the requirements come from."""

EXCLUDED_PROMISES = (
    "Several releases about one person: together they may leak more than the sum of their levels. Keep a "
    "ledger (pmlopt ledger).",
    "Other columns that are released unchanged, or that an adversary knows to depend on the released ones.",
    "Data that was looked at before the mechanism was fixed, unless the prior comes with a sample and a set.",
    "Whether the program that draws the outputs draws them by the matrix, from a good generator.",
)
"""What no report of one mechanism promises."""


EXACT_COUNTS = (
    "This has the exact shares of the people that the prior was counted in: two such pages, or proofs, on "
    "nearly the same people give away the values of those who differ, to somebody who knows all others. It "
    "is for those who may see the data."
)
"""What is stated of a page, or a proof, with the prior of a sample."""


def warn_of_sample(certificate: Certificate) -> tuple[str, ...]:
    """Return a warning where a certificate contains the exact counts of a sample."""
    from pmlopt.programs.declared_parts import count_sampled_people

    return () if count_sampled_people(certificate) is None else (EXACT_COUNTS,)


def list_warnings(
    prior: Prior, privacy: Requirement, outcomes: Sequence[OutcomeSummary]
) -> tuple[str, ...]:
    """List warnings: limits without effect, and outcomes that identify or exclude letters.

    Examples:
        >>> from pmlopt import PML
        >>> list_warnings(Prior([0.5, 0.5]), PML(3.0), [])[0][:43]
        'The limit binds nothing: releasing the data'
    """
    found = []
    if privacy.holds(prior, Mechanism(np.eye(prior.size), prior.labels)):
        found.append(
            "The limit binds nothing: releasing the data itself keeps it under this prior."
        )
    return (*found, *list_outcome_warnings(outcomes))


def _describe_secret(privacy: Requirement | None) -> str:
    """Describe the secret of a requirement in a phrase."""
    secret = getattr(privacy, "secret", None)
    if secret is not None:
        return f"{secret.name}, which is correlated with the data"
    return "what an adversary may learn of the data itself, and of whatever depends on it"


def _describe_scope(privacy: Requirement | None, prior: Prior | None) -> str:
    """Return a phrase on the priors for which a requirement holds."""
    parts = () if privacy is None else privacy.list_parts()
    words = "; ".join(part.scope for part in parts if part.scope)
    if words:
        return words
    if prior is None:
        return "as the promise states"
    sample = "" if prior.samples is None else ", from a sample"
    return f"under the prior of the file ({prior.size} letters{sample})"


BAR_ROW_HEIGHT, NAME_WIDTH, PICTURE_WIDTH, NUMBER_WIDTH = 26, 150, 560, 84
"""Heights and widths in pixels: of a bar with its space, of the names, of the picture, of the numbers."""

MAX_NAME_LENGTH = 20


def draw_bars_svg(
    title: str, rows: Sequence[tuple[str, float]], limit: float | None = None, mark: str = ""
) -> str:
    """Draw horizontal bars with their numbers as SVG, and a line at a limit.

    Args:
        title: what it shows, for readers that do not see it.
        rows: names and finite numbers of at least 0.
        limit: where the line is.
        mark: the name of the row to highlight.

    Examples:
        >>> picture = draw_bars_svg("two", [("a", 1.0), ("b", 0.5)], 0.75)
        >>> picture.count("<rect"), picture.count("<line")
        (2, 1)
    """
    largest = max([0.0 if limit is None else limit, *(abs(value) for _, value in rows)])
    scale = (PICTURE_WIDTH - NAME_WIDTH - NUMBER_WIDTH) / (largest or 1.0)
    height = BAR_ROW_HEIGHT * len(rows) + (24 if limit is not None else 6)
    parts = []
    if limit is not None:
        x = NAME_WIDTH + limit * scale
        bottom = BAR_ROW_HEIGHT * len(rows) + 4
        parts.append(f'<line x1="{x:.1f}" y1="0" x2="{x:.1f}" y2="{bottom}"/>')
        parts.append(
            f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">limit {limit:.4g}</text>'
        )
    for place, (name, value) in enumerate(rows):
        y = place * BAR_ROW_HEIGHT + 4
        kind = "bar mark" if name == mark else "bar"
        length = max(1.0, abs(value) * scale)
        text = name if len(name) <= MAX_NAME_LENGTH else name[: MAX_NAME_LENGTH - 1] + "…"
        parts += [
            f'<text x="{NAME_WIDTH - 8}" y="{y + 14}" '
            f'text-anchor="end">{html.escape(escape_control_characters(text))}'
            f"<title>{html.escape(escape_control_characters(name))}</title></text>",
            f'<rect class="{kind}" x="{NAME_WIDTH}" y="{y}" width="{length:.1f}" height="18" rx="2"/>',
            f'<text x="{NAME_WIDTH + length + 6:.1f}" y="{y + 14}">{value:.4g}</text>',
        ]
    label = html.escape(title)
    return (
        f'<svg viewBox="0 0 {PICTURE_WIDTH} {height}" role="img" aria-label="{label}">'
        f"<title>{label}</title>{''.join(parts)}</svg>"
    )


MAX_REPORTED_OUTCOMES = 20
"""Outcomes that are listed; the rest leak less, and are counted."""

VERDICT_TEXTS = {
    True: "all of it, and it holds",
    None: "what can be checked from the file, and that holds; a part cannot",
}


def read_style_sheet() -> str:
    """Return the style sheet of report pages, loaded on first use."""
    return Path(__file__).with_name("page.css").read_text("utf-8")


@light_dataclass(frozen=True)
class ReportSection:
    """A section of a report: heading, sentences, and optional picture or table, unescaped.

    Attributes:
        title: of the heading; "" goes on under the one before.
        lines: sentences, or what `kind` states.
        head, rows: of the table.
        kind: "text", a "list", the "promise", a "warning", "code", or "soft", small print.
        html: a picture, which only a page in HTML has.
    """

    title: str = ""
    lines: Sequence[str] = ()
    head: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    kind: str = "text"
    html: str = ""


def render_page(title: str, found: Iterable[ReportSection], ending: str) -> bytes:
    """Render sections as a self-contained page: HTML for ".html", or Markdown for ".md"."""
    return (_render_html if ending == ".html" else _render_markdown)(title, found).encode()


def build_sections(
    certificate: Certificate, verdict: Verdict, name: str
) -> Iterator[ReportSection]:
    """Build the sections of the report on a certificate and its checked claims."""
    design = certificate.level_certificate
    privacy = design.privacy if isinstance(design, ListedCertificate) else None
    limits = {} if privacy is None else privacy.limits
    prior = design.listed_prior
    mechanism = certificate.mechanism
    known = prior if prior is not None and prior.size == len(mechanism.inputs) else None
    outcomes = () if known is None else tuple(summarize_outcomes(known, mechanism))
    yield ReportSection("", [f"{name}, a result of the kind {certificate.kind}."], kind="soft")
    yield ReportSection("", [certificate.statement], kind="promise")
    yield ReportSection("", () if privacy is None else privacy.meanings, kind="list")
    yield from (ReportSection("", [line], kind="warning") for line in warn_of_sample(certificate))
    if known is not None and privacy is not None:
        yield from (
            ReportSection("", [line], kind="warning")
            for line in list_warnings(known, privacy, outcomes)
        )
    if isinstance(design, DesignCertificate):
        yield from (ReportSection("", [line], kind="warning") for line in rank_warnings(mechanism))
    about = [("about", _describe_secret(privacy)), ("for whom", _describe_scope(privacy, known))]
    yield ReportSection(rows=[*about, ("checked", VERDICT_TEXTS[verdict.holds])])
    yield ReportSection("What is not promised", EXCLUDED_PROMISES, kind="list")
    if outcomes:
        reported = outcomes[:MAX_REPORTED_OUTCOMES]
        limit = limits.get("pml", limits.get("lip_upper"))
        bars = [(str(one.output), one.leakage) for one in reported]
        picture = draw_bars_svg("Leakage of each outcome in nats", bars, limit)
        rows_told = [one.table_row for one in select_table_outcomes(outcomes)]
        yield ReportSection(
            "What each outcome reveals, in nats", (), OUTCOME_COLUMNS, rows_told, html=picture
        )
        left = len(outcomes) - len(reported)
        more = [f"{left} more outcomes, which reveal less, are not listed."] if left else []
        note = "This is under the prior of the file; the promise may be for more priors."
        yield ReportSection("", [*more, note], kind="soft")
    utility = compute_baselines(design) if isinstance(design, DesignCertificate) else None
    if utility is not None:
        title = f"What it is worth: {utility.utility_name}"
        better = "More is better." if utility.more_is_better else "Less is better."
        rows = [
            (one.replace(" at the same limits", ""), value) for one, value in utility.table_rows
        ]
        note = better
        if any(one == "randomized response" for one, _ in rows):
            note += " Randomized response keeps the same limits with as little noise as it can."
        picture = draw_bars_svg(title, rows, mark="this mechanism")
        shown = [(one, f"{value:.6g}") for one, value in rows]
        yield ReportSection(title, [note], ("", utility.utility_name), shown, html=picture)
    parts = [(p.name, p.verdict, p.arithmetic, p.detail) for p in verdict.parts]
    yield ReportSection("How it was checked", (), ("part", "verdict", "decided in", "found"), parts)
    from pmlopt.programs.reports.standalone import list_check_commands

    commands, note = list_check_commands(certificate, name)
    yield ReportSection("Check it yourself", commands, kind="code")
    yield ReportSection("", [note], kind="soft")
    title = "Probability of each output (columns) for each input (rows)"
    matrix = format_matrix_html(title, mechanism.matrix, mechanism.inputs, mechanism.output_names)
    yield ReportSection(
        "The mechanism", ["A row for each input, a column for each output."], html=matrix
    )
    names = {name.partition("_about_")[0] for name in limits}
    if sources := [source for kind, source in SOURCES.items() if kind in names]:
        yield ReportSection("Sources", sources, kind="list")


REPORT_TITLE = "What this mechanism promises"


def _render_html(title: str, found: Iterable[ReportSection]) -> str:
    """Render the sections of a report as an HTML page."""
    body = [f"<h1>{_escape_html(title)}</h1>"]
    tags = {"promise": "<p class='promise'>", "soft": "<p class='soft'>"}
    tags["warning"] = "<p class='warn'><b>Warning:</b> "
    for one in found:
        body += [f"<h2>{_escape_html(one.title)}</h2>"] if one.title else []
        lines = [_escape_html(line) for line in one.lines]
        if one.kind == "list":
            body.append(f"<ul>{''.join(f'<li>{line}</li>' for line in lines)}</ul>")
        elif one.kind == "code":
            body.append(f"<pre>{chr(10).join(lines)}</pre>")
        else:
            body += [f"{tags.get(one.kind, '<p>')}{line}</p>" for line in lines]
        body += [f"<div class='wide'>{one.html}</div>"] if one.html else []
        body += [f"<div class='wide'>{_render_table(one)}</div>"] if one.rows else []
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{_escape_html(title)}</title><style>{read_style_sheet()}</style></head>"
        f"<body>{''.join(body)}</body></html>\n"
    )


def _render_table(one: ReportSection) -> str:
    """Render a table with optional head as HTML; verdicts are coloured."""
    colours = {"holds": " class='yes'", "FAILS": " class='no'", "not checked": " class='no'"}
    rows = [
        "".join(f"<td{colours.get(cell, '')}>{_escape_html(cell)}</td>" for cell in row)
        for row in one.rows
    ]
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    if not one.head:
        return f"<table class='facts'>{body}</table>"
    return f"<table><tr>{''.join(f'<th>{_escape_html(cell)}</th>' for cell in one.head)}</tr>{body}</table>"


def _render_markdown(title: str, found: Iterable[ReportSection]) -> str:
    """Render the sections of a report as Markdown."""
    marks = {"promise": "> ", "warning": "**Warning:** ", "list": "- "}
    lines = [f"# {_escape_markdown(title)}", ""]
    for one in found:
        lines += [f"## {_escape_markdown(one.title)}", ""] if one.title else []
        if one.kind == "code":
            lines += ["```text", *map(escape_control_characters, one.lines), "```", ""]
        else:
            lines += [
                part
                for line in one.lines
                for part in (marks.get(one.kind, "") + _escape_markdown(line), "")
            ]
        if one.rows:
            head = one.head or [""] * len(one.rows[0])
            cells = [[*map(_escape_markdown, row)] for row in one.rows]
            table = [[*map(_escape_markdown, head)], ["---"] * len(head), *cells]
            lines += [*("| " + " | ".join(row) + " |" for row in table), ""]
    return "\n".join(lines).rstrip() + "\n"


def _escape_html(text: str) -> str:
    """Escape untrusted text for HTML."""
    return html.escape(escape_control_characters(text))


def _escape_markdown(text: str) -> str:
    """Escape text for Markdown: labels and names are untrusted."""
    return "".join(
        f"\\{one}" if one in "\\`*_{}[]<>#|!~$" else one for one in escape_control_characters(text)
    )


REPORT_FORMATS = (".html", ".md")


def write_report_page(
    certificate: Certificate,
    verdict: Verdict,
    path: str | os.PathLike[str],
    source: str = "mechanism.json",
) -> None:
    """Write the report page of a result: its guarantee and limits, and how to verify it.

    The page is one file without scripts, and loads nothing; it follows the reader's light or dark mode.

    Args:
        certificate: what is claimed.
        verdict: its claims, checked.
        path: where to write: .html, or .md for Markdown.
        source: the name of the file in which the reader finds the result.

    Raises:
        FileFormatError: a claim is false (there is no report of a promise that does not hold), or the path
            has another ending, is in the folder of a release, or cannot be written.
    """
    ending = disk.get_file_format(path, REPORT_FORMATS)
    check_not_sealed(path)
    if verdict.failures:
        raise FileFormatError(
            f"{source}: there is no report of a result that is false: "
            + "; ".join(f"{claim.name}: {claim.detail}" for claim in verdict.failures)
        )
    disk.atomic_write(
        path, render_page(REPORT_TITLE, build_sections(certificate, verdict, source), ending)
    )
