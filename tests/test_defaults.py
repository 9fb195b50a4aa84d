"""What asv stores is never lost while it stores more."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from asv import util

from ale_velocity.asv_plugin import defaults

write_json = defaults.whole_or_not_at_all(util.write_json)


# In a process of its own, whose files cannot grow beyond 4 KB: the system cuts a write short, as a full disk does.
FULL_DISK = """
import resource, sys
from asv import util
from ale_velocity.asv_plugin import defaults
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    defaults.whole_or_not_at_all(util.write_json)(sys.argv[1], {"rates": list(range(10_000))})
except util.UserError as error:
    print(error)
"""


def test_a_file_is_replaced_as_asv_writes_it(tmp_path):
    """With the version, in a folder that is made for it, and nothing else is left there."""
    path = tmp_path / "machine" / "results.json"
    for rate in (1.5, 2.5):
        write_json(str(path), {"rate": rate}, 2, compact=True)
    assert json.loads(path.read_text()) == {"rate": 2.5, "version": 2}
    assert list(path.parent.iterdir()) == [path]


def test_a_full_disk_leaves_what_was_stored(tmp_path):
    """asv's own function would have left the first half of the new file; the message names file, cause and way out."""
    path = tmp_path / "results.json"
    write_json(str(path), {"rate": 1.5})
    done = subprocess.run([sys.executable, "-c", FULL_DISK, str(path)], capture_output=True, text=True, check=True)
    assert f"{path} could not be written: File too large" in done.stdout
    assert "free some space, then go on" in done.stdout
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
