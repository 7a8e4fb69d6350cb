"""All trials of a run as one table of the HTML report: sorted, filtered and copied where a script runs."""
