"""What holds for every test."""

from hypothesis import HealthCheck, settings

# How fast examples are made says something of the machine, not of the program.
settings.register_profile("steady", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")
