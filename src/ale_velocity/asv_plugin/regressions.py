"""The regressions page: every loss, also one that later releases recovered from.

Replaces asv's `Regressions.publish`, which looks for rises, and only for those that the newest release still has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from asv.plugins.regressions import _GraphDataFilter

from ale_velocity.asv_plugin import feed
from ale_velocity.units import higher_is_better

if TYPE_CHECKING:
    from collections.abc import Sequence

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


def losses(levels: Sequence[Level], threshold: float, *, higher: bool) -> tuple[Loss, ...]:
    """Return the losses of more than `threshold` (a share of the value before) in a series of levels, oldest first.

    Each level is compared with the best one since the last loss, so that a loss in small steps is found too.
    """
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
    return tuple(found)


def _is_worse(before: float, after: float, threshold: float, higher: bool) -> bool:
    return (before - after if higher else after - before) > threshold * abs(before)


def _series_with_losses(conf: Any, repo: Any, benchmarks: Any, graphs: Any, revisions: dict[str, int]) -> Any:
    data_filter = _GraphDataFilter(conf, repo, revisions)  # applies regressions_thresholds and _first_commits
    several = {name for name, values in graphs.get_params().items() if len(values) > 1}
    if len(conf.branches) > 1:
        several.add("branch")  # the page selects by branch, also where only one has results
    for _, graph in graphs:
        benchmark = benchmarks[graph.benchmark_name]
        higher = higher_is_better(benchmark["unit"])
        for index, name, levels, threshold in data_filter.get_graph_data(graph, benchmark):
            if found := losses(levels, threshold, higher=higher):
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
