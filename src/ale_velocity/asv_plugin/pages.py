"""The scripts of asv's pages, told which units are rates.

Colours and the order of losses are decided in the browser. Each edit replaces one exact piece of a script of asv;
if the piece is not there, asv's page has changed and the edit is refused.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import asv

from ale_velocity.asv_plugin.points import SUPPORTED
from ale_velocity.asv_plugin.refusal import refuse
from ale_velocity.units import HIGHER_IS_BETTER

ORIGINALS = Path(asv.__file__).parent / "www"
RATES = json.dumps([unit for unit, higher in HIGHER_IS_BETTER.items() if higher])


@dataclass(frozen=True)
class Edit:
    """In the script `name`, `old` becomes `new`."""

    name: str
    old: str
    new: str

    def check(self) -> None:
        """Refuse unless asv's script has the piece exactly once."""
        if (ORIGINALS / self.name).read_text(encoding="utf-8").count(self.old) != 1:
            refuse(
                f"the page script {self.name} of the installed asv is not the one that ale-velocity's asv plugin "
                f"corrects (it has no single {self.old.strip()!r}): install asv=={SUPPORTED}"
            )

    def apply(self, html_dir: Path) -> None:
        """Edit the published copy."""
        path = html_dir / self.name
        path.write_text(path.read_text(encoding="utf-8").replace(self.old, self.new), encoding="utf-8")


EDITS = (
    # The list page paints a rise red and a fall green.
    Edit(
        "summarylist.js",
        "                if (change > 5) {\n",
        f"                if ($.inArray(unit, {RATES}) >= 0) {{ change = -change; }}\n"
        "                if (change > 5) {\n",
    ),
    # Its minus sign is meant for the number, and would replace the hyphen of env-steps.
    Edit("summarylist.js", "text = text.replace('-', ", "text = text.replace(/^-/, "),
    # The regressions page puts the largest factor first, which of rates is the smallest loss.
    Edit(
        "regressions.js",
        "row.append($('<td/>').text(factor.toFixed(2) + 'x'));",
        "row.append($('<td/>').text(factor.toFixed(2) + 'x').attr('data-sort-value', "
        f"($.inArray(benchmark.unit, {RATES}) >= 0 ? 1 / factor : factor) + 'x'));",
    ),
    Edit(
        "regressions.js",
        "factor_td.text(factor.toFixed(2) + 'x');",
        "factor_td.text(factor.toFixed(2) + 'x').attr('data-sort-value', "
        f"($.inArray(benchmark.unit, {RATES}) >= 0 ? 1 / factor : factor) + 'x');",
    ),
    # A recovered loss shows the value right after it, not the best of all later ones.
    Edit("regressions.js", '<th data-sort="value">Best after</th>', '<th data-sort="value">After</th>'),
)
