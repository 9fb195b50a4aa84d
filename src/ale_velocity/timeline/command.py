"""`ale-velocity timeline`: build, list, check and refresh the timeline; name the stack of a release."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ale_velocity import files
from ale_velocity.errors import VelocityError
from ale_velocity.timeline import index, manifest, refresh, writer

if TYPE_CHECKING:
    import argparse


def add_command(subparsers: Any) -> None:
    """Add `timeline` and its subcommands."""
    parser = subparsers.add_parser("timeline", help="the releases that asv walks, one commit each")
    actions = parser.add_subparsers(title="actions", required=True, metavar="ACTION")

    build = _add(actions, "build", _build, "write the git repository; asv does this by itself when it needs to")
    build.add_argument(
        "--rewrite", action="store_true", help="replace history that changed; results lose their commits"
    )
    _add(actions, "list", _list, "list every commit with its stack and date")
    _add(actions, "check", _check, "check the manifest and say what is wrong and where")
    renew = _add(actions, "refresh", _refresh, "append new releases that the package index has to the manifest")
    renew.add_argument("series", nargs="*", metavar="SERIES", help="series to look at; default: all")
    renew.add_argument("--index", metavar="URL", help="the index's simple API (usually .../simple); default: as pip")
    renew.add_argument("--dry-run", action="store_true", help="only show what would be appended")
    renew.add_argument(
        "--names-to", type=Path, metavar="FILE", help="write the new releases' names to FILE, one a line"
    )
    stack = _add(actions, "stack", _stack, "print the requirements of a release's stack, for pip install")
    stack.add_argument("release", help="a release's name, such as ale-py-0.12.1")


def _add(actions: Any, name: str, run: Any, text: str) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=text, description=text)
    parser.add_argument("--manifest", type=Path, default=Path("releases.toml"), help="default: releases.toml here")
    parser.set_defaults(run=run)
    return parser


def _build(arguments: argparse.Namespace) -> int:
    commits = writer.build(arguments.manifest, rewrite=arguments.rewrite)
    print(f"{len(commits)} releases in {writer.repository_path(arguments.manifest)}")
    return 0


def _list(arguments: argparse.Namespace) -> int:
    commits = writer.build(arguments.manifest)
    for series in manifest.load(arguments.manifest):
        held = ", ".join(f"{package} {pin}" for package, pin in series.held.items())
        print(f"{series.name}: {series.package} moves; held: {held}")
        for release in series.releases:
            note = f"  ({release.note})" if release.note else ""
            stack = " ".join(release.requirements)
            print(f"  {commits[release.name][:8]}  {release.date:%Y-%m-%d}  {release.name:<16} {stack}{note}")
    return 0


def _check(arguments: argparse.Namespace) -> int:
    series = manifest.load(arguments.manifest)
    counts = ", ".join(f"{one.name} {len(one.releases)}" for one in series)
    print(f"{arguments.manifest}: no problems found (releases: {counts})")
    return 0


def _refresh(arguments: argparse.Namespace) -> int:
    path, names_to = arguments.manifest, arguments.names_to
    if names_to and not names_to.absolute().parent.is_dir():
        raise VelocityError(f"--names-to {names_to}: there is no folder {names_to.absolute().parent}")
    old = manifest.read(path)
    chosen = refresh.choose(arguments.series, manifest.parse(old, path))
    url = arguments.index or index.default_url()
    offered = {package: index.releases(url, package) for package in dict.fromkeys(one.package for one in chosen)}
    now = dt.datetime.now(dt.timezone.utc)
    found = [refresh.news(one, offered[one.package], now) for one in chosen]
    new = refresh.appended(old, found, path)
    for one in found:
        print(f"{one.series.name}: {', '.join(one.names) or f'nothing new after {one.series.releases[-1].version}'}")
        for reason in one.left_out:
            print(f"{one.series.name}: left out: {reason}")
    names = [name for one in found for name in one.names]
    if names:
        print(refresh.diff(old, new, path))
        if not arguments.dry_run:
            files.replace(path, new)
    done = "would append" if arguments.dry_run else "appended"
    print(f"{path}: {done} {len(names)} releases" if names else f"{path}: nothing to append")
    if names_to:
        names_to.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
    return 0


def _stack(arguments: argparse.Namespace) -> int:
    print("\n".join(manifest.find(manifest.load(arguments.manifest), arguments.release).requirements))
    return 0
