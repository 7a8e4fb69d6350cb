"""Functions from one profile to one matplotlib Figure. One topic a file, the same names as in measures/."""
