"""`asv publish`: nothing is dropped silently, and the pages show losses as losses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from asv.benchmarks import Benchmarks
from asv.commands.publish import Publish
from asv.repo import get_repo
from asv.results import get_filename

from ale_velocity.asv_plugin import pages
from ale_velocity.asv_plugin.refusal import refuse

if TYPE_CHECKING:
    from collections.abc import Callable


def checked(run: Callable[..., Any]) -> Callable[..., Any]:
    """Return the replacement of `Publish.run`: it checks before asv removes the old pages, and edits the new ones."""

    def run_checked(cls: Any, conf: Any, range_spec: Any = None, pull: bool = True) -> Any:
        for edit in pages.EDITS:
            edit.check()
        Benchmarks.load(conf)
        _refuse_strays(conf, range_spec, pull)
        status = run(cls, conf, range_spec, pull)
        for edit in pages.EDITS:
            edit.apply(Path(conf.html_dir))
        return status

    return run_checked


def _refuse_strays(conf: Any, range_spec: Any, pull: bool) -> None:
    """Refuse results whose commit is on no configured branch: asv drops them, or adds them to every branch."""
    repo = get_repo(conf)
    if pull:
        repo.pull()
    on_branches = {commit for branch in conf.branches for commit in repo.get_branch_commits(branch)}
    strays = [
        str(Path(conf.results_dir) / get_filename(result.params["machine"], result.commit_hash, result.env_name))
        for result in Publish.iter_results(conf, repo, range_spec)
        if result.commit_hash not in on_branches
    ]
    if strays:
        branches = ", ".join(repo.get_branch_name(branch) for branch in conf.branches)
        refuse(
            f"the commits of these results are on no branch that asv.conf.json lists ({branches}), so no page would "
            f"show them rightly: {', '.join(strays)}. Add their branch to 'branches', or move the files away"
        )
