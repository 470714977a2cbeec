-- The tables of a fleet in ClickHouse, as clickhouse-local or chdb; the working directory is that of `--fleet`.
SET use_hive_partitioning = 1;
CREATE VIEW apps AS SELECT * FROM file('apps/*/*/*.parquet', 'Parquet');
CREATE VIEW stalls AS SELECT * FROM file('stalls/*/*/*.parquet', 'Parquet');
CREATE VIEW disks AS SELECT * FROM file('disks/*/*/*.parquet', 'Parquet');
CREATE VIEW bench AS SELECT * FROM file('bench/*/*/*.parquet', 'Parquet');
