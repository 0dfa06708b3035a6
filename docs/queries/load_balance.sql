-- How evenly the ranks of a parallel program share each function, the one that waits cost most first.
--
-- `lost` is what would be saved if all ranks did the mean: the others wait for the one that does the most. A rank without a
-- function costs 0 there. Of several runs of a commit the last one is looked at.
WITH costs AS MATERIALIZED (
    SELECT benchmark, "commit", run, rank, function, max("time") AS "time", sum("count") AS cost
    FROM read_parquet(coalesce(getvariable('store'), 'store') || '/**/*.parquet', hive_partitioning = true,
                      hive_types = {'benchmark': VARCHAR, 'commit': VARCHAR, 'run': VARCHAR})
    WHERE event = coalesce(getvariable('event'), 'Ir') AND rank IS NOT NULL
      AND (getvariable('benchmark') IS NULL OR benchmark = getvariable('benchmark'))
      AND (getvariable('commit') IS NULL OR "commit" = getvariable('commit'))
    GROUP BY ALL
),
last AS (
    SELECT benchmark, arg_max({'c': "commit", 'r': run}, "time") AS at FROM costs GROUP BY benchmark
),
run AS (
    SELECT r.benchmark, rank, function, cost
    FROM costs r JOIN last l ON r.benchmark IS NOT DISTINCT FROM l.benchmark
        AND r."commit" IS NOT DISTINCT FROM l.at.c AND r.run IS NOT DISTINCT FROM l.at.r
),
ranks AS (
    SELECT benchmark, count(DISTINCT rank) AS ranks FROM run GROUP BY benchmark
)
SELECT r.benchmark, function, ranks,
       (CASE WHEN count(*) < ranks THEN least(0, min(cost)) ELSE min(cost) END)::BIGINT AS min,
       sum(cost) / ranks AS mean,
       max(cost)::BIGINT AS max,
       round(max(cost) / (sum(cost) / ranks), 3) AS max_by_mean,
       arg_max(rank, cost) AS max_rank,
       max(cost) - sum(cost) / ranks AS lost
FROM run r JOIN ranks ON r.benchmark IS NOT DISTINCT FROM ranks.benchmark
GROUP BY r.benchmark, function, ranks
ORDER BY lost DESC, r.benchmark, function;
