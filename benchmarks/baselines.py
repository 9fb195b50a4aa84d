"""What others would pick instead of ale-py's vector env."""


class Baselines:
    """How many env-steps/s do gymnasium's vector envs and EnvPool give when nothing is learnt?

    The same game, frameskip, preprocessing and counting as `EmulatorOnly`. Outside the clock: opening the envs.
    """

    params = (
        ["gymnasium_sync", "gymnasium_async", "envpool", "envpool_half_batches"],
        [1, 2, 4, 8, 16, 32, 64, 128, 256],
    )
    param_names = ("baseline", "num_envs")
    unit = "env-steps/s"
    version = "1-6d71051c"
    timeout = 3600

    def setup(self, baseline, num_envs):
        """Skip, with the reason, where the protocol has no such cell."""
        from ale_velocity import suite

        suite.require(num_envs, vector_env=False)

    def track_env_steps_per_second(self, baseline, num_envs):
        """Env-steps/s of each window."""
        from ale_velocity import suite

        return suite.measure_baseline(baseline, num_envs)
