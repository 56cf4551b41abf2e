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
AND (t.`segment` >= 'delta_00000007' OR CASE WHEN array_contains(get(from_json('[[],["a-11"],["a-16","a-21"],["a-19"],["a-17","a-20"],["a-18"],[],["a-10"],["a-15"],[],[],["a-12"],[],["a-13"],["a-14"],[]]', 'ARRAY<ARRAY<STRING>>'), CAST((crc32(CAST(t.`id` AS BINARY))) & 15 AS INT)), t.`id`) THEN 1 ELSE 0 END = 0)
