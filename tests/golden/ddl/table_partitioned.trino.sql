CREATE TABLE "lake"."student" (
  "id__2" bigint COMMENT 'the student''s number',
  "full_name" varchar COMMENT 'since 2: "Name" the student''s `full` name',
  "born" date,
  "address__2" row(street varchar, zip integer, country varchar),
  "select" decimal(10,2),
  "first-seen" timestamp(6),
  "segment__2" varchar,
  "__op" varchar COMMENT 'c create, u update, r snapshot read, d delete',
  "__ts_ms" bigint COMMENT 'time of the event, ms since 1970 UTC',
  "__seq1" bigint COMMENT 'ordering key 1: ts_ms',
  "__offset" bigint COMMENT 'place in the topic partition, where known',
  "__schema_version" integer COMMENT 'subject version the row was written under',
  "__admitted_ms" bigint COMMENT 'when schemasync admitted it, ms since 1970 UTC',
  "__tombstone" boolean COMMENT 'TRUE in a deleted row, NULL in all others',
  "segment" varchar COMMENT 'base_*: shards; delta_*: changes admitted since',
  "bucket" integer
)
COMMENT 'shop.student-value: query student_view instead, it shows the newest row per key'
WITH (
  format = 'PARQUET',
  partitioned_by = ARRAY['segment', 'bucket'],
  external_location = 'file:/lake/it''s here'
)
