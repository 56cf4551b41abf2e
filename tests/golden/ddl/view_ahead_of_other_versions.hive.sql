CREATE OR REPLACE VIEW `lake`.`student_view` (
  `id`,
  `a`,
  `b`
)
COMMENT 'the newest row per key of lake.student'
TBLPROPERTIES (
  'schemasync.subject' = 'shop.student-value'
)
AS
SELECT
  t.`id` AS `id`,
  CASE WHEN t.`__schema_version` <= 1 THEN CAST(t.`a` AS bigint) ELSE t.`a__2` END AS `a`,
  t.`b` AS `b`
FROM `lake`.`student` t
WHERE t.`segment` BETWEEN 'base_s00000004' AND 'base_s00000009' AND t.`__tombstone` IS NULL
UNION ALL
SELECT
  t.`id` AS `id`,
  CASE WHEN t.`__schema_version` <= 1 THEN CAST(t.`a` AS bigint) ELSE t.`a__2` END AS `a`,
  t.`b` AS `b`
FROM `lake`.`student` t
LEFT JOIN (
  SELECT d.`id` AS schemasync_key1 FROM `lake`.`student` d WHERE d.`segment` = 'delta_00000007'
) k ON k.schemasync_key1 = t.`id`
WHERE (t.`segment` = 'base_s00000012' OR t.`segment` = 'delta_00000007') AND t.`__tombstone` IS NULL
AND (k.schemasync_key1 IS NULL OR t.`segment` = 'delta_00000007')
