CREATE EXTERNAL TABLE IF NOT EXISTS `lake`.`student_base` (
  `id` bigint,
  `__op` string COMMENT 'c create, u update, r snapshot read, d delete',
  `__ts_ms` bigint COMMENT 'time of the event, ms since 1970 UTC',
  `__seq1` bigint COMMENT 'ordering key 1: source.lsn',
  `__seq2` bigint COMMENT 'ordering key 2: ts_ms',
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
  `before` struct<`id`:bigint,`c0`:boolean,`c1`:float,`c2`:double,`c3`:binary,`c4`:bigint,`c5`:decimal(21,2),`tags`:array<struct<`name`:string,`order`:int>>,`labels`:map<string,array<date>>>,
  `after` struct<`id`:bigint,`c0`:boolean,`c1`:float,`c2`:double,`c3`:binary,`c4`:bigint,`c5`:decimal(21,2),`tags`:array<struct<`name`:string,`order`:int>>,`labels`:map<string,array<date>>>,
  `source` struct<`lsn`:bigint>,
  `op` string,
  `ts_ms` bigint
)
STORED AS PARQUET
LOCATION 'file:/lake/student/incremental/increment_2026112010'
TBLPROPERTIES (
  'schemasync.per_run_of' = 'student'
);

CREATE EXTERNAL TABLE IF NOT EXISTS `lake`.`student_incremental_2026112011` (
  `before` struct<`id`:bigint,`c0`:boolean,`c1`:float,`c2`:double,`c3`:binary,`c4`:bigint,`c5`:decimal(21,2),`tags`:array<struct<`name`:string,`order`:int>>,`labels`:map<string,array<date>>>,
  `after` struct<`id`:bigint,`c0`:boolean,`c1`:float,`c2`:double,`c3`:binary,`c4`:bigint,`c5`:decimal(21,2),`tags`:array<struct<`name`:string,`order`:int>>,`labels`:map<string,array<date>>>,
  `source` struct<`lsn`:bigint>,
  `op` string,
  `ts_ms` bigint
)
STORED AS PARQUET
LOCATION 'file:/lake/student/incremental/increment_2026112011'
TBLPROPERTIES (
  'schemasync.per_run_of' = 'student'
);

CREATE EXTERNAL TABLE IF NOT EXISTS `lake`.`student_compactor` (
  `id` bigint,
  `c0` boolean,
  `c1` float,
  `c2` double,
  `c3` binary,
  `c4` timestamp,
  `c5` decimal(10,2),
  `tags` array<struct<`name`:string,`order`:int>>,
  `labels` map<string,array<date>>,
  `__op` string COMMENT 'c create, u update, r snapshot read, d delete',
  `__ts_ms` bigint COMMENT 'time of the event, ms since 1970 UTC',
  `__seq1` bigint COMMENT 'ordering key 1: source.lsn',
  `__seq2` bigint COMMENT 'ordering key 2: ts_ms',
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
