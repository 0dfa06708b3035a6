-- How evenly the ranks of a parallel program share each function, the one that waits cost most first.
--
-- `lost` is what would be saved if all ranks did the mean: the others wait for the one that does the most. A rank without a
-- function costs 0 there. Of several runs of a commit the last one is looked at.
WITH asked AS (
    -- A benchmark or a commit that is not named is any of them.
    SELECT 'Ir' AS event, CAST(NULL AS VARCHAR(99)) AS benchmark, CAST(NULL AS VARCHAR(99)) AS commit
),
costs AS (
    SELECT p.benchmark, p.commit, run, rank, function, min(time) AS time, CAST(sum(count) AS BIGINT) AS cost
    FROM profiles p JOIN asked a ON p.event = a.event
        AND p.benchmark IS NOT DISTINCT FROM coalesce(a.benchmark, p.benchmark)
        AND p.commit IS NOT DISTINCT FROM coalesce(a.commit, p.commit)
    WHERE rank IS NOT NULL
    GROUP BY p.benchmark, p.commit, run, rank, function
),
runs AS (
    SELECT benchmark, commit, run,
           row_number() OVER (PARTITION BY benchmark ORDER BY max(time) DESC, commit DESC, run DESC) AS back
    FROM costs GROUP BY benchmark, commit, run
),
latest AS (
    SELECT c.benchmark, rank, function, cost
    FROM costs c JOIN runs r ON r.back = 1 AND c.benchmark IS NOT DISTINCT FROM r.benchmark
        AND c.commit IS NOT DISTINCT FROM r.commit AND c.run IS NOT DISTINCT FROM r.run
),
sizes AS (
    SELECT benchmark, count(DISTINCT rank) AS ranks FROM latest GROUP BY benchmark
)
SELECT l.benchmark, function, ranks,
       CASE WHEN count(*) < ranks THEN least(0, min(cost)) ELSE min(cost) END AS min,
       sum(cost) / ranks AS mean,
       max(cost) AS max,
       round(max(cost) / (sum(cost) / ranks), 3) AS max_by_mean,
       max_by(rank, cost) AS max_rank,
       max(cost) - sum(cost) / ranks AS lost
FROM latest l JOIN sizes ON l.benchmark IS NOT DISTINCT FROM sizes.benchmark
GROUP BY l.benchmark, function, ranks
ORDER BY lost DESC, l.benchmark, function;
