-- The data set in the folder `store`, or the one that the variable names, as the view that the queries ask.
CREATE OR REPLACE VIEW profiles AS
SELECT *
FROM read_parquet(coalesce(getvariable('store'), 'store') || '/**/*.parquet', hive_partitioning = true,
                  hive_types = {'benchmark': VARCHAR, 'commit': VARCHAR, 'run': VARCHAR});
