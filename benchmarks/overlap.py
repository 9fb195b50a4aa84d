"""How near the loops come to the limit that emulator and learner set."""


class OverlapEfficiency:
    """How much of min(emulator alone, learner alone) does a DQN loop reach, in percent?

    All three are measured in one process, the ceilings in the same loop. Outside the clocks: opening the envs,
    compilation, the first replay fill.
    """

    params = (["step", "send_recv", "torch_ops", "double_buffer"], [1, 2, 4, 8, 16, 32, 64, 128, 256])
    param_names = ("loop", "num_envs")
    unit = "percent of ceiling"
    version = "2-6d71051c"
    timeout = 3600

    def setup(self, loop, num_envs):
        """Skip, with the reason, where the release or the protocol has no such cell."""
        from ale_velocity import suite

        suite.require(num_envs)

    def track_overlap_efficiency(self, loop, num_envs):
        """Percent of the lower ceiling, of each window."""
        from ale_velocity import suite

        return suite.measure_overlap("dqn", loop, num_envs)
