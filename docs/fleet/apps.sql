-- Which apps wait for storage most, over all machines: their waits, the share of their response time, and
-- how many machines have them.
WITH runs AS (
    SELECT host, at_s, app, sum(waited_ns) AS waited_ns, max(app_cpu_ns) AS cpu_ns, max(longest_ns) AS longest_ns
    FROM apps
    WHERE app IS NOT NULL
    GROUP BY host, at_s, app
)
SELECT
    app,
    count(DISTINCT host) AS machines,
    round(sum(waited_ns) / 1e9, 1) AS waited_s,
    round(sum(waited_ns) * 1.0 / (sum(waited_ns) + sum(cpu_ns)), 3) AS share,
    round(max(longest_ns) / 1e9, 1) AS longest_s
FROM runs
GROUP BY app
ORDER BY waited_s DESC, app
LIMIT 20;
