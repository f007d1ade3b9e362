"""The report of a release, for people: one list of sections, written as HTML and as Markdown."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pmlopt.core import files
from pmlopt.core.arrays import few, shown
from pmlopt.core.display import things
from pmlopt.measures.posterior import outcome_warnings
from pmlopt.programs.reports.pages import STYLE, TOLD
from pmlopt.publishing.draft import ReleaseDraft
from pmlopt.publishing.folder import DESCRIPTION, ReleaseFile

MOST_OUTCOMES = 3
"""Outcomes of each mechanism whose posterior is shown: those that leak most."""


@dataclass(frozen=True)
class Section:
    """A heading, sentences, and perhaps a table."""

    title: str
    lines: Sequence[str] = ()
    head: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = field(default=())
    warn: bool = False


def sections(draft: ReleaseDraft) -> Iterator[Section]:
    """What is known of a release before it is drawn."""
    levels = draft.levels
    names = [" and ".join(release.columns) for release in draft.releases]
    total = "" if draft.total is None else f" The total that was allowed is {nats(draft.total)}."
    whose = "the people in this file" if draft.same_people else "the people in the other file that was given"
    yield Section(
        "What the release tells",
        [
            f"All released columns together leak at most {nats(levels.together)} about one person's "
            f"{' and '.join(names)}: whatever is guessed of them becomes at most "
            f"{factor(levels.together)} times as likely.{total}",
            f"This holds for an adversary who knows the shares of all combinations of letters among {whose}, "
            "and nothing else about the person.",
        ],
        ("column", "by itself", "with all others"),
        [
            (name, nats(alone), nats(each))
            for name, alone, each in zip(names, levels.alone, levels.each, strict=True)
        ],
    )
    for name, tells in zip(names, draft.tells, strict=True):
        yield Section(
            f"What an outcome says of {name}",
            [str(tells[0])],
            TOLD,
            [one.row for one in tells[:MOST_OUTCOMES]],
        )
        if found := outcome_warnings(list(tells)):
            yield Section("Warning", found, warn=True)
    yield _in_clear(draft)


def _in_clear(draft: ReleaseDraft) -> Section:
    if not draft.kept:
        return Section("What stays in clear", ["No other column is released."])
    rows = [
        (" and ".join(one.columns), str(one.values), nats(one.alone),
         "too large to list" if one.with_release is None else nats(one.with_release))
        for one in draft.in_clear
    ]  # fmt: skip
    return Section(
        "What stays in clear",
        [
            f"{things(len(draft.kept), 'column')} {'stays' if len(draft.kept) == 1 else 'stay'} as in the "
            "data. Whoever sees them learns this much of the released letters, by the frequencies in the "
            "data:"
        ],
        ("in clear", "values", "by itself", "with the release"),
        rows,
    )


def nats(level: float) -> str:
    """A level for people: 0 is 0."""
    return f"{0 if level < 5e-10 else level:.6g} nats"


def factor(level: float) -> str:
    """The factor of a level."""
    import math

    return f"{math.exp(min(level, 700.0)):.4g}"


def write_pages(draft: ReleaseDraft, described: ReleaseFile, folder: Path) -> None:
    """Write `report.html` and `report.md` into the folder of a release."""
    title = draft.title or "Release of " + few([name for one in draft.releases for name in one.columns])
    left = f" {things(described.left_out, 'row')} with a missing cell were left out."
    found = [
        Section("", [
            f"{things(described.rows, 'row')} of {described.data}, drawn row by row from "
            f"{described.random}.{left if described.left_out else ''}"
        ]),
        *sections(draft),
        Section("What is not promised", NOT_PROMISED),
        Section("Check it yourself", [
            "With pmlopt installed, pmlopt check and the name of this folder decide every claim again: the "
            "certificate of each mechanism, the levels above from the matrices and the shares in "
            f"{DESCRIPTION}, the digests of all files, and whether the released file can have come from "
            "these mechanisms."
        ]),
    ]  # fmt: skip
    files.write_whole(folder / "report.html", _html(title, found).encode())
    files.write_whole(folder / "report.md", _markdown(title, found).encode())


NOT_PROMISED = (
    "Other releases about the same people: what they tell is not counted here. Keep a ledger.",
    "What an adversary knows of one person beside the shares of the letters.",
    "Rows of one person more than once, or of people who depend on each other: each row counts as a person.",
    "The shares themselves, which are published with the mechanisms as the law that the claims are about.",
)
"""What no release promises."""


def _html(title: str, found: Sequence[Section]) -> str:
    body = [f"<h1>{_text(title)}</h1>"]
    for one in found:
        body += [f"<h2>{_text(one.title)}</h2>"] if one.title and not one.warn else []
        kind = " class='warn'" if one.warn else ""
        body += [f"<p{kind}>{_text(line)}</p>" for line in one.lines]
        if one.rows:
            head = "".join(f"<th>{_text(cell)}</th>" for cell in one.head)
            rows = "".join(
                "<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in row) + "</tr>" for row in one.rows
            )
            body.append(f"<div class='wide'><table><tr>{head}</tr>{rows}</table></div>")
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{_text(title)}</title><style>{STYLE}</style></head><body>{''.join(body)}</body></html>\n"
    )


def _markdown(title: str, found: Sequence[Section]) -> str:
    lines = [f"# {_escaped(title)}", ""]
    for one in found:
        lines += [f"## {_escaped(one.title)}", ""] if one.title and not one.warn else []
        mark = "**Warning:** " if one.warn else ""
        lines += [part for line in one.lines for part in (mark + _escaped(line), "")]
        if one.rows:
            table = [one.head, ["---"] * len(one.head), *one.rows]
            lines += ["| " + " | ".join(map(_escaped, row)) + " |" for row in table]
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _text(text: str) -> str:
    return html.escape(shown(text))


def _escaped(text: str) -> str:
    """A text in Markdown as it stands: labels and names come from whoever made the data."""
    if text == "---":
        return text
    return "".join(f"\\{one}" if one in "\\`*_{}[]<>#|!~$" else one for one in shown(text))
