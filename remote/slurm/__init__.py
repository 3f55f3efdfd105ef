"""The harness as a task of a Slurm job."""
