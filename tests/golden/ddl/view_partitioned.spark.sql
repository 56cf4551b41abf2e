CREATE OR REPLACE VIEW `lake`.`student_view` (
  `id`,
  `body`,
  `note`,
  `scan`,
  `tags`,
  `bucket`,
  `letter`,
  `__op` COMMENT 'c create, u update, r snapshot read, d delete',
  `__ts_ms` COMMENT 'time of the event, ms since 1970 UTC',
  `__segment` COMMENT 'base_*: shards; delta_*: changes admitted since'
)
COMMENT 'the newest row per key of lake.student'
TBLPROPERTIES (
  'schemasync.subject' = 'shop.student-value'
)
AS
SELECT
  r.`id`,
  r.`body`,
  r.`note`,
  r.`scan`,
  r.`tags`,
  r.`bucket`,
  r.`letter`,
  r.`__op`,
  r.`__ts_ms`,
  r.`__segment`
FROM (
  SELECT
    t.`id` AS `id`,
    t.`body` AS `body`,
    t.`note` AS `note`,
    t.`scan` AS `scan`,
    t.`tags` AS `tags`,
    t.`bucket` AS `bucket`,
    t.`letter` AS `letter`,
    t.`__op` AS `__op`,
    t.`__ts_ms` AS `__ts_ms`,
    t.`segment` AS `__segment`,
    t.`__op` AS schemasync_op,
    row_number() OVER (PARTITION BY t.`id` ORDER BY t.`__seq1` IS NULL, t.`__seq1` DESC, t.`__seq2` IS NULL, t.`__seq2` DESC, t.`__offset` IS NULL, t.`__offset` DESC, t.`__admitted_ms` IS NULL, t.`__admitted_ms` DESC, t.`segment`) AS schemasync_rank
  FROM `lake`.`student` t
  WHERE (t.`segment` BETWEEN 'base_s00000004' AND 'base_s00000009' OR t.`segment` = 'base_s00000012' OR t.`segment` = 'delta_00000007')
) r
WHERE r.schemasync_rank = 1 AND r.schemasync_op <> 'd'
