"""What a scheduler of jobs is given, and what its monitoring is asked: scripts for Slurm, telemetry from Prometheus."""
