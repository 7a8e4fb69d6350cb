"""Data sets of many Parquet files: Hive partitions found, and read host by host."""
