-- The ten functions whose share of the whole grew most from the first commit of the last year to the last one.
WITH asked AS (
    SELECT 'Ir' AS event
),
costs AS (
    SELECT benchmark, commit, function, min(time) AS time, CAST(sum(count) AS BIGINT) AS cost
    FROM profiles
    WHERE event = (SELECT event FROM asked)
    GROUP BY benchmark, commit, function
),
recent AS (
    SELECT * FROM costs WHERE time >= (SELECT max(time) - INTERVAL 1 YEAR FROM costs)
),
ends AS (
    SELECT benchmark, min_by(commit, time) AS oldest, max_by(commit, time) AS newest FROM recent GROUP BY benchmark
),
shares AS (
    -- Runs of a commit are alike or add up alike: shares need no division by their number.
    SELECT r.benchmark, r.commit = e.newest AS is_newest, function,
           100 * cost / sum(cost) OVER (PARTITION BY r.benchmark, r.commit) AS share
    FROM recent r JOIN ends e ON r.benchmark IS NOT DISTINCT FROM e.benchmark AND r.commit IN (e.oldest, e.newest)
),
ranked AS (
    SELECT benchmark, function,
           round(coalesce(max(CASE WHEN is_newest THEN NULL ELSE share END), 0), 3) AS first_percent,
           round(coalesce(max(CASE WHEN is_newest THEN share END), 0), 3) AS last_percent
    FROM shares
    GROUP BY benchmark, function
)
SELECT benchmark, function, first_percent, last_percent, round(last_percent - first_percent, 3) AS grown
FROM ranked
ORDER BY grown DESC, benchmark, function
LIMIT 10;
