"""Shell for Slurm: a job script with a recorder on every node, and prolog and epilogs for scripts of one's own."""
