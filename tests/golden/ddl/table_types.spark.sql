CREATE EXTERNAL TABLE `lake`.`student` (
  `id` bigint,
  `c0` boolean,
  `c1` float,
  `c2` double,
  `c3` binary,
  `c4` timestamp,
  `c5` decimal(10,2),
  `tags` array<struct<name:string,order:int>>,
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
COMMENT 'shop.student-value: query student_view instead, it shows the newest row per key'
PARTITIONED BY (`segment` string COMMENT 'base_*: shards; delta_*: changes admitted since')
STORED AS PARQUET
LOCATION 'file:/lake/it\'s here'
TBLPROPERTIES (
  'schemasync.baseline' = '2',
  'schemasync.columns' = 'c0',
  'schemasync.fingerprint' = 'fp2',
  'schemasync.generation' = '0',
  'schemasync.keys' = '["id"]',
  'schemasync.lives' = 'l0',
  'schemasync.ordering' = '[["source/lsn", "bigint", "plain"], ["ts_ms", "bigint", "plain"]]',
  'schemasync.schema_id' = '102',
  'schemasync.state' = '000000@2',
  'schemasync.subject' = 'shop.student-value',
  'schemasync.version' = '2'
)
