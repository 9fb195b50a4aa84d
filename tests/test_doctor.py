"""The doctor on machines made of files, with a scripted nvidia-smi."""

import argparse
import json

import pytest

from ale_velocity import doctor, facts

CPUINFO = """processor\t: 0
model name\t: Fast CPU 9000
flags\t\t: fpu sse{hypervisor}

processor\t: 1
model name\t: Fast CPU 9000
flags\t\t: fpu sse{hypervisor}
"""
STEADY = {"drift": 0.01, "tries": 1, "steady": True, "cores_s": [0.0031, 0.0032]}


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    """The machine of the tests may have some set."""
    for name in facts.VARIABLES:
        monkeypatch.delenv(name, raising=False)


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def quiet_files():
    """A dedicated machine at rest."""
    return {
        "proc/cpuinfo": CPUINFO.format(hypervisor=""),
        "proc/loadavg": "0.02 0.01 0.00 1/100 4242\n",
        "proc/meminfo": "MemTotal: 16000000 kB\nMemAvailable: 8388608 kB\nSwapTotal: 1024 kB\nSwapFree: 1024 kB\n",
        "proc/stat": "cpu  900 0 50 9000 0 0 0 0 0 0\ncpu0 1 2 3\n",
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
        "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "performance\n",
        "sys/devices/system/cpu/intel_pstate/no_turbo": "1\n",
        "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count": "0\n",
    }


def disturbed_files():
    """A busy, hot, swapping guest with a quota."""
    return {
        "proc/cpuinfo": CPUINFO.format(hypervisor=" hypervisor"),
        "proc/loadavg": "3.50 1.0 0.5 1/100 4242\n",
        "proc/meminfo": "MemAvailable: 1024 kB\nSwapTotal: 2097152 kB\nSwapFree: 1048576 kB\n",
        "proc/stat": "cpu  500 0 0 450 0 0 0 50 0 0\n",
        "sys/class/dmi/id/sys_vendor": "ACME\n",
        "sys/class/dmi/id/product_name": "Cloud\n",
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
        "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "performance\n",
        "sys/devices/system/cpu/cpufreq/boost": "1\n",
        "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count": "3\n",
        "sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count": "4\n",
        "sys/fs/cgroup/cpu.max": "50000 100000\n",
        "sys/fs/cgroup/cpu.stat": "usage_usec 1\nnr_periods 9\nnr_throttled 6\n",
    }


def no_programs(_command):
    return None


def nvidia_smi(reasons, processes="", known_field="clocks_event_reasons.active"):
    """A driver with one GPU, that knows one of the two names of the reasons' field."""

    def run(command):
        if command[1].startswith("--query-compute-apps"):
            return processes
        if known_field not in command[1]:
            return None
        return f"NVIDIA H200, 570.1, 1200, 1980, 84, 699.90, 700.00, {reasons}\n"

    return run


def subjects(known):
    return [finding.subject for finding in doctor.findings({**known, "speed": STEADY}, threads=1)]


def test_a_quiet_machine_gets_no_findings(tmp_path):
    """Nothing is held against a machine at rest."""
    write(tmp_path, quiet_files())

    assert subjects(facts.gather(tmp_path, no_programs)) == []


def test_a_machine_that_tells_nothing_gets_no_findings(tmp_path):
    """Containers hide most files: what is unknown is not a finding."""
    assert subjects(facts.gather(tmp_path, no_programs)) == []


def test_a_disturbed_machine_gets_all_findings(tmp_path, monkeypatch):
    """Every disturbance that files can show is found."""
    write(tmp_path, disturbed_files())
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {0, 1})
    known = facts.gather(tmp_path, no_programs)

    assert subjects(known) == [
        "governor",
        "turbo",
        "heat",
        "quota",
        "load",
        "swap",
        "virtual machine",
        "stolen time",
    ]
    assert known["governors"] == {"powersave": 1, "performance": 1}
    assert (known["cpu_throttle_count"], known["swap_used_mb"], known["steal_share"]) == (7, 1024, 0.05)
    assert (known["quota_cpus"], known["usable_cpus"], known["quota_throttled"]) == (0.5, 1, 6)
    assert known["virtual_machine"] == "ACME Cloud"


def test_more_threads_than_cpus_is_a_finding(tmp_path, monkeypatch):
    """Threads that are asked for are compared with what affinity and quota leave."""
    write(tmp_path, quiet_files())
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {0, 1})
    (finding,) = doctor.findings({**facts.gather(tmp_path, no_programs), "speed": STEADY}, threads=16)

    assert finding.found == (
        "16 emulator threads are wanted, 2 CPUs are usable (affinity 2, cgroup quota none): 2 threads will be used"
    )


@pytest.mark.parametrize("field", facts.GPU_REASON_FIELDS)
def test_a_throttled_gpu_is_found_with_old_and_new_drivers(tmp_path, field):
    """Reasons are a bit mask; idling (bit 0) is none of them."""
    write(tmp_path, quiet_files())
    known = facts.gather(tmp_path, nvidia_smi("0x0000000000000045", known_field=field))
    (finding,) = doctor.findings({**known, "speed": STEADY}, threads=1)

    assert finding.found == (
        "NVIDIA H200 runs at 1200.0 of 1980.0 MHz, held back by power limit and temperature (hardware) "
        "(84.0 C, 699.9 of 700.0 W)"
    )


@pytest.mark.parametrize("reasons", ["0x0000000000000001", "[N/A]"])
def test_an_idle_gpu_is_no_finding(tmp_path, reasons):
    """Low clocks of an idle GPU, or of one that does not tell, are not throttling."""
    write(tmp_path, quiet_files())

    assert subjects(facts.gather(tmp_path, nvidia_smi(reasons))) == []


def test_other_processes_on_the_gpu_are_found(tmp_path):
    """Each is named with its id."""
    write(tmp_path, quiet_files())
    known = facts.gather(tmp_path, nvidia_smi("0x0", processes="77, /opt/train, v2\n"))
    (finding,) = doctor.findings({**known, "speed": STEADY}, threads=1)

    assert (finding.subject, finding.found) == ("GPU processes", "/opt/train, v2 (77)")


def test_drift_is_a_finding(tmp_path):
    """An unsteady machine is told so."""
    known = {**facts.gather(tmp_path, no_programs), "speed": {**STEADY, "drift": 0.2, "steady": False}}

    assert [finding.subject for finding in doctor.findings(known, threads=1)] == ["frequency drift"]


def test_a_core_slower_than_another_is_a_finding(tmp_path):
    """As where a neighbour has its sibling thread, which no load and no stolen time shows."""
    known = {**facts.gather(tmp_path, no_programs), "speed": {**STEADY, "cores_s": [0.0031, 0.0062, 0.0031]}}
    (finding,) = doctor.findings(known, threads=1)

    assert (finding.subject, "up to 100% more CPU time" in finding.found) == ("uneven cores", True)


def test_identity_is_what_comparable_results_share(tmp_path):
    """Clocks and load may differ between two runs, the hardware may not."""
    write(tmp_path, quiet_files())
    before = facts.gather(tmp_path, nvidia_smi("0x0"))
    write(tmp_path, {"proc/loadavg": "2.0 0 0 1/1 1\n"})
    after = facts.gather(tmp_path, nvidia_smi("0x4"))

    assert facts.identity(before) == facts.identity(after)
    assert facts.identity(before)["gpus"] == ["NVIDIA H200"]
    assert facts.identity(before) != facts.identity(facts.gather(tmp_path, no_programs))


def test_cpus_of_one_name_are_told_apart_where_their_numbers_are_known(tmp_path):
    """Two cloud machines, both 'AMD EPYC', took 3.3 and 2.1 ms for the same work; early results have the name only."""
    write(tmp_path, quiet_files())
    unnumbered = facts.gather(tmp_path, no_programs)
    older, newer = (
        facts.gather(numbered(tmp_path / family, f"cpu family\t: {family}\nmodel\t\t: 2\nstepping\t: 1\n"), no_programs)
        for family in ("25", "26")
    )

    assert newer["cpu_model"] == "family 26 model 2 stepping 1"
    assert facts.in_words(newer).startswith("Fast CPU 9000 (family 26 model 2 stepping 1), ")
    assert not facts.same_machine(facts.identity(older), facts.identity(newer))
    for numbers in (older, newer):
        assert facts.same_machine(facts.identity(unnumbered), facts.identity(numbers))
        assert facts.same_machine(facts.identity(numbers), facts.identity(unnumbered))


def numbered(root, lines):
    """Return a root whose first CPU has these lines."""
    write(root, {"proc/cpuinfo": CPUINFO.format(hypervisor="").replace("model name", f"{lines}model name", 1)})
    return root


def test_variables_that_move_rates_are_part_of_a_machine(tmp_path, monkeypatch):
    """Idle threads that sleep change a loop's rate by a fifth; the folder of a preloaded library tells of no speed."""
    write(tmp_path, quiet_files())
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {0, 1})
    plain = facts.gather(tmp_path, no_programs)
    monkeypatch.setenv("OMP_WAIT_POLICY", "PASSIVE")
    monkeypatch.setenv("LD_PRELOAD", "/home/someone/libjemalloc.so.2")
    monkeypatch.setenv("OMP_NUM_THREADS", "")
    known = facts.gather(tmp_path, no_programs)

    assert facts.in_words(plain) == "Fast CPU 9000, 2 usable CPUs"
    assert facts.in_words(known) == (
        "Fast CPU 9000, 2 usable CPUs, OMP_WAIT_POLICY=PASSIVE, LD_PRELOAD=libjemalloc.so.2"
    )
    assert facts.identity(plain) != facts.identity(known)
    earlier = {name: value for name, value in plain.items() if name != "variables"}
    assert facts.identity(plain) == facts.identity(earlier)
    assert subjects(known) == ["variables"]


@pytest.mark.parametrize(("visible", "asked"), [("1", ["--id=1"]), (None, [])])
def test_only_gpus_that_cuda_shows_are_facts(tmp_path, monkeypatch, visible, asked):
    """A scheduler gives a job some of a node's GPUs: the others are no part of what it measures on."""
    commands = []

    def run(command):
        commands.append(command)
        return nvidia_smi("0x0")(command)

    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert len(facts.gather(tmp_path, run)["gpus"]) == 1
    assert commands[0][3:] == asked


def test_no_gpu_is_a_fact_where_cuda_shows_none(tmp_path, monkeypatch):
    """An empty list of visible devices is a CPU run on a GPU machine."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert facts.gather(tmp_path, nvidia_smi("0x0"))["gpus"] == []


def test_the_command_runs_here(tmp_path, capsys):
    """On the real machine: exit code 0, facts and findings in print and in JSON."""
    path = tmp_path / "doctor.json"

    assert doctor.run(argparse.Namespace(threads=4096, json=path)) == 0
    written = json.loads(path.read_text())
    assert written["facts"]["num_cpus"] >= 1
    assert "threads" in [finding["subject"] for finding in written["findings"]]
    assert "4096 emulator threads are wanted" in capsys.readouterr().out
