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
WHERE t.`segment` BETWEEN 'base_s00000004' AND 'base_s00000009' AND t.`__tombstone` IS NULL
UNION ALL
SELECT /*+ MAPJOIN(k) */
  t.`id` AS `id`,
  t.`name` AS `Name`,
  t.`born` AS `born`,
  t.`address` AS `address`,
  t.`select` AS `select`,
  t.`first-seen` AS `first-seen`,
  t.`segment__2` AS `segment`
FROM `lake`.`student` t
LEFT JOIN (
  SELECT w.schemasync_word, SUM(CAST(1 AS BIGINT) * CASE WHEN w.schemasync_bit % 32 >= 16 THEN 65536 ELSE 1 END * CASE WHEN w.schemasync_bit % 16 >= 8 THEN 256 ELSE 1 END * CASE WHEN w.schemasync_bit % 8 >= 4 THEN 16 ELSE 1 END * CASE WHEN w.schemasync_bit % 4 >= 2 THEN 4 ELSE 1 END * CASE WHEN w.schemasync_bit % 2 >= 1 THEN 2 ELSE 1 END) AS schemasync_bits FROM (
    SELECT d.`id` - ((d.`id` % 32 + 32) % 32) AS schemasync_word, ((d.`id` % 32 + 32) % 32) AS schemasync_bit
    FROM `lake`.`student` d WHERE d.`segment` = 'delta_00000007'
  ) w
  GROUP BY w.schemasync_word
) k ON k.schemasync_word = t.`id` - ((t.`id` % 32 + 32) % 32)
WHERE (t.`segment` = 'base_s00000012' OR t.`segment` = 'delta_00000007') AND t.`__tombstone` IS NULL
AND (k.schemasync_word IS NULL OR floor(k.schemasync_bits / (CAST(1 AS BIGINT) * CASE WHEN ((t.`id` % 32 + 32) % 32) % 32 >= 16 THEN 65536 ELSE 1 END * CASE WHEN ((t.`id` % 32 + 32) % 32) % 16 >= 8 THEN 256 ELSE 1 END * CASE WHEN ((t.`id` % 32 + 32) % 32) % 8 >= 4 THEN 16 ELSE 1 END * CASE WHEN ((t.`id` % 32 + 32) % 32) % 4 >= 2 THEN 4 ELSE 1 END * CASE WHEN ((t.`id` % 32 + 32) % 32) % 2 >= 1 THEN 2 ELSE 1 END)) % 2 = 0 OR t.`segment` = 'delta_00000007')
