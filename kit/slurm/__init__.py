"""Clusters under Slurm."""
