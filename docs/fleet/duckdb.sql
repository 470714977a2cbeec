-- The tables of a fleet in DuckDB; the working directory is that of `--fleet`.
CREATE VIEW apps AS SELECT * FROM read_parquet('apps/*/*/*.parquet', hive_partitioning = true, hive_types = {'host': VARCHAR, 'day': DATE});
CREATE VIEW stalls AS SELECT * FROM read_parquet('stalls/*/*/*.parquet', hive_partitioning = true, hive_types = {'host': VARCHAR, 'day': DATE});
CREATE VIEW disks AS SELECT * FROM read_parquet('disks/*/*/*.parquet', hive_partitioning = true, hive_types = {'host': VARCHAR, 'day': DATE});
CREATE VIEW bench AS SELECT * FROM read_parquet('bench/*/*/*.parquet', hive_partitioning = true, hive_types = {'host': VARCHAR, 'day': DATE});
