CREATE TABLE "lake"."student_history" (
  "version" integer COMMENT 'subject version',
  "applied_with" integer COMMENT 'version with which it was applied: itself or a later one, NULL where not recorded',
  "applied_at" timestamp(6) COMMENT 'when that was, NULL where not recorded',
  "verdict" varchar COMMENT 'what was decided then: evolve or migrate',
  "kind" varchar COMMENT 'add_column, drop_column, widen_column and so on, no_change where nothing changed',
  "column_name" varchar COMMENT 'column or path into a struct, NULL for the whole table',
  "physical" varchar COMMENT 'column of the long-lived table, NULL where it never had one',
  "from_value" varchar COMMENT 'type, name or whatever changed, before',
  "to_value" varchar COMMENT 'the same, after'
)
COMMENT 'which version of shop.student-value brought, changed and retired each column, and when'
WITH (
  format = 'PARQUET',
  external_location = 'file:/lake/it''s here/history/v=000002-1790000000000-0007'
)
