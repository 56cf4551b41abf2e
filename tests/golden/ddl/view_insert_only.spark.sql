CREATE OR REPLACE VIEW `lake`.`student_view` (
  `id` COMMENT 'the student\'s number',
  `Name` COMMENT 'since 2: "Name" the student\'s `full` name',
  `born`,
  `address`,
  `select`,
  `first-seen`,
  `segment`
)
COMMENT 'every event but deletes of lake.student'
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
WHERE t.`__tombstone` IS NULL
