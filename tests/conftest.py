"""What holds for all tests: Hypothesis asserts no wall time, and tells how to replay a failure."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "trioloop",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.load_profile("trioloop")
