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
  r.`id`,
  r.`Name`,
  r.`born`,
  r.`address`,
  r.`select`,
  r.`first-seen`,
  r.`segment`
FROM (
  SELECT
    CASE WHEN t.`__schema_version` <= 1 THEN CAST(t.`id` AS bigint) ELSE t.`id__2` END AS `id`,
    t.`full_name` AS `Name`,
    t.`born` AS `born`,
    CASE WHEN t.`__schema_version` <= 1 THEN CASE WHEN t.`address` IS NOT NULL THEN named_struct('street', t.`address`.`street`, 'zip', t.`address`.`zip`, 'country', CAST(NULL AS string)) END ELSE t.`address__2` END AS `address`,
    CASE WHEN t.`__schema_version` <= 1 THEN CAST('0.01' AS decimal(10,2)) ELSE t.`select` END AS `select`,
    CASE WHEN t.`__schema_version` <= 1 THEN CAST('1969-12-31 23:59:59.999000' AS timestamp) ELSE t.`first-seen` END AS `first-seen`,
    t.`segment__2` AS `segment`,
    t.`__op` AS schemasync_op,
    row_number() OVER (PARTITION BY CASE WHEN t.`__schema_version` <= 1 THEN CAST(t.`id` AS bigint) ELSE t.`id__2` END ORDER BY t.`__seq1` IS NULL, t.`__seq1` DESC, t.`__seq2` IS NULL, t.`__seq2` DESC, t.`__offset` IS NULL, t.`__offset` DESC, t.`__admitted_ms` IS NULL, t.`__admitted_ms` DESC, t.`segment`) AS schemasync_rank
  FROM `lake`.`student` t
  WHERE (t.`segment` BETWEEN 'base_s00000004' AND 'base_s00000009' OR t.`segment` = 'base_s00000012' OR t.`segment` = 'delta_00000007')
) r
WHERE r.schemasync_rank = 1 AND r.schemasync_op <> 'd'
