-- Which models of disks stall: seconds lost to them in an hour of watching, summed over tasks, and on how many
-- machines with that model anything was lost.
SELECT
    disk_model,
    count(DISTINCT host) AS machines,
    count(DISTINCT CASE WHEN lost_ns > 0 THEN host END) AS machines_that_stall,
    round(sum(watched_ns) / 3.6e12, 1) AS watched_h,
    round(sum(lost_ns) * 3600.0 / sum(watched_ns), 1) AS lost_s_per_h,
    round(max(longest_ns) / 1e9, 1) AS longest_s
FROM disks
WHERE disk_model IS NOT NULL
GROUP BY disk_model
ORDER BY lost_s_per_h DESC, disk_model
LIMIT 20;
