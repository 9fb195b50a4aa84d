"""Which functions of asv are replaced by what, and when not.

asv 0.6.6 knows smaller-is-better only (asv issue 1617). This module lists what is changed in it for that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asv.console import log

from ale_velocity.asv_plugin import compare, find, publish, regressions, results, series, units
from ale_velocity.asv_plugin.points import Point, own_direction

if TYPE_CHECKING:
    from collections.abc import Callable


def _by(function: Any) -> Callable[[Any], Any]:
    """Replace the original by a function that does not call it."""
    return lambda _original: function


REPLACED: dict[Point, Callable[[Any], Any]] = {
    Point("asv.benchmarks:Benchmarks.__init__", "fbe18850138dd820"): units.known_only,
    Point("asv.commands.compare:Compare.print_table", "fb4fdaeb5723a2d7"): _by(compare.print_table),
    Point("asv.commands.find:run_benchmarks", "64062565e2c0437f"): find.with_costs,
    Point("asv.commands.publish:Publish.run", "bfac5fc318acb544"): publish.checked,
    Point("asv.graph:_compute_graph_steps", "5e4f1a1ee6377a0a"): _by(series.graph_steps),
    Point("asv.graph:_fill_missing_data", "7a27263c6e0101d4"): _by(series.filled),
    Point("asv.plugins.regressions:Regressions.publish", "a9b29c0cdc114371"): _by(regressions.publish),
    Point("asv.results:Results.get_result_value", "396b957cffa05bad"): results.tried_only,
    Point("asv.results:Results.load", "269b8b08259edff2"): results.strictly,
    Point("asv.util:human_value", "c0ce5228cf7aadeb"): units.with_unit,
}
# The code around them, which calls what is replaced or is called by the replacements.
RELIED_ON = (
    Point("asv.commands.compare:_is_result_better", "64a0f9bb57cde2bd"),
    Point("asv.commands.continuous:Continuous.run", "19ac9856efe54f7b"),
    Point("asv.commands.find:Find.run", "90c1a1717f870a28"),
    Point("asv.graph:_compute_summary_data_series", "fa045ba4a1dc0d4f"),
    Point("asv.plugins.regressions:_GraphDataFilter.get_graph_data", "b05227d5964fb36e"),
    Point("asv.plugins.summarylist:SummaryList.publish", "2c3cbefb685aabfb"),
    Point("asv.step_detect:detect_steps", "4d4e68da18f58c50"),
    Point("asv.step_detect:solve_potts_approx", "0f7fabdfea11b77c"),
)


def install() -> None:
    """Make asv's commands right for rates, or step aside if asv itself can do it now."""
    if word := own_direction():
        log.warning(
            f"asv has a direction of its own ({word}), and ale-velocity's asv plugin leaves verdicts to it: declare it "
            "in the benchmarks"
        )
        return
    for point in (*REPLACED, *RELIED_ON):
        point.check()
    for point, make in REPLACED.items():
        point.replace(make)
