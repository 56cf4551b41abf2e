CREATE OR REPLACE VIEW `lake`.`student_view` (
  `id` COMMENT 'the student\'s number',
  `Name` COMMENT 'since 2: "Name" the student\'s `full` name',
  `born`,
  `address`,
  `select`,
  `first-seen`,
  `segment`
)
COMMENT 'the newest row per key of lake.student'
TBLPROPERTIES (
  'schemasync.subject' = 'shop.student-value'
)
AS
SELECT
  t.`id` AS `id`,
  t.`name` AS `Name`,
  t.`born` AS `born`,
  t.`address` AS `address`,
  t.`select` AS `select`,
  t.`first-seen` AS `first-seen`,
  t.`segment__2` AS `segment`
FROM `lake`.`student` t
WHERE (t.`segment` BETWEEN 'base_s00000004' AND 'base_s00000009' OR t.`segment` BETWEEN 'delta_00000007' AND 'delta_00000008') AND t.`__tombstone` IS NULL
AND (t.`segment` >= 'delta_00000007' OR CASE WHEN array_contains(get(from_json('[[-7,3,1099511627776]]', 'ARRAY<ARRAY<BIGINT>>'), 0), t.`id`) THEN 1 ELSE 0 END = 0)
AND (t.`segment` >= 'delta_00000008' OR CASE WHEN t.`id` BETWEEN -65536 AND 63934463 THEN coalesce(getbit(get(CAST(split('1,0,-9223372036854775808', ',') AS ARRAY<BIGINT>), CAST(shiftright(t.`id` - (-65536), 6) AS INT)), CAST(t.`id` & 63 AS INT)), 0) ELSE 0 END = 0)
