"""What `asv publish` does besides its own: our pages, and asv's pages made to work anywhere and read well."""

from __future__ import annotations

import datetime as dt
import html
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asv import util
from asv.commands.publish import Publish
from asv.console import log
from asv.publishing import OutputPublisher

from ale_velocity.asv_plugin import stored
from ale_velocity.errors import VelocityError
from ale_velocity.site import assets, data, pages, verdicts
from ale_velocity.site.order import natural_key
from ale_velocity.units import HIGHER_IS_BETTER, direction

if TYPE_CHECKING:
    from collections.abc import Callable

STATIC = Path(data.__file__).parent / "static"
SERVED = ("site.css", "site.js", "throughput.js")
KEPT = ("README.md", ".gitignore")  # tracked in html/, which asv empties

NAVIGATION = """<li id="nav-li-regressions"><a href="#/regressions">Regressions</a></li>"""
OUR_NAVIGATION = """
	<li><a href="overview.html">Overview</a></li>
	<li><a href="throughput.html">Throughput</a></li>"""
NUMERIC = "(function (a, b) { return a - b; })"
NATURAL_SORT = "{string: function (a, b) { return a.localeCompare(b, 'en', {numeric: true}); }}"
UNIT_DIRECTION = "($.asv.main_json.directions[unit] || '')"

# Places in asv 0.6.6's scripts: (file, text, how often it is there, our text).
EDITS = (
    # Commits are revision numbers; asv sorts them as text.
    ("graphdisplay.js", "revisions.sort()", 1, f"revisions.sort{NUMERIC}"),
    ("graphdisplay.js", "benchmark_param_selection[0].sort()", 1, f"benchmark_param_selection[0].sort{NUMERIC}"),
    # Axes and lists say which way is better.
    ("graphdisplay.js", "unit_name = unit;", 1, f"unit_name = unit + {UNIT_DIRECTION};"),
    ("summarylist.js", "$('<span/>').text(value)", 1, f"$('<span/>').text(value + {UNIT_DIRECTION})"),
    # 8 envs before 16.
    ("summarylist.js", "table.stupidtable()", 1, f"table.stupidtable({NATURAL_SORT})"),
    # 2,238 and not 2.24e+3.
    ("asv.js", "x.toPrecision(3) + ' ' + unit", 1, "Number(x.toPrecision(4)).toLocaleString('en') + ' ' + unit"),
    (
        "graphdisplay.js",
        "(v / multiplier).toPrecision(3)",
        1,
        "Number((v / multiplier).toPrecision(3)).toLocaleString('en')",
    ),
    ("index.html", NAVIGATION, 1, NAVIGATION + OUR_NAVIGATION),
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


def hook() -> None:
    """Replace asv's publish by one that also finishes what asv writes after all pages."""
    Publish.run = classmethod(_finishing(Publish.run.__func__))


def build(conf: Any, html_dir: Path) -> None:
    """Write everything of ours into `html_dir`, which asv has filled; raise `VelocityError` where that cannot be."""
    edit_asv_pages(html_dir)
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
    pages.write(results, changes, plotly, STATIC, html_dir)
    data.write(results, changes, served / "data")
    for reason in results.left_out:
        log.warning(f"not shown: {reason}")
    if results.newest and (days := (dt.datetime.now(dt.timezone.utc) - results.newest).days) > pages.STALE_AFTER_DAYS:
        log.warning(f"the newest result is {days} days old: newer releases may be missing")


def edit_asv_pages(html_dir: Path) -> None:
    """Apply `EDITS`; raise `VelocityError` for a place that is not as in the asv that we pin."""
    for name, text, times, ours in EDITS:
        path = html_dir / name
        content = path.read_text(encoding="utf-8")
        if content.count(text) != times:
            raise VelocityError(f"asv's {name} does not have {text!r} {times} time(s): is this asv 0.6.6?")
        path.write_text(content.replace(text, ours), encoding="utf-8")


def finish_index(path: Path) -> None:
    """Put parameters of asv's index.json into natural order, add directions of units, escape what asv shows as HTML."""
    index = json.loads(path.read_text(encoding="utf-8"))
    index["params"] = {name: sorted(values, key=_order) for name, values in index["params"].items()}
    index["directions"] = {unit: f" ({direction(unit)})" for unit in HIGHER_IS_BETTER}
    # These become tooltips, which asv fills as HTML without escaping.
    for machine, facts in index["machines"].items():
        index["machines"][machine] = {key: html.escape(str(value)) for key, value in facts.items()}
    for benchmark in index["benchmarks"].values():
        benchmark["code"] = html.escape(benchmark["code"])
    path.write_text(json.dumps(index, separators=(",", ":")), encoding="utf-8")


def _finishing(publish: Callable[..., Any]) -> Callable[..., Any]:
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
