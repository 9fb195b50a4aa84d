"""What asv stores is never lost while it stores more."""

from __future__ import annotations

import json
import resource

import pytest
from asv import util

from ale_velocity.asv_plugin import defaults

write_json = defaults.whole_or_not_at_all(util.write_json)


@pytest.fixture
def _small_files():
    """Let no file grow beyond 4 KB, as on a disk that fills up: the system cuts the write short."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_file_is_replaced_as_asv_writes_it(tmp_path):
    """With the version, in a folder that is made for it, and nothing else is left there."""
    path = tmp_path / "machine" / "results.json"
    for rate in (1.5, 2.5):
        write_json(str(path), {"rate": rate}, 2, compact=True)
    assert json.loads(path.read_text()) == {"rate": 2.5, "version": 2}
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.usefixtures("_small_files")
def test_a_full_disk_leaves_what_was_stored(tmp_path):
    """asv's own function would have left the first half of the new file; the message names file, cause and way out."""
    path = tmp_path / "results.json"
    write_json(str(path), {"rate": 1.5})
    with pytest.raises(util.UserError, match=r"results.json could not be written: .*free some space, then go on"):
        write_json(str(path), {"rates": list(range(10_000))})
    assert json.loads(path.read_text()) == {"rate": 1.5}
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_stored_leaves_what_was(tmp_path):
    """Not only a full disk stops a write half way."""
    path = tmp_path / "results.json"
    write_json(str(path), {"rate": 1.5})
    with pytest.raises(TypeError):
        write_json(str(path), {"rate": object()})
    assert json.loads(path.read_text()) == {"rate": 1.5}
    assert list(tmp_path.iterdir()) == [path]
