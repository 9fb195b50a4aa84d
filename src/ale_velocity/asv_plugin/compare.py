"""`asv compare` and the verdict of `asv continuous`: the table of two commits' results.

Replaces asv's `Compare.print_table`, which both commands print with, and whose answer is `continuous`'s exit status.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import tabulate
from asv import util
from asv.benchmarks import Benchmarks
from asv_runner.console import color_print

from ale_velocity.asv_plugin.judge import (
    BETTER,
    DIFFERENT_WORK,
    FAILED,
    INCOMPARABLE,
    MENDED,
    UNCHANGED,
    WORSE,
    Verdict,
    judge,
    spread,
)
from ale_velocity.asv_plugin.refusal import refuse
from ale_velocity.asv_plugin.sides import Cell, Side, Source, require_same_machine

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ale_velocity.asv_plugin.sides import Place, Stored

MEANING = {
    BETTER: "better",
    WORSE: "worse",
    FAILED: "fails now",
    MENDED: "failed before",
    INCOMPARABLE: "measured by another version of the benchmark",
    DIFFERENT_WORK: "different work",
}
EVERYTHING = {(*MEANING, UNCHANGED): ("default", "All benchmarks:")}
SPLIT = {  # in this order: marks, asv's colour and title of their group
    (BETTER, MENDED): ("green", "Benchmarks that have improved:"),
    (UNCHANGED,): ("default", "Benchmarks that have stayed the same:"),
    (WORSE, FAILED): ("red", "Benchmarks that have got worse:"),
    (INCOMPARABLE, DIFFERENT_WORK): ("lightgrey", "Benchmarks that are not comparable:"),
}
HIDDEN_BY_ONLY_CHANGED = (UNCHANGED, INCOMPARABLE, MENDED)  # asv's choice
REASONS_SHOWN = 3
NOT_MEASURED = "n/a"  # asv's word


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    name: str
    before: str
    after: str
    verdict: Verdict

    @property
    def is_empty(self) -> bool:
        """Whether neither side measured this, or could: its loop, count or protocol is not theirs."""
        return self.before == self.after == NOT_MEASURED

    @property
    def rests_on_one_process(self) -> bool:
        """Whether a side had a single process, so that nothing is known of their spread."""
        return bool(self.verdict.comparison) and not self.interval

    @property
    def ratio(self) -> str:
        """The ratio as asv writes it, after a `~` where the statistics leave it open."""
        if math.isnan(self.verdict.ratio):
            return "n/a"
        return f"{'~' if self.verdict.undecided else ''}{self.verdict.ratio:.2f}"

    @property
    def interval(self) -> str:
        """The 95% interval of the ratio, empty where there is none."""
        found = self.verdict.comparison
        return f"{found.low:.3f} to {found.high:.3f}" if found and found.low is not None else ""


def print_table(  # noqa: PLR0917 (a class method of asv's Compare, with its signature)
    cls: Any,  # noqa: ARG001
    conf: Any,
    hash_1: str,
    hash_2: str,
    factor: float,
    split: bool,
    resultset_1: Iterable[Stored] | None = None,
    resultset_2: Iterable[Stored] | None = None,
    machine: str | None = None,
    only_changed: bool = False,
    sort: str = "default",
    use_stats: bool = True,
    env_names: list[str] | None = None,
    commit_names: dict[str, str] | None = None,
) -> tuple[bool, bool]:
    """Print the table of two commits and return whether anything got worse, and whether anything got better."""
    benchmarks = Benchmarks.load(conf)
    source = Source(conf, benchmarks, machine, env_names)
    names = commit_names or {}
    before, after = (
        source.stored(commit, names.get(commit)) if rows is None else source.measured(commit, names.get(commit), rows)
        for commit, rows in ((hash_1, resultset_1), (hash_2, resultset_2))
    )
    require_same_machine(before, after)
    rows = [
        _row(place, before, after, benchmarks, factor, use_stats=use_stats)
        for place in sorted(before.cells.keys() | after.cells.keys())
    ]
    _print_rows(rows, before, after, split=split, only_changed=only_changed, sort=sort)
    _print_notes(rows, before, after)
    _require_something_compared(rows, before, after)
    marks = {row.verdict.mark for row in rows}
    return bool(marks & {WORSE, FAILED}), bool(marks & {BETTER, MENDED})


def _row(place: Place, before: Side, after: Side, benchmarks: Any, factor: float, *, use_stats: bool) -> Row:
    name, environment = place
    known = before.cells.get(place) or after.cells[place]
    benchmark = benchmarks[known.benchmark]
    old, new = (side.cells.get(place, Cell(known.benchmark)) for side in (before, after))
    return Row(
        name=name if len(before.facts.keys() | after.facts.keys()) == 1 else f"{name} [{environment}]",
        before=util.human_value(old.value, benchmark["unit"], spread(old)),
        after=util.human_value(new.value, benchmark["unit"], spread(new)),
        verdict=judge(old, new, benchmark, factor, use_stats=use_stats),
    )


def _require_something_compared(rows: list[Row], before: Side, after: Side) -> None:
    verdicts = [row.verdict for row in rows]
    if any(verdict.mark in (FAILED, MENDED) or not math.isnan(verdict.ratio) for verdict in verdicts):
        return
    if any(verdict.mark == INCOMPARABLE for verdict in verdicts):
        refuse(
            f"{before.name} and {after.name} were measured by different versions of the benchmarks, which is "
            "different work: measure the older results again"
        )
    if any(verdict.mark == DIFFERENT_WORK for verdict in verdicts):
        refuse(f"{before.name} and {after.name} do different work, so their rates tell nothing of each other's speed")
    why = f"no benchmark has a value for both {before.name} and {after.name}"
    if before.facts.keys().isdisjoint(after.facts):
        why += f"; they were measured in different environments: {', '.join(before.facts)}; {', '.join(after.facts)}"
    refuse(f"nothing to compare: {why}")


def _print_rows(rows: list[Row], before: Side, after: Side, *, split: bool, only_changed: bool, sort: str) -> None:
    shown = [
        row for row in rows if not row.is_empty and not (only_changed and row.verdict.mark in HIDDEN_BY_ONLY_CHANGED)
    ]
    if sort == "ratio":
        shown.sort(key=lambda row: (math.isnan(row.verdict.ratio), -row.verdict.ratio))
    elif sort == "name":
        shown.sort(key=lambda row: row.name)
    with_interval = any(row.interval for row in shown)
    headers = [
        "Change",
        f"Before [{before.commit[:8]}] <{before.name}>",
        f"After [{after.commit[:8]}] <{after.name}>",
        "Ratio",
        *(["95% interval"] if with_interval else []),
        "Benchmark (Parameter)",
    ]
    for marks, (color, title) in (SPLIT if split else EVERYTHING).items():
        lines = [
            [row.verdict.mark, row.before, row.after, row.ratio, *([row.interval] if with_interval else []), row.name]
            for row in shown
            if row.verdict.mark in marks
        ]
        if not lines:
            continue
        if not only_changed:
            color_print(f"\n{title}\n", color)
        print(tabulate.tabulate(lines, headers=headers, tablefmt="github", disable_numparse=True))


def _print_notes(rows: list[Row], before: Side, after: Side) -> None:
    """Explain the marks that occur, what is undecided and why, and what was left out."""
    occurring = {row.verdict.mark for row in rows}
    notes = []
    if number := sum(row.is_empty for row in rows):
        notes.append(f"Not shown: {number} of {len(rows)}, n/a on both sides.")
    if marks := [f"{mark} {meaning}" for mark, meaning in MEANING.items() if mark in occurring]:
        notes.append(f"Change: {', '.join(marks)}.")
    for why, number in Counter(row.verdict.reason for row in rows if row.verdict.reason).items():
        notes.append(f"different work: {number} of {len(rows)}: {why}: their rates are not to be compared.")
    if any(row.verdict.comparison for row in rows):
        notes.append("Ratio: of what the processes of each side reached; the values are medians of all windows.")
    if any(row.verdict.mark in (BETTER, WORSE) and row.rests_on_one_process for row in rows):
        notes.append(
            "Marks without an interval rest on one process a side, and on processes of this machine differing by no "
            "more than 8% where windows agree: 'ale-velocity duel installed installed' tells how much they do."
        )
    reasons = [
        f"  {row.name}: {row.verdict.comparison.reason}"
        for row in rows
        if row.verdict.undecided and row.verdict.comparison
    ]
    if reasons:
        notes += [f"~ undecided: {len(reasons)} of {len(rows)}", *reasons[:REASONS_SHOWN]]
        if len(reasons) > REASONS_SHOWN:
            notes.append(f"  and {len(reasons) - REASONS_SHOWN} more")
        notes.append(
            "  A round is one process a side. To add rounds to what is stored: "
            f"asv continuous {before.name} {after.name} --append-samples -a rounds=N"
        )
    for side in (before, after):
        notes += [f"Ignored: {number} of {side.name}, since {why}." for why, number in side.ignored.items()]
    if notes:
        print("\n" + "\n".join(notes))
