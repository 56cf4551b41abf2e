SELECT
  r.`id__2`,
  r.`full_name`,
  r.`born`,
  r.`address__2`,
  r.`select`,
  r.`first-seen`,
  r.`segment__2`,
  r.`__op`,
  r.`__ts_ms`,
  r.`__seq1`,
  r.`__seq2`,
  r.`__offset`,
  r.`__schema_version`,
  r.`__admitted_ms`,
  r.`__tombstone`,
  r.schemasync_was,
  r.schemasync_changed,
  r.schemasync_last,
  r.schemasync_purge,
  r.schemasync_arrival
FROM (
  SELECT
    CASE WHEN t.`__schema_version` <= 1 THEN CAST(t.`id` AS bigint) ELSE t.`id__2` END AS `id__2`,
    t.`full_name` AS `full_name`,
    t.`born` AS `born`,
    CASE WHEN t.`__schema_version` <= 1 THEN CASE WHEN t.`address` IS NOT NULL THEN named_struct('street', t.`address`.`street`, 'zip', t.`address`.`zip`, 'country', CAST(NULL AS string)) END ELSE t.`address__2` END AS `address__2`,
    CASE WHEN t.`__schema_version` <= 1 THEN CAST('0.01' AS decimal(10,2)) ELSE t.`select` END AS `select`,
    CASE WHEN t.`__schema_version` <= 1 THEN CAST('1969-12-31 23:59:59.999000' AS timestamp) ELSE t.`first-seen` END AS `first-seen`,
    t.`segment__2` AS `segment__2`,
    t.`__op` AS `__op`,
    t.`__ts_ms` AS `__ts_ms`,
    t.`__seq1` AS `__seq1`,
    t.`__seq2` AS `__seq2`,
    t.`__offset` AS `__offset`,
    CAST(2 AS INT) AS `__schema_version`,
    t.`__admitted_ms` AS `__admitted_ms`,
    t.`__tombstone` AS `__tombstone`,
    max((t.`segment` = 'base') AND t.`__op` <> 'd') OVER (PARTITION BY CASE WHEN t.`__schema_version` <= 1 THEN CAST(t.`id` AS bigint) ELSE t.`id__2` END) AS schemasync_was,
    max(NOT (t.`segment` = 'base')) OVER (PARTITION BY CASE WHEN t.`__schema_version` <= 1 THEN CAST(t.`id` AS bigint) ELSE t.`id__2` END) AS schemasync_changed,
    NOT (t.`segment` = 'base') AS schemasync_last,
    (t.`segment` = 'base') AND t.`__op` = 'd' AND (t.`__admitted_ms` < 1789000000000 AND count(*) OVER (PARTITION BY CASE WHEN t.`__schema_version` <= 1 THEN CAST(t.`id` AS bigint) ELSE t.`id__2` END) = 1 OR CASE WHEN t.`__schema_version` <= 1 THEN CAST(t.`id` AS bigint) ELSE t.`id__2` END IS NULL) AS schemasync_purge,
    count(*) OVER (PARTITION BY CASE WHEN t.`__schema_version` <= 1 THEN CAST(t.`id` AS bigint) ELSE t.`id__2` END) AS schemasync_arrival,
    row_number() OVER (PARTITION BY CASE WHEN t.`__schema_version` <= 1 THEN CAST(t.`id` AS bigint) ELSE t.`id__2` END ORDER BY t.`__seq1` IS NULL, t.`__seq1` DESC, t.`__seq2` IS NULL, t.`__seq2` DESC, t.`__offset` IS NULL, t.`__offset` DESC, t.`__admitted_ms` IS NULL, t.`__admitted_ms` DESC, t.`segment`) AS schemasync_rank
  FROM (
    SELECT `id`, `full_name`, `born`, `address`, `gone`, `id__2`, `address__2`, `select`, `first-seen`, `segment__2`, `__op`, `__ts_ms`, `__seq1`, `__seq2`, `__offset`, `__schema_version`, `__admitted_ms`, `__tombstone`, 'base' AS `segment` FROM `lake`.`student` t WHERE `segment` IN ('base_s00000000')
    UNION ALL
    SELECT `id`, `full_name`, `born`, `address`, `gone`, `id__2`, `address__2`, `select`, `first-seen`, `segment__2`, `__op`, `__ts_ms`, `__seq1`, `__seq2`, `__offset`, `__schema_version`, `__admitted_ms`, `__tombstone`, `segment` AS `segment` FROM `lake`.`student` t WHERE FALSE
  ) t
) r
WHERE r.schemasync_rank = 1
