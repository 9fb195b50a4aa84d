"""A benchmark's version moves when its numbers may: with the protocol, and with the code that is measured.

`python tests/test_versions.py` stores the digests of the sources as they are now. Do that after deciding
whether the change moves a number; if it does, bump the benchmark's version first and log it in CHANGELOG.md
under "Measurement".
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import importlib.util
import json
import re
from pathlib import Path

import pytest

from ale_velocity import envs
from ale_velocity.cell import Cell
from ale_velocity.measure import PROTOCOLS

ROOT = Path(__file__).parent.parent
STORED = Path(__file__).with_name("measured_sources.json")
SHARED = [
    *("measure.py", "cell.py", "envs.py", "backends.py", "checked.py"),
    *("loops/step.py", "loops/send_recv.py", "loops/part_batches.py"),
]
TORCH_OPS = ["loops/torch_ops.py", "loops/torch_registration.py"]
AGENT = ["agents/graphed.py", "agents/torch_agent.py", "agents/torch_device.py", "agents/nature.py"]
DQN = [*SHARED, *TORCH_OPS, *AGENT, "agents/dqn.py"]
PPO = [*SHARED, *AGENT, "agents/ppo.py"]
# Which sources each benchmark times, below src/ale_velocity/.
SOURCES = {
    "baselines.Baselines": [*SHARED, "baselines.py", "agents/emulator.py"],
    "dqn.DqnTraining": DQN,
    "dqn.DqnTrainingGraphed": DQN,
    "dqn.DqnFixedReplayRatio": DQN,
    "emulator.EmulatorOnly": [*SHARED, *TORCH_OPS, "loops/ping_pong.py", "agents/emulator.py"],
    "learner.LearnerOnly": [*SHARED, *AGENT, "agents/dqn.py"],
    "overlap.OverlapEfficiency": [*DQN, "overlap.py", "agents/emulator.py"],
    "ppo.PpoTraining": PPO,
    "ppo.PpoTrainingGraphed": PPO,
}


def protocol_digest():
    """Return 8 hex digits over everything that the protocol fixes."""
    cell = dataclasses.asdict(Cell("", "", 0, PROTOCOLS["standard"]))
    fixed = {
        "protocols": {name: dataclasses.asdict(protocol) for name, protocol in PROTOCOLS.items()},
        "windows": {name: [p.window_iterations(n) for n in p.counts] for name, p in PROTOCOLS.items()},
        "cell": {name: cell[name] for name in ("train_freq", "batch_size", "buffer_cap")},
        "env": [envs.FRAMESKIP, envs.MAX_THREADS, envs.SEED],
    }
    return hashlib.sha256(json.dumps(fixed, sort_keys=True).encode()).hexdigest()[:8]


def source_digest(path):
    """Return 8 hex digits over the lines of code: without docstrings, comment lines and blank lines."""
    text = path.read_text(encoding="utf-8")
    documentation = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            documentation.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    code = [
        line.rstrip()
        for number, line in enumerate(text.splitlines(), start=1)
        if number not in documentation and line.strip() and not line.strip().startswith("#")
    ]
    return hashlib.sha256("\n".join(code).encode()).hexdigest()[:8]


def benchmark_version(name):
    """Return the version that a benchmark class declares."""
    module, cls = name.split(".")
    spec = importlib.util.spec_from_file_location(module, ROOT / "benchmarks" / f"{module}.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return getattr(loaded, cls).version


def current():
    """Return the digest of every measured source, and the version of every benchmark."""
    paths = sorted({path for paths in SOURCES.values() for path in paths})
    return {
        "sources": {path: source_digest(ROOT / "src" / "ale_velocity" / path) for path in paths},
        "versions": {name: benchmark_version(name) for name in SOURCES},
    }


@pytest.mark.parametrize("name", SOURCES)
def test_the_version_holds_the_protocols_digest(name):
    """A version is a hand-bumped number and the digest of the protocol."""
    assert re.fullmatch(rf"\d+-{protocol_digest()}", benchmark_version(name))


@pytest.mark.parametrize("name", SOURCES)
def test_measured_sources_change_with_the_version_only(name):
    """A changed loop needs a decision: see this file's first lines."""
    stored, now = json.loads(STORED.read_text(encoding="utf-8")), current()
    changed = [path for path in SOURCES[name] if now["sources"][path] != stored["sources"].get(path)]
    assert changed == []
    assert now["versions"][name] == stored["versions"][name]


def test_comments_do_not_change_a_digest(tmp_path):
    """Only code counts."""
    (tmp_path / "a.py").write_text('"""One."""\n\n# why\ndef f():\n    """Two."""\n    return 1\n')
    (tmp_path / "b.py").write_text('"""Other."""\ndef f():\n    """Another."""\n\n    # because\n    return 1\n')
    (tmp_path / "c.py").write_text('"""Other."""\ndef f():\n    """Another."""\n    return 2\n')
    a, b, c = (source_digest(tmp_path / name) for name in ("a.py", "b.py", "c.py"))
    assert a == b
    assert a != c


if __name__ == "__main__":
    STORED.write_text(json.dumps(current(), indent=2) + "\n", encoding="utf-8")
