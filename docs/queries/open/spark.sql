-- The data set in the folder that `-d store=…` names, as the view that the queries ask. Names of commits are not numbers.
SET spark.sql.sources.partitionColumnTypeInference.enabled = false;
CREATE OR REPLACE TEMPORARY VIEW profiles USING parquet OPTIONS (path '${store}');
