"""The regressions page: every loss, also one that later releases recovered from.

Replaces asv's `Regressions.publish`, which looks for rises, and only for those that the newest release still has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from asv.plugins.regressions import _GraphDataFilter
from asv.results import iter_results

from ale_velocity.asv_plugin import feed
from ale_velocity.asv_plugin.records import CellRecords, cell_name
from ale_velocity.behaviour import difference
from ale_velocity.units import higher_is_better

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ale_velocity.asv_plugin.series import Level


@dataclass(frozen=True)
class Loss:
    """A worse level: the last revision of the level before and the first of the one after, and both values.

    `recovered` is the first later revision that is not worse than the level before, None while there is none.
    """

    last_good: int
    first_bad: int
    before: float
    after: float
    recovered: int | None

    @property
    def change(self) -> float:
        """The change in percent of the value before."""
        return 100 * (self.after - self.before) / self.before


@dataclass(frozen=True)
class Series:
    """The losses of one benchmark, with its parameters, in one environment; `index` is that of its parameters."""

    name: str
    benchmark: dict[str, Any]
    graph_path: str
    graph_params: dict[str, str]
    index: int | None
    latest: float
    best: float
    losses: tuple[Loss, ...]


def publish(  # noqa: PLR0917 (asv's signature)
    cls: Any, conf: Any, repo: Any, benchmarks: Any, graphs: Any, revisions: dict[str, int]
) -> None:
    """Write regressions.json in the form that asv's page reads, and the Atom feed."""
    commits = {revision: commit for commit, revision in revisions.items()}
    found = list(_series_with_losses(conf, repo, benchmarks, graphs, revisions))
    cls._save(conf, {"regressions": [_for_page(series, repo, commits) for series in found]})
    feed.save(conf, repo, found, revisions)


def losses(levels: Sequence[Level], threshold: float, *, higher: bool, borders: Iterable[int] = ()) -> tuple[Loss, ...]:
    """Return the losses of more than `threshold` (a share of the value before) in a series of levels, oldest first.

    At `borders`, revisions from which on the work is another, no level is compared with an earlier one.
    """
    parts: list[list[Level]] = [[]]
    for level in levels:
        if parts[-1] and any(parts[-1][-1][1] <= border <= level[0] for border in borders):
            parts.append([])
        parts[-1].append(level)
    return tuple(loss for part in parts for loss in _losses(part, threshold, higher))


def _losses(levels: Sequence[Level], threshold: float, higher: bool) -> list[Loss]:
    """Compare each level with the best one since the last loss, so that a loss in small steps is found too."""
    found = []
    good = None
    for position, level in enumerate(levels):
        if good is None:
            good = level
        elif _is_worse(good[2], level[2], threshold, higher):
            later = (after[0] for after in levels[position:] if not _is_worse(good[2], after[2], threshold, higher))
            found.append(Loss(good[1] - 1, level[0], good[2], level[2], next(later, None)))
            good = level
        elif not _is_worse(good[2], level[2], 0, higher):
            good = level
    return found


def _is_worse(before: float, after: float, threshold: float, higher: bool) -> bool:
    return (before - after if higher else after - before) > threshold * abs(before)


def _series_with_losses(conf: Any, repo: Any, benchmarks: Any, graphs: Any, revisions: dict[str, int]) -> Any:
    data_filter = _GraphDataFilter(conf, repo, revisions)  # applies regressions_thresholds and _first_commits
    several = {name for name, values in graphs.get_params().items() if len(values) > 1}
    if len(conf.branches) > 1:
        several.add("branch")  # the page selects by branch, also where only one has results
    works = _Works(conf, revisions)
    for _, graph in graphs:
        benchmark = benchmarks[graph.benchmark_name]
        higher = higher_is_better(benchmark["unit"])
        for index, name, levels, threshold in data_filter.get_graph_data(graph, benchmark):
            if found := losses(levels, threshold, higher=higher, borders=works.borders(graph, benchmark, index)):
                values = [level[2] for level in levels]
                yield Series(
                    name=name,
                    benchmark=benchmark,
                    graph_path=graph.path + ".json",
                    graph_params={key: value for key, value in graph.params.items() if key in several},
                    index=index,
                    latest=values[-1],
                    best=max(values) if higher else min(values),
                    losses=found,
                )


class _Works:
    """Where the series of the pages change their work."""

    def __init__(self, conf: Any, revisions: dict[str, int]) -> None:
        self._results: dict[frozenset[Any], list[tuple[int, Any]]] = {}
        self._records: dict[str, CellRecords] = {}
        for result in iter_results(conf.results_dir):
            machine = result.params["machine"]
            if machine not in self._records:
                self._records[machine] = CellRecords(conf.results_dir, machine)
            if result.commit_hash in revisions:
                variables = {f"env-{name}": value for name, value in result.env_vars.items()}
                mine = self._results.setdefault(_identity({**result.params, **variables}), [])
                mine.append((revisions[result.commit_hash], result))

    def borders(self, graph: Any, benchmark: dict[str, Any], index: int | None) -> list[int]:
        """Return the revisions whose work differs from that of the last one before that is known."""
        found = []
        before = None
        cell = cell_name(benchmark["name"], benchmark["params"], index)
        results = self._results.get(_identity(graph.params), [])
        for revision, result in sorted(results, key=lambda pair: pair[0]):
            known = self._records[result.params["machine"]]
            after = known.behaviour(result.commit_hash, result.env_name, cell)
            if difference(before, after):
                found.append(revision)
            before = after or before
        return found


def _identity(params: dict[str, Any]) -> frozenset[Any]:
    """Return what a result and its graph share; `Publish.run` gives a graph its branch, and empty values."""
    return frozenset((name, value) for name, value in params.items() if value and name != "branch")


def _for_page(series: Series, repo: Any, commits: dict[int, str]) -> list[Any]:
    jumps = [
        # asv's page takes null for the commit just before.
        (None if is_next(repo, commits, loss) else loss.last_good, loss.first_bad, loss.before, loss.after)
        for loss in series.losses
    ]
    name, path, params, index = series.name, series.graph_path, series.graph_params, series.index
    return [name, path, params, index, series.latest, series.best, jumps]


def is_next(repo: Any, commits: dict[int, str], loss: Loss) -> bool:
    """Whether no commit of the timeline lies between the two of a loss."""
    between = repo.get_range_spec(commits[loss.last_good], commits[loss.first_bad])
    return len(repo.get_hashes_from_range(between)) == 1
