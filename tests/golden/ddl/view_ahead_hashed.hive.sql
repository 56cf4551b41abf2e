CREATE OR REPLACE VIEW `lake`.`student_view` (
  `id`,
  `n`
)
COMMENT 'the newest row per key of lake.student'
TBLPROPERTIES (
  'schemasync.subject' = 'shop.student-value'
)
AS
SELECT
  t.`id` AS `id`,
  t.`n` AS `n`
FROM `lake`.`student` t
WHERE t.`segment` BETWEEN 'base_s00000004' AND 'base_s00000009' AND t.`__tombstone` IS NULL
UNION ALL
SELECT
  t.`id` AS `id`,
  t.`n` AS `n`
FROM `lake`.`student` t
LEFT JOIN (
  SELECT d.`id` AS schemasync_key1 FROM `lake`.`student` d WHERE d.`segment` = 'delta_00000007'
) k ON k.schemasync_key1 = t.`id`
WHERE (t.`segment` = 'base_s00000012' OR t.`segment` = 'delta_00000007') AND t.`__tombstone` IS NULL
AND (k.schemasync_key1 IS NULL OR t.`segment` = 'delta_00000007')
