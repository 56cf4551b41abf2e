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
  SELECT d.`id` AS schemasync_key1 FROM `lake`.`student` d WHERE d.`segment` BETWEEN 'delta_00000007' AND 'delta_00000008'
) k ON k.schemasync_key1 = t.`id`
WHERE t.`segment` BETWEEN 'base_s00000004' AND 'base_s00000009' AND t.`__tombstone` IS NULL
AND (k.schemasync_key1 IS NULL OR t.`segment` = 'delta_00000008')
UNION ALL
SELECT
  r.`id`,
  r.`Name`,
  r.`born`,
  r.`address`,
  r.`select`,
  r.`first-seen`,
  r.`segment`
FROM (
  SELECT
    t.`id` AS `id`,
    t.`name` AS `Name`,
    t.`born` AS `born`,
    t.`address` AS `address`,
    t.`select` AS `select`,
    t.`first-seen` AS `first-seen`,
    t.`segment__2` AS `segment`,
    t.`__op` AS schemasync_op,
    SUM(1) OVER (PARTITION BY t.`id` ORDER BY t.`__seq1` IS NULL, t.`__seq1` DESC, t.`__seq2` IS NULL, t.`__seq2` DESC, t.`__offset` IS NULL, t.`__offset` DESC, t.`__admitted_ms` IS NULL, t.`__admitted_ms` DESC, t.`segment` ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS schemasync_rank
  FROM `lake`.`student` t
  WHERE t.`segment` BETWEEN 'delta_00000007' AND 'delta_00000008'
) r
WHERE r.schemasync_rank = 1 AND r.schemasync_op <> 'd'
