"""From the rows of a telemetry reader to the tables of the schema."""
