CREATE TABLE IF NOT EXISTS "lake"."student_base" (
  "id" bigint,
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
WITH (
  format = 'PARQUET',
  partitioned_by = ARRAY['segment'],
  external_location = 'file:/lake/student/base/g=000001/s=0000'
);

CREATE TABLE IF NOT EXISTS "lake"."student_incremental_2026112010" (
  "before" row(id bigint, c0 boolean, c1 real, c2 double, c3 varbinary, c4 bigint, c5 decimal(21,2), tags array(row(name varchar, "order" integer)), labels map(varchar, array(date))),
  "after" row(id bigint, c0 boolean, c1 real, c2 double, c3 varbinary, c4 bigint, c5 decimal(21,2), tags array(row(name varchar, "order" integer)), labels map(varchar, array(date))),
  "source" row(lsn bigint),
  "op" varchar,
  "ts_ms" bigint
)
WITH (
  format = 'PARQUET',
  external_location = 'file:/lake/student/incremental/increment_2026112010'
);

CREATE TABLE IF NOT EXISTS "lake"."student_incremental_2026112011" (
  "before" row(id bigint, c0 boolean, c1 real, c2 double, c3 varbinary, c4 bigint, c5 decimal(21,2), tags array(row(name varchar, "order" integer)), labels map(varchar, array(date))),
  "after" row(id bigint, c0 boolean, c1 real, c2 double, c3 varbinary, c4 bigint, c5 decimal(21,2), tags array(row(name varchar, "order" integer)), labels map(varchar, array(date))),
  "source" row(lsn bigint),
  "op" varchar,
  "ts_ms" bigint
)
WITH (
  format = 'PARQUET',
  external_location = 'file:/lake/student/incremental/increment_2026112011'
);

CREATE TABLE IF NOT EXISTS "lake"."student_compactor" (
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
  "__tombstone" boolean COMMENT 'TRUE in a deleted row, NULL in all others'
)
WITH (
  format = 'PARQUET',
  external_location = 'file:/lake/student/base/g=000002/s=0000'
)
