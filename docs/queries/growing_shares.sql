-- The ten functions whose share of the whole grew most from the first commit of the last year to the last one.
WITH costs AS MATERIALIZED (
    SELECT benchmark, "commit", function, min("time") AS "time", sum("count") AS cost
    FROM read_parquet(coalesce(getvariable('store'), 'store') || '/**/*.parquet', hive_partitioning = true,
                      hive_types = {'benchmark': VARCHAR, 'commit': VARCHAR, 'run': VARCHAR})
    WHERE event = coalesce(getvariable('event'), 'Ir')
    GROUP BY ALL
),
recent AS (
    SELECT * FROM costs WHERE "time" >= (SELECT max("time") - INTERVAL 1 YEAR FROM costs)
),
ends AS (
    SELECT benchmark, arg_min("commit", "time") AS first, arg_max("commit", "time") AS last
    FROM recent GROUP BY benchmark
),
shares AS (
    -- Runs of a commit are alike or add up alike: shares need no division by their number.
    SELECT r.benchmark, r."commit" = e.last AS is_last, function,
           cost / sum(cost) OVER (PARTITION BY r.benchmark, r."commit") AS share
    FROM recent r JOIN ends e ON r.benchmark IS NOT DISTINCT FROM e.benchmark AND r."commit" IN (e.first, e.last)
)
SELECT benchmark, function,
       round(100 * coalesce(max(share) FILTER (NOT is_last), 0), 3) AS first_percent,
       round(100 * coalesce(max(share) FILTER (is_last), 0), 3) AS last_percent,
       round(last_percent - first_percent, 3) AS grown
FROM shares
GROUP BY benchmark, function
ORDER BY grown DESC, benchmark, function
LIMIT 10;
