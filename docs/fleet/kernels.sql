-- What changed with a kernel: on machines that were measured with two kernels, each figure with the last over the
-- same with the first, as the geometric mean over machines, and on how many machines it rose by more than 5 %.
WITH means AS (
    SELECT
        host, kernel, device, scheduler, workload, background, metric, unit,
        avg(value) AS mean, min(at_s) AS begin_s
    FROM bench
    GROUP BY host, kernel, device, scheduler, workload, background, metric, unit
),
seen AS (
    SELECT host, kernel, min(begin_s) AS since_s FROM means GROUP BY host, kernel
),
ends AS (
    SELECT host, min(since_s) AS first_s, max(since_s) AS last_s FROM seen GROUP BY host
),
firsts AS (
    SELECT seen.host AS host, seen.kernel AS kernel
    FROM seen JOIN ends ON seen.host = ends.host AND seen.since_s = ends.first_s
),
lasts AS (
    SELECT seen.host AS host, seen.kernel AS kernel
    FROM seen JOIN ends ON seen.host = ends.host AND seen.since_s = ends.last_s
),
ratios AS (
    SELECT
        firsts.host AS host, firsts.kernel AS kernel_before, lasts.kernel AS kernel_after,
        older.workload AS workload, older.background AS background, older.metric AS metric, older.unit AS unit,
        newer.mean / older.mean AS ratio
    FROM firsts
    JOIN lasts ON firsts.host = lasts.host
    JOIN means AS older ON older.host = firsts.host AND older.kernel = firsts.kernel
    JOIN means AS newer ON newer.host = lasts.host AND newer.kernel = lasts.kernel
        AND newer.device = older.device AND newer.scheduler = older.scheduler
        AND newer.workload = older.workload AND newer.background = older.background
        AND newer.metric = older.metric AND newer.unit = older.unit
    WHERE firsts.kernel <> lasts.kernel AND older.mean > 0 AND newer.mean > 0
)
SELECT
    kernel_before, kernel_after, workload, background, metric, unit,
    count(DISTINCT host) AS machines,
    round(exp(avg(ln(ratio))), 3) AS after_over_before,
    count(DISTINCT CASE WHEN ratio > 1.05 THEN host END) AS machines_that_rose
FROM ratios
GROUP BY kernel_before, kernel_after, workload, background, metric, unit
ORDER BY machines DESC, abs(avg(ln(ratio))) DESC, kernel_before, kernel_after, workload, background, metric;
