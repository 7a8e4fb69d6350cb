"""Files of others become tables. One folder a kind, one file a dialect, one registry a kind."""
