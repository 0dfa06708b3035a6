-- Functions that became dearer from one commit to the next, over the last year, the dearest growth first.
--
-- A commit may have several runs: its cost is the median. Commits are in the order of their first profiles. A function that
-- is new counts with all of its cost.
WITH asked AS (
    -- By more than so many percent; functions that are smaller than `least` percent of the whole are left out.
    SELECT 'Ir' AS event, 5 AS percent, 0.1 AS least
),
runs AS (
    -- Added up first: all else is about a row for each function of a run, and not of a line.
    SELECT benchmark, commit, run, function, min(time) AS time, CAST(sum(count) AS BIGINT) AS cost
    FROM profiles
    WHERE event = (SELECT event FROM asked)
    GROUP BY benchmark, commit, run, function
),
recent AS (
    SELECT * FROM runs WHERE time >= (SELECT max(time) - INTERVAL 1 YEAR FROM runs)
),
commits AS (
    SELECT benchmark, commit, min(time) AS time,
           row_number() OVER (PARTITION BY benchmark ORDER BY min(time), commit) AS number
    FROM recent GROUP BY benchmark, commit
),
costs AS (
    SELECT benchmark, commit, function, median(cost) AS cost FROM recent GROUP BY benchmark, commit, function
),
totals AS (
    SELECT benchmark, commit, sum(cost) AS total FROM costs GROUP BY benchmark, commit
),
functions AS (
    SELECT DISTINCT benchmark, function FROM costs
),
steps AS (
    -- Every function at every commit of its benchmark, so that one that is missing costs 0 there.
    SELECT c.benchmark, c.commit, c.time, c.number, f.function, t.total, coalesce(costs.cost, 0) AS cost,
           lag(coalesce(costs.cost, 0)) OVER (PARTITION BY c.benchmark, f.function ORDER BY c.number) AS before
    FROM commits c
    JOIN functions f ON f.benchmark IS NOT DISTINCT FROM c.benchmark
    JOIN totals t ON t.benchmark IS NOT DISTINCT FROM c.benchmark AND t.commit IS NOT DISTINCT FROM c.commit
    LEFT JOIN costs ON costs.benchmark IS NOT DISTINCT FROM c.benchmark
        AND costs.commit IS NOT DISTINCT FROM c.commit AND costs.function = f.function
)
SELECT benchmark, commit, time, function, CAST(before AS BIGINT) AS before, CAST(cost AS BIGINT) AS after,
       CAST(cost - before AS BIGINT) AS growth, round(100 * (cost - before) / nullif(before, 0), 2) AS percent
FROM steps CROSS JOIN (SELECT percent AS above, least FROM asked) a
WHERE before IS NOT NULL AND cost > before * (1 + above / 100) AND cost >= total * least / 100
ORDER BY growth DESC, benchmark, commit, function;
