CREATE EXTERNAL TABLE IF NOT EXISTS `lake`.`student_base` (
  `id` int,
  `full_name` string,
  `born` date,
  `address` struct<`street`:string,`zip`:int>,
  `gone` string,
  `id__2` bigint,
  `__op` string COMMENT 'c create, u update, r snapshot read, d delete',
  `__ts_ms` bigint COMMENT 'time of the event, ms since 1970 UTC',
  `__seq1` bigint COMMENT 'ordering key 1: ts_ms',
  `__offset` bigint COMMENT 'place in the topic partition, where known',
  `__schema_version` int COMMENT 'subject version the row was written under',
  `__admitted_ms` bigint COMMENT 'when schemasync admitted it, ms since 1970 UTC',
  `__tombstone` boolean COMMENT 'TRUE in a deleted row, NULL in all others'
)
PARTITIONED BY (`segment` string COMMENT 'base_*: shards; delta_*: changes admitted since')
STORED AS PARQUET
LOCATION 'file:/lake/student/base/g=000001/s=0000'
TBLPROPERTIES (
  'schemasync.per_run_of' = 'student'
);

CREATE EXTERNAL TABLE IF NOT EXISTS `lake`.`student_incremental_2026112010` (
  `id` bigint,
  `Name` string,
  `born` date,
  `address` struct<`street`:string,`zip`:int,`country`:string>,
  `select` decimal(21,2),
  `first-seen` bigint,
  `segment` string,
  `op` string,
  `ts_ms` bigint
)
STORED AS PARQUET
LOCATION 'file:/lake/student/incremental/increment_2026112010'
TBLPROPERTIES (
  'schemasync.per_run_of' = 'student'
);

CREATE EXTERNAL TABLE IF NOT EXISTS `lake`.`student_incremental_2026112011` (
  `id` bigint,
  `Name` string,
  `born` date,
  `address` struct<`street`:string,`zip`:int,`country`:string>,
  `select` decimal(21,2),
  `first-seen` bigint,
  `segment` string,
  `op` string,
  `ts_ms` bigint
)
STORED AS PARQUET
LOCATION 'file:/lake/student/incremental/increment_2026112011'
TBLPROPERTIES (
  'schemasync.per_run_of' = 'student'
);

CREATE EXTERNAL TABLE IF NOT EXISTS `lake`.`student_compactor` (
  `id__2` bigint COMMENT 'the student\'s number',
  `full_name` string COMMENT 'since 2: "Name" the student\'s `full` name',
  `born` date,
  `address__2` struct<`street`:string,`zip`:int,`country`:string>,
  `select` decimal(10,2),
  `first-seen` timestamp,
  `segment__2` string,
  `__op` string COMMENT 'c create, u update, r snapshot read, d delete',
  `__ts_ms` bigint COMMENT 'time of the event, ms since 1970 UTC',
  `__seq1` bigint COMMENT 'ordering key 1: ts_ms',
  `__offset` bigint COMMENT 'place in the topic partition, where known',
  `__schema_version` int COMMENT 'subject version the row was written under',
  `__admitted_ms` bigint COMMENT 'when schemasync admitted it, ms since 1970 UTC',
  `__tombstone` boolean COMMENT 'TRUE in a deleted row, NULL in all others'
)
STORED AS PARQUET
LOCATION 'file:/lake/student/base/g=000002/s=0000'
TBLPROPERTIES (
  'schemasync.per_run_of' = 'student'
)
