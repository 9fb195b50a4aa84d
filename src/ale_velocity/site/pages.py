"""The pages that need no script: overview, and one for each release. Everything that is not ours is escaped."""

from __future__ import annotations

import math
from collections import Counter
from html import escape
from string import Template
from typing import TYPE_CHECKING, Any

from packaging.requirements import Requirement

from ale_velocity.options import envs_in_words
from ale_velocity.site import links
from ale_velocity.site.order import natural_key
from ale_velocity.site.points import benchmark_label
from ale_velocity.site.verdicts import WORDS, Verdict, shifts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ale_velocity.site.duels import Bout
    from ale_velocity.site.points import Line, Point, Results
    from ale_velocity.site.verdicts import Change, Shift, Step
    from ale_velocity.timeline.manifest import Release, Series

LONG_TEXT = 40  # characters beyond which a cell may break into lines
MOST_MOVERS = 40  # rows of a table of gains or losses: what one can read
STALE_AFTER_DAYS = 60  # ale-py and torch together release about every month and a half
ALL_CELLS = (
    "All loops and env counts of a benchmark that both releases measured, a pair each. Releases are not measured in "
    "turn, so a drift of the machine, or another host under its name, is in it where the pace does not show it: "
    "<code>ale-velocity duel</code> decides."
)
DUELS = "Fresh processes of both releases, in turn, on one machine: the strictest verdicts here."
# Shapes besides colours, so that nothing rests on telling colours apart.
MARKS = {"faster": "▲", "slower": "▼", "same": "=", "inconclusive": "~", "failed": "✕", "different work": "≠"}


def write(
    results: Results, changes: list[Change], plotly_tag: str, static: Path, html_dir: Path, *, bouts: Sequence[Bout]
) -> None:
    """Write all our pages below `html_dir`, from the templates in `static`; `plotly_tag` loads the chart library."""
    template = Template((static / "page.html").read_text(encoding="utf-8"))

    def page(address: str, title: str, body: str) -> None:
        path = html_dir / address
        path.parent.mkdir(parents=True, exist_ok=True)
        text = template.substitute(root="../" * address.count("/"), title=escape(title), body=body)
        path.write_text(text, encoding="utf-8")

    throughput = Template((static / "throughput.html").read_text(encoding="utf-8"))
    page("throughput.html", "Throughput", throughput.substitute(plotly=plotly_tag))
    together = shifts(changes)
    page("overview.html", "Overview", overview(results, changes, together, bouts))
    by_release: dict[str, list[Change]] = {}
    for change in changes:
        by_release.setdefault(change.point.release.name, []).append(change)
    lines = {one.name: [line for line in results.lines if line.series == one.name] for one in results.series}
    for one in results.series:
        for previous, release in zip((None, *one.releases), one.releases, strict=False):
            of_release = [shift for shift in together if shift.after == release]
            cells = _setups(by_release.get(release.name, []), lines[one.name], of_release)
            duels = _duels([bout for bout in bouts if bout.after == release])
            body = release_body(results, one, release, previous) + duels + cells
            page(links.release_page(results.hashes[release.name]), release.name, body)


def overview(results: Results, changes: list[Change], together: Sequence[Shift], bouts: Sequence[Bout]) -> str:
    """Return the body: age of the data, gains and losses (cells, all of them, duels), machines, and what is missing."""
    parts = [
        _age(results),
        f"<h2>Losses</h2>{_movers(results, changes, 'slower')}",
        f"<h2>Gains</h2>{_movers(results, changes, 'faster')}",
        f"<h2>Gains and losses of all cells together</h2>{_shifts(results, together)}",
        f"<h2>Gains and losses by duels</h2>{_won(results, bouts)}" if bouts else "",
        f"<h2>Releases</h2>{_releases(results, changes)}",
        f"<h2>Machines</h2>{_machines(results)}",
    ]
    if results.left_out:
        items = "".join(f"<li>{escape(reason)}</li>" for reason in results.left_out)
        parts.append(f"<h2>Stored but not shown</h2><ul>{items}</ul>")
    return "".join(parts)


def release_body(results: Results, series: Series, release: Release, previous: Release | None) -> str:
    """Return what a release is: date, notes, and its stack with what changed in it."""
    notes = links.release_notes(series.package, release.version)
    commit = results.hashes[release.name][: links.HASH_LENGTH]
    what = escape(f"{series.package} {release.version} of {release.date:%Y-%m-%d}, series {series.name}, commit")
    link = f' <a href="{escape(notes)}">Release notes</a>.' if notes else ""
    remark = f" Remark: {escape(release.note)}." if release.note else ""
    return f'<p class="lead">{what} <code>{commit}</code>.{link}{remark}</p><h2>Stack</h2>{_stack(release, previous)}'


def _setups(changes: Sequence[Change], lines: Sequence[Line], together: Sequence[Shift]) -> str:
    """Every cell of a release with its verdict, a table for each machine and setting that measured its series."""
    if not lines:
        return "<p>Nothing of this series was measured yet.</p>"
    known = {change.point.line: change for change in changes}
    parts = []
    for setup in dict.fromkeys(line.setup for line in lines):
        rows = [(line, known.get(line)) for line in lines if line.setup == setup]
        counts = Counter(change.verdict.word if change else "not measured" for _, change in rows)
        summary = ", ".join(f"{counts[word]} {word}" for word in WORDS if counts[word])
        parts.append(f"<h2>{escape(str(setup))}</h2><p>{summary}</p>{_behaviours(rows)}")
        parts.append(_together([shift for shift in together if shift.setup == setup]) + _cells(rows))
    return "".join(parts)


def _together(found: Sequence[Shift]) -> str:
    """A table of what all cells of each benchmark say together."""
    rows = [
        (
            escape(benchmark_label(shift.benchmark)),
            _of_shift(shift),
            str(shift.cells),
            escape(shift.before.version),
            escape(shift.comparison.reason),
        )
        for shift in found
    ]
    return _table(("All cells together", "Verdict", "Cells", "Compared with", "Why"), rows) if rows else ""


def _duels(bouts: Sequence[Bout]) -> str:
    """A table of what duels say of a release against earlier ones, whatever they found."""
    rows = [
        (
            escape(bout.before.name),
            escape(bout.what),
            _of_bout(bout),
            str(bout.pairs),
            escape(bout.where),
            escape(_why(bout)),
        )
        for bout in bouts
    ]
    table = _table(("Against", "What", "Verdict", "Pairs", "Where", "Why"), rows)
    return f"<h2>Duels</h2><p>{DUELS}</p>{table}" if rows else ""


def _why(bout: Bout) -> str:
    """Say how a verdict came about: of a change that was found, the interval says all."""
    reason = "" if bout.word in {"faster", "slower"} else bout.reason
    return "; ".join(filter(None, ("at equal pace" * bout.comparison.at_equal_pace, reason)))


def _behaviours(rows: Sequence[tuple[Line, Change | None]]) -> str:
    """Name the fingerprints that cells recorded, several where baselines have emulators of their own."""
    known = dict.fromkeys(change.point.behaviour for _, change in rows if change and change.point.behaviour)
    return f"<p>Fingerprint of the work: <code>{escape(', '.join(known))}</code></p>" if known else ""


def _age(results: Results) -> str:
    if results.newest is None:
        return '<p class="warning">There are no results yet: run <code>asv run</code>, then publish again.</p>'
    stamp = results.newest.isoformat(timespec="seconds")
    return (
        f'<p class="lead">Newest result: <time datetime="{stamp}" data-stale-after-days="{STALE_AFTER_DAYS}">'
        f"{results.newest:%Y-%m-%d %H:%M} UTC</time>. Rates are env-steps/s unless said otherwise; "
        "± is a 95% interval.</p>"
    )


def _movers(results: Results, changes: list[Change], word: str) -> str:
    """A table of changes between neighbouring measured releases, largest first, also of those undone later.

    Cells that differ in their number of envs only share a row, which shows the largest change of them.
    """
    groups: dict[Any, list[tuple[Step, Point]]] = {}
    for change in changes:
        step, point = change.verdict.step, change.point
        if step and change.verdict.word == word:
            curve = [(name, value) for name, value in point.line.params if name != "num_envs"]
            names = (step.before.release.name, point.release.name)
            groups.setdefault((point.line.setup, point.line.benchmark, *curve, *names), []).append((step, point))
    if not groups:
        return "<p>None between any two neighbouring releases.</p>"
    ranked = sorted(groups.values(), key=lambda group: -max(step.size for step, _ in group))
    rows = []
    for group in ranked[:MOST_MOVERS]:
        step, point = max(group, key=lambda pair: pair[0].size)
        rows.append(
            (
                _verdict(Verdict(word, step=step)),
                f"{_release_link(results, step.before.release)} → {_release_link(results, point.release)}",
                _what(point.line) + (f" (and {len(group) - 1} other counts)" if len(group) > 1 else ""),
                f"{_number(step.before)} → {_number(point)}",
                escape(str(point.line.setup)),
            )
        )
    hidden = len(ranked) - len(rows)
    more = f"<p>And {hidden} smaller ones: see the releases' pages.</p>" if hidden else ""
    return _table(("Largest change", "Releases", "What", "Rate", "Where"), rows) + more


def _shifts(results: Results, found: Sequence[Shift]) -> str:
    """A table of what all cells of a benchmark say together where it is a gain or a loss, largest first."""
    ranked = sorted(
        (shift for shift in found if shift.word in {"faster", "slower"}),
        key=lambda shift: -abs(math.log(shift.comparison.ratio)),
    )
    rows = [
        (
            _of_shift(shift),
            f"{_release_link(results, shift.before)} → {_release_link(results, shift.after)}",
            escape(benchmark_label(shift.benchmark)),
            str(shift.cells),
            escape(str(shift.setup)),
        )
        for shift in ranked
    ]
    if not rows:
        return "<p>None between any two neighbouring releases.</p>"
    return f"<p>{ALL_CELLS}</p>" + _table(("Change", "Releases", "What", "Cells", "Where"), rows)


def _won(results: Results, bouts: Sequence[Bout]) -> str:
    """A table of the duels' gains and losses, largest first."""
    won = [bout for bout in bouts if bout.word in {"faster", "slower"}]
    rows = [
        (
            _of_bout(bout),
            f"{_release_link(results, bout.before)} → {_release_link(results, bout.after)}",
            escape(bout.what),
            str(bout.pairs),
            escape(bout.where),
        )
        for bout in sorted(won, key=lambda bout: -abs(math.log(bout.comparison.ratio)))
    ]
    table = _table(("Change", "Releases", "What", "Pairs", "Where"), rows) if rows else ""
    found = f"{len(won)} of {len(bouts)} comparisons found one; the releases' pages have all."
    return f"<p>{DUELS} {found}</p>{table}"


def _releases(results: Results, changes: list[Change]) -> str:
    """A table of releases, newest first, with how many cells got which verdict, and how many were not measured."""
    words: dict[str, Counter[str]] = {}
    for change in changes:
        words.setdefault(change.point.release.name, Counter())[change.verdict.word] += 1
    lines = Counter(line.series for line in results.lines)
    rows = []
    for one in results.series:
        for release in reversed(one.releases):
            counts = words.get(release.name, Counter())
            counts["not measured"] += lines[one.name] - counts.total()
            cells = [str(counts[word] or "") for word in WORDS]
            rows.append((_release_link(results, release), f"{release.date:%Y-%m-%d}", *cells))
    head = ("Release", "Date", *(f"{MARKS.get(word, '')} {word}".strip() for word in WORDS))
    return _table(head, rows)


def _machines(results: Results) -> str:
    labels = list(dict.fromkeys(label for machine in results.machines for label in machine.facts))
    rows = [
        (escape(machine.name), *(escape(machine.facts.get(label, "")) for label in labels))
        for machine in sorted(results.machines, key=lambda machine: natural_key(machine.name))
    ]
    return _table(("Name", *labels), rows) if rows else "<p>None yet.</p>"


def _stack(release: Release, previous: Release | None) -> str:
    before = previous.requirements if previous else release.requirements
    rows = []
    for requirement in release.requirements:
        was = [old for old in before if Requirement(old).name == Requirement(requirement).name]
        change = "" if requirement in before else f"was {', '.join(was)}" if was else "new"
        rows.append((f"<code>{escape(requirement)}</code>", escape(change)))
    since = f"Since {previous.name}" if previous else "First release of its series"
    return _table(("Requirement", since), rows)


def _cells(rows: Sequence[tuple[Line, Change | None]]) -> str:
    known = sorted((change for _, change in rows if change), key=lambda change: WORDS.index(change.verdict.word))
    cells = [
        (
            _what(change.point.line),
            _verdict(change.verdict),
            _number(change.point),
            escape(change.point.unit),
            _compared_with(change.verdict.step),
            escape(change.verdict.reason) or ("no reason was recorded" if change.verdict.word == "failed" else ""),
        )
        for change in known
    ]
    missing = [(_what(line), _verdict(Verdict("not measured")), "", "", "", "") for line, change in rows if not change]
    return _table(("What", "Verdict", "Rate", "Unit", "Compared with", "Why"), cells + missing)


def _compared_with(step: Step | None) -> str:
    return f"{escape(step.before.release.version)}: {_number(step.before)}" if step else ""


def _verdict(verdict: Verdict) -> str:
    step = verdict.step
    if step and verdict.word != "different work":
        return _marked(verdict.word, step.ratio, *(step.interval or ()))
    return _marked(verdict.word)


def _of_shift(shift: Shift) -> str:
    found = shift.comparison
    return _marked(shift.word, found.ratio, found.low, found.high)


def _of_bout(bout: Bout) -> str:
    if bout.word == "different work":
        return _marked(bout.word)
    return _marked(bout.word, bout.comparison.ratio, bout.comparison.low, bout.comparison.high)


def _marked(word: str, ratio: float | None = None, low: float | None = None, high: float | None = None) -> str:
    text = f"{MARKS.get(word, '')} {word}".strip()
    if ratio is not None:
        text += f" {ratio - 1:+.1%}"
    if low is not None and high is not None:
        text += f" ({low - 1:+.1%} to {high - 1:+.1%})"
    return f'<span class="verdict {word.replace(" ", "-").replace("/", "")}">{text}</span>'


def _number(point: Point) -> str:
    if point.status != "measured":
        return ""
    interval = point.interval
    return f"{interval.mean:,.0f} ± {interval.half_width:,.0f}" if interval.half_width else f"{interval.mean:,.0f}"


def _what(line: Line) -> str:
    values = ", ".join(envs_in_words(int(value)) if name == "num_envs" else value for name, value in line.params)
    return escape(f"{benchmark_label(line.benchmark)}: {values}" if values else benchmark_label(line.benchmark))


def _release_link(results: Results, release: Release) -> str:
    """A link from a page in the site's root."""
    address = links.release_page(results.hashes[release.name])
    return f'<a href="{address}">{escape(release.name)}</a>'


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table from cells that are HTML already."""
    columns = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    lines = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>\n" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{columns}</tr></thead><tbody>\n{lines}</tbody></table></div>'


def _cell(content: str) -> str:
    long = len(content) > LONG_TEXT and "<" not in content
    return f'<td class="why">{content}</td>' if long else f"<td>{content}</td>"
