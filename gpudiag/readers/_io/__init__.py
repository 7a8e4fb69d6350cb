"""What reads bytes, texts, SQLite files and Parquet files for every reader."""
