CREATE TABLE "lake"."student" (
  "id" bigint,
  "c0" boolean,
  "c1" real,
  "c2" double,
  "c3" varbinary,
  "c4" timestamp(6),
  "c5" decimal(10,2),
  "tags" array(row(name varchar, "order" integer)),
  "labels" map(varchar, array(date)),
  "__op" varchar COMMENT 'c create, u update, r snapshot read, d delete',
  "__ts_ms" bigint COMMENT 'time of the event, ms since 1970 UTC',
  "__seq1" bigint COMMENT 'ordering key 1: source.lsn',
  "__seq2" bigint COMMENT 'ordering key 2: ts_ms',
  "__offset" bigint COMMENT 'place in the topic partition, where known',
  "__schema_version" integer COMMENT 'subject version the row was written under',
  "__admitted_ms" bigint COMMENT 'when schemasync admitted it, ms since 1970 UTC',
  "__tombstone" boolean COMMENT 'TRUE in a deleted row, NULL in all others',
  "segment" varchar COMMENT 'base_*: shards; delta_*: changes admitted since'
)
COMMENT 'shop.student-value: query student_view instead, it shows the newest row per key'
WITH (
  format = 'PARQUET',
  partitioned_by = ARRAY['segment'],
  external_location = 'file:/lake/it''s here'
)
