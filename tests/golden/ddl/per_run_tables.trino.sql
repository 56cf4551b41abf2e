CREATE TABLE IF NOT EXISTS "lake"."student_base" (
  "id" integer,
  "full_name" varchar,
  "born" date,
  "address" row(street varchar, zip integer),
  "gone" varchar,
  "id__2" bigint,
  "__op" varchar COMMENT 'c create, u update, r snapshot read, d delete',
  "__ts_ms" bigint COMMENT 'time of the event, ms since 1970 UTC',
  "__seq1" bigint COMMENT 'ordering key 1: ts_ms',
  "__offset" bigint COMMENT 'place in the topic partition, where known',
  "__schema_version" integer COMMENT 'subject version the row was written under',
  "__admitted_ms" bigint COMMENT 'when schemasync admitted it, ms since 1970 UTC',
  "__tombstone" boolean COMMENT 'TRUE in a deleted row, NULL in all others',
  "segment" varchar COMMENT 'base_*: shards; delta_*: changes admitted since'
)
WITH (
  format = 'PARQUET',
  partitioned_by = ARRAY['segment'],
  external_location = 'file:/lake/student/base/g=000001/s=0000'
);

CREATE TABLE IF NOT EXISTS "lake"."student_incremental_2026112010" (
  "id" bigint,
  "Name" varchar,
  "born" date,
  "address" row(street varchar, zip integer, country varchar),
  "select" decimal(21,2),
  "first-seen" bigint,
  "segment" varchar,
  "op" varchar,
  "ts_ms" bigint
)
WITH (
  format = 'PARQUET',
  external_location = 'file:/lake/student/incremental/increment_2026112010'
);

CREATE TABLE IF NOT EXISTS "lake"."student_incremental_2026112011" (
  "id" bigint,
  "Name" varchar,
  "born" date,
  "address" row(street varchar, zip integer, country varchar),
  "select" decimal(21,2),
  "first-seen" bigint,
  "segment" varchar,
  "op" varchar,
  "ts_ms" bigint
)
WITH (
  format = 'PARQUET',
  external_location = 'file:/lake/student/incremental/increment_2026112011'
);

CREATE TABLE IF NOT EXISTS "lake"."student_compactor" (
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
  "__tombstone" boolean COMMENT 'TRUE in a deleted row, NULL in all others'
)
WITH (
  format = 'PARQUET',
  external_location = 'file:/lake/student/base/g=000002/s=0000'
)
