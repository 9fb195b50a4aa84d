"""What `asv publish` does besides its own: our pages, and asv's pages made to work anywhere and read well."""

from __future__ import annotations

import datetime as dt
import functools
import html
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asv import util
from asv.console import log
from asv.publishing import OutputPublisher

from ale_velocity.asv_plugin import stored
from ale_velocity.asv_plugin.pages import Edit
from ale_velocity.asv_plugin.points import Point
from ale_velocity.errors import VelocityError
from ale_velocity.site import assets, data, duels, pages, verdicts
from ale_velocity.site.order import natural_key
from ale_velocity.units import HIGHER_IS_BETTER, direction

if TYPE_CHECKING:
    from collections.abc import Callable

STATIC = Path(data.__file__).parent / "static"
SERVED = ("site.css", "site.js", "throughput.js")
PUBLISH = Point("asv.commands.publish:Publish.run", "bfac5fc318acb544")
KEPT = ("README.md", ".gitignore")  # tracked in html/, which asv empties

NAVIGATION = """<li id="nav-li-regressions"><a href="#/regressions">Regressions</a></li>"""
OUR_NAVIGATION = """
	<li><a href="overview.html">Overview</a></li>
	<li><a href="throughput.html">Throughput</a></li>"""
NUMERIC = "(function (a, b) { return a - b; })"
NATURAL_SORT = "{string: function (a, b) { return a.localeCompare(b, 'en', {numeric: true}); }}"
GRAPH_UNIT = "$.asv.main_json.benchmarks[current_benchmark].unit"
DIRECTION = "($.asv.main_json.directions[{}] || '')"

EDITS = (
    # Commits are revision numbers; asv sorts them as text.
    Edit("graphdisplay.js", "revisions.sort()", f"revisions.sort{NUMERIC}"),
    Edit("graphdisplay.js", "benchmark_param_selection[0].sort()", f"benchmark_param_selection[0].sort{NUMERIC}"),
    # Axes and lists say which way is better.
    Edit("graphdisplay.js", "unit_name = unit;", f"unit_name = unit + {DIRECTION.format('unit')};"),
    Edit("graphdisplay.js", f"Label = {GRAPH_UNIT};", f"Label = {GRAPH_UNIT} + {DIRECTION.format(GRAPH_UNIT)};"),
    Edit("summarylist.js", "$('<span/>').text(value)", f"$('<span/>').text(value + {DIRECTION.format('unit')})"),
    # 8 envs before 16.
    Edit("summarylist.js", "table.stupidtable()", f"table.stupidtable({NATURAL_SORT})"),
    # 2,238 and not 2.24e+3.
    Edit("asv.js", "x.toPrecision(3) + ' ' + unit", "Number(x.toPrecision(4)).toLocaleString('en') + ' ' + unit"),
    Edit(
        "graphdisplay.js",
        "(v / multiplier).toPrecision(3)",
        "Number((v / multiplier).toPrecision(3)).toLocaleString('en')",
    ),
    Edit("index.html", NAVIGATION, NAVIGATION + OUR_NAVIGATION),
)


class Site(OutputPublisher):
    """Our pages; asv finds this class and calls it last."""

    name = "throughput"
    button_label = "Throughput"
    description = "Env-steps/s against number of envs and over releases"

    @classmethod
    def publish(cls, conf: Any, repo: Any, benchmarks: Any, graphs: Any, revisions: Any) -> None:  # noqa: ARG003 (asv's signature)
        """Write our pages beside asv's, and edit asv's."""
        html_dir = Path(conf.html_dir)
        try:
            build(conf, html_dir)
        except VelocityError as error:
            raise util.UserError(str(error)) from error


def install() -> None:
    """Replace asv's publish by one that also finishes what asv writes after all pages, and keeps what git tracks."""
    for edit in EDITS:
        edit.check()
    PUBLISH.check()
    PUBLISH.replace(finished)


def build(conf: Any, html_dir: Path) -> None:
    """Write everything of ours into `html_dir`, which asv has filled; raise `VelocityError` where that cannot be."""
    for edit in EDITS:
        edit.apply(html_dir)
    try:
        assets.install(STATIC, Path(conf.env_dir).absolute().parent / "npm", html_dir)
    except assets.NpmUnavailableError as error:
        log.warning(f"{error}. The site loads its scripts from public CDNs and needs the network to be read.")
        plotly = assets.PLOTLY_CDN_TAG
    else:
        index = html_dir / "index.html"
        index.write_text(assets.make_local(index.read_text(encoding="utf-8")), encoding="utf-8")
        plotly = assets.PLOTLY_TAG
    served = html_dir / "ale-velocity"
    served.mkdir(exist_ok=True)
    for name in SERVED:
        shutil.copyfile(STATIC / name, served / name)
    results = stored.read(conf)
    changes = verdicts.changes(results)
    # An entry of our own in asv.conf.json; without it no duel is published.
    bouts = duels.read(Path(conf.duels_dir), results.series) if hasattr(conf, "duels_dir") else []
    pages.write(results, changes, plotly, STATIC, html_dir, bouts=bouts)
    data.write(results, changes, served / "data")
    for reason in results.left_out:
        log.warning(f"not shown: {reason}")
    if results.newest and (days := (dt.datetime.now(dt.timezone.utc) - results.newest).days) > pages.STALE_AFTER_DAYS:
        log.warning(f"the newest result is {days} days old: newer releases may be missing")


def finish_index(path: Path) -> None:
    """Put parameters of asv's index.json into natural order, add directions of units, escape what asv shows as HTML."""
    index = json.loads(path.read_text(encoding="utf-8"))
    for name, values in index["params"].items():
        if name != "branch":  # these keep the order of asv.conf.json
            values.sort(key=_order)
    index["directions"] = {unit: f" ({direction(unit)})" for unit in HIGHER_IS_BETTER}
    # These become tooltips, which asv fills as HTML without escaping.
    for machine, facts in index["machines"].items():
        index["machines"][machine] = {key: html.escape(str(value)) for key, value in facts.items()}
    for benchmark in index["benchmarks"].values():
        benchmark["code"] = html.escape(benchmark["code"])
    path.write_text(json.dumps(index, separators=(",", ":")), encoding="utf-8")


def finished(publish: Callable[..., Any]) -> Callable[..., Any]:
    """Return the replacement of `Publish.run`, which empties the folder first and writes its index last."""

    @functools.wraps(publish)  # `direction` compares what is below with the code it knows
    def run(cls: Any, conf: Any, *args: Any, **kwargs: Any) -> Any:
        html_dir = Path(conf.html_dir)
        kept = {html_dir / name: (html_dir / name).read_bytes() for name in KEPT if (html_dir / name).exists()}
        try:
            status = publish(cls, conf, *args, **kwargs)
            finish_index(html_dir / "index.json")
        finally:
            for path, content in kept.items():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        return status

    return run


def _order(value: str | None) -> tuple[bool, tuple[Any, ...]]:
    return value is not None, natural_key(value or "")
