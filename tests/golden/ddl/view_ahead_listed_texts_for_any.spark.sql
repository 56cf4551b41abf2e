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
WHERE (t.`segment` BETWEEN 'base_s00000004' AND 'base_s00000009' OR t.`segment` = 'base_s00000012' OR t.`segment` = 'delta_00000007') AND t.`__tombstone` IS NULL
AND (t.`segment` >= 'delta_00000007' OR CASE WHEN t.`id` IN ('', '0b1e-4', 'a b') THEN 1 ELSE 0 END = 0)
