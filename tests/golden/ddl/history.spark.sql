CREATE EXTERNAL TABLE `lake`.`student_history` (
  `version` int COMMENT 'subject version',
  `applied_with` int COMMENT 'version with which it was applied: itself or a later one, NULL where not recorded',
  `applied_at` timestamp COMMENT 'when that was, NULL where not recorded',
  `verdict` string COMMENT 'what was decided then: evolve or migrate',
  `kind` string COMMENT 'add_column, drop_column, widen_column and so on, no_change where nothing changed',
  `column_name` string COMMENT 'column or path into a struct, NULL for the whole table',
  `physical` string COMMENT 'column of the long-lived table, NULL where it never had one',
  `from_value` string COMMENT 'type, name or whatever changed, before',
  `to_value` string COMMENT 'the same, after'
)
COMMENT 'which version of shop.student-value brought, changed and retired each column, and when'
STORED AS PARQUET
LOCATION 'file:/lake/it\'s here/history/v=000002-1790000000000-0007'
TBLPROPERTIES (
  'schemasync.history_hash' = '0f',
  'schemasync.history_of' = 'student'
)
