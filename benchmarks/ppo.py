"""PPO training: long rollouts, learnt from in large minibatches."""


class PpoTraining:
    """How many env-steps/s does a PPO training loop reach, and has async less to hide here than for DQN?

    A window is whole rollouts with their updates. Outside the clock: opening the envs, compilation, one rollout.
    """

    params = (["step", "send_recv", "double_buffer"], [1, 2, 4, 8, 16, 32, 64, 128, 256])
    param_names = ("loop", "num_envs")
    unit = "env-steps/s"
    version = "2-6d71051c"
    timeout = 3600

    def setup(self, loop, num_envs):
        """Skip, with the reason, where the release or the protocol has no such cell."""
        from ale_velocity import suite

        suite.require(num_envs)

    def track_env_steps_per_second(self, loop, num_envs):
        """Env-steps/s of each window."""
        from ale_velocity import suite

        return suite.measure_cell("ppo", loop, num_envs)


class PpoTrainingGraphed:
    """The work of `PpoTraining` with launches, allocations and waits taken out by CUDA graphs: what is left to gain?

    n/a without CUDA; torch has one CPU thread. Outside the clock: opening the envs, captures, one rollout.
    """

    params = (["step", "send_recv", "double_buffer"], [1, 2, 4, 8, 16, 32, 64, 128, 256])
    param_names = ("loop", "num_envs")
    unit = "env-steps/s"
    version = "3-6d71051c"
    timeout = 3600

    def setup(self, loop, num_envs):
        """Skip, with the reason, where the release or the protocol has no such cell."""
        from ale_velocity import suite

        suite.require(num_envs)

    def track_env_steps_per_second(self, loop, num_envs):
        """Env-steps/s of each window."""
        from ale_velocity import suite

        return suite.measure_cell("ppo", loop, num_envs, learner="graphed")
