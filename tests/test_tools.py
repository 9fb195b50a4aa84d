"""The scripts in tools/ start, and their summaries say what was measured."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest


def run(root, *arguments):
    return subprocess.run([sys.executable, *arguments], cwd=root, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("script", ["fidelity.py", "gpu_check.py", "in_turn.py", "interference.py"])
def test_a_script_says_what_it_does(root, script):
    """Nothing is measured by asking for help."""
    done = run(root, f"tools/{script}", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "a smoke test" in done.stdout


def test_the_summary_names_limits_and_failures(root, tmp_path):
    """The best loop against the half-batch ceiling and the eager blocking loop; what is n/a and what failed."""

    def row(learner, loop, rate, emulator):
        rates = {"loop": rate, "emulator": emulator, "learner": 9000}
        head = {"agent": "dqn", "learner": learner, "loop": loop, "num_envs": 16}
        return {**head, "env_steps_per_second": rates, "sequential": 1234, "overlap_percent": 50.0}

    parts = {
        "checks": [{"tests": "test_graphed.py", "code": 1, "last_line": "1 failed"}],
        "eager": [row("eager", "step", 4000, 8000)],
        "graphed": [
            row("graphed", "half_batches", 6000, 16000),
            row("graphed", "ping_pong", 12000, 15000),
            {"agent": "dqn", "learner": "graphed", "loop": "step", "num_envs": 16, "reason": "no CUDA"},
        ],
        "fidelity": [{"loop": "step", "num_envs": 1, "device": "cuda", "ratio": 0.99, "low": 0.98, "high": 1.0}],
    }
    parts["fidelity"][0]["ours"] = [1.0, 2.0]
    for part, results in parts.items():
        (tmp_path / f"{part}.json").write_text(json.dumps(results))
    done = run(root, "tools/gpu_check.py", str(tmp_path), "--summary")
    assert done.returncode == 0
    assert "test_graphed.py: FAILED: 1 failed" in done.stdout
    assert (
        "best: ping_pong 12,000, 75% of the half-batch emulator ceiling 16,000, 3.00x the eager blocking loop"
        in done.stdout
    )
    assert "step          n/a: no CUDA" in done.stdout
    assert "step n=1 (cuda): 0.990 of the bare loop (95% interval 0.980 to 1.000, 2 pairs of windows)" in done.stdout
    assert (tmp_path / "summary.txt").read_text() == done.stdout
