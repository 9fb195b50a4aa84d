"""The Atom feed of losses, in words that fit the unit; asv's own words and percentages are those of times."""

from __future__ import annotations

import datetime as dt
import html
import itertools
import urllib.parse
from typing import TYPE_CHECKING, Any

from asv import feed, util
from asv.results import iter_results

from ale_velocity.units import higher_is_better

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ale_velocity.asv_plugin.regressions import Loss, Series

FILE_NAME = "regressions.xml"  # the address that subscribers of an asv page have


def save(conf: Any, repo: Any, found: Iterable[Series], revisions: dict[str, int]) -> None:
    """Write one entry a loss, newest first, each dated by the measurement that showed it."""
    writer = _Writer(conf, repo, revisions)
    entries = [writer.entry(series, loss) for series in found for loss in series.losses]
    entries.sort(key=lambda entry: entry.updated, reverse=True)
    feed.write_atom(
        f"{conf.html_dir}/{FILE_NAME}",
        entries,
        author="Airspeed Velocity",
        title=f"{conf.project} performance regressions",
        address=f"{conf.project}.asv",
    )


class _Writer:
    def __init__(self, conf: Any, repo: Any, revisions: dict[str, int]) -> None:
        self._conf = conf
        self._repo = repo
        self._commits = {revision: commit for commit, revision in revisions.items()}
        self._released: dict[str, int] = {}
        self._measured: dict[tuple[str, str], int] = {}
        for result in iter_results(conf.results_dir):
            self._released[result.commit_hash] = result.date
            for name, timestamp in result.started_at.items():
                self._measured[name, result.commit_hash] = timestamp or result.date

    def entry(self, series: Series, loss: Loss) -> Any:
        """Return the entry of a loss; its identity is asv's, so that readers do not show a known loss as new."""
        good, bad = self._commits[loss.last_good], self._commits[loss.first_bad]
        updated = self._measured.get((series.benchmark["name"], bad), self._released[bad])
        return feed.FeedEntry(
            f"{loss.change:+.2f}% {series.name}",
            _utc(updated),
            self._link(series, good, bad),
            self._content(series, loss, good, bad),
            [series.name, good, bad],
            _utc(self._released[bad]),
        )

    def _content(self, series: Series, loss: Loss, good: str, bad: str) -> str:
        unit = series.benchmark["unit"]
        change = "lower" if loss.after < loss.before else "higher"
        better = "higher" if higher_is_better(unit) else "lower"
        latest = f"Latest value: {util.human_value(series.latest, unit)}"
        if series.latest != series.best:
            share = abs(series.latest - series.best) / abs(series.best)
            latest += f" ({share:.2%} worse than the best value {util.human_value(series.best, unit)})"
        link = html.escape(self._link(series, good, bad))
        steps = f"from {self._name(good)} to {self._name(bad)} of {_utc(self._released[bad]):%Y-%m-%d}"
        lines = [
            f'<a href="{link}">Regression</a> {steps}: {abs(loss.change):.2f}% {change}, where {better} is better.',
            f"New value: {util.human_value(loss.after, unit)}, old value: {util.human_value(loss.before, unit)}.",
            f"{latest}.",
        ]
        if loss.recovered is not None:
            lines.append(f"Recovered in {self._name(self._commits[loss.recovered])}.")
        return "<br>\n".join(lines)

    def _link(self, series: Series, good: str, bad: str) -> str:
        params = dict(series.graph_params)
        if series.index is not None:
            values = next(itertools.islice(itertools.product(*series.benchmark["params"]), series.index, None))
            params |= {f"p-{name}": value for name, value in zip(series.benchmark["param_names"], values, strict=True)}
        params["commits"] = f"{good}-{bad}"
        return f"index.html#{series.benchmark['name']}?{urllib.parse.urlencode(params)}"

    def _name(self, commit: str) -> str:
        return html.escape(self._repo.get_name_from_hash(commit) or commit[: self._conf.hash_length])


def _utc(timestamp_ms: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(timestamp_ms / 1000, dt.timezone.utc)
