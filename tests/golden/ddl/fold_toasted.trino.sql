SELECT
  r."id",
  r."body",
  r."note",
  r."scan",
  r."tags",
  r."__op",
  r."__ts_ms",
  r."__seq1",
  r."__seq2",
  r."__offset",
  r."__schema_version",
  r."__admitted_ms",
  r."__tombstone",
  r.schemasync_was,
  r.schemasync_changed,
  r.schemasync_last,
  r.schemasync_purge,
  r.schemasync_arrival
FROM (
  SELECT
    t."id" AS "id",
    first_value(CASE WHEN t."__op" <> 'd' THEN t."body" END) OVER (PARTITION BY t."id" ORDER BY CASE WHEN t."__op" = 'u' AND t."body" = '__debezium_unavailable_value' THEN 1 ELSE 0 END, t."__seq1" IS NULL, t."__seq1" DESC, t."__seq2" IS NULL, t."__seq2" DESC, t."__offset" IS NULL, t."__offset" DESC, t."__admitted_ms" IS NULL, t."__admitted_ms" DESC, t."segment" ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS "body",
    t."note" AS "note",
    first_value(CASE WHEN t."__op" <> 'd' THEN t."scan" END) OVER (PARTITION BY t."id" ORDER BY CASE WHEN t."__op" = 'u' AND t."scan" = X'5F5F646562657A69756D5F756E617661696C61626C655F76616C7565' THEN 1 ELSE 0 END, t."__seq1" IS NULL, t."__seq1" DESC, t."__seq2" IS NULL, t."__seq2" DESC, t."__offset" IS NULL, t."__offset" DESC, t."__admitted_ms" IS NULL, t."__admitted_ms" DESC, t."segment" ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS "scan",
    first_value(CASE WHEN t."__op" <> 'd' THEN t."tags" END) OVER (PARTITION BY t."id" ORDER BY CASE WHEN t."__op" = 'u' AND (t."tags" = ARRAY['__debezium_unavailable_value'] OR t."tags" = ARRAY['b68a35a7-17ad-35b3-af2a-ae46edb4545a']) THEN 1 ELSE 0 END, t."__seq1" IS NULL, t."__seq1" DESC, t."__seq2" IS NULL, t."__seq2" DESC, t."__offset" IS NULL, t."__offset" DESC, t."__admitted_ms" IS NULL, t."__admitted_ms" DESC, t."segment" ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS "tags",
    t."__op" AS "__op",
    t."__ts_ms" AS "__ts_ms",
    t."__seq1" AS "__seq1",
    t."__seq2" AS "__seq2",
    t."__offset" AS "__offset",
    CAST(1 AS INT) AS "__schema_version",
    t."__admitted_ms" AS "__admitted_ms",
    t."__tombstone" AS "__tombstone",
    max((t."segment" = 'base') AND t."__op" <> 'd') OVER (PARTITION BY t."id") AS schemasync_was,
    max(NOT (t."segment" = 'base')) OVER (PARTITION BY t."id") AS schemasync_changed,
    NOT (t."segment" = 'base') AS schemasync_last,
    (t."segment" = 'base') AND t."__op" = 'd' AND (t."__admitted_ms" < 1789000000000 AND count(*) OVER (PARTITION BY t."id") = 1 OR t."id" IS NULL) AS schemasync_purge,
    count(*) OVER (PARTITION BY t."id") AS schemasync_arrival,
    row_number() OVER (PARTITION BY t."id" ORDER BY t."__seq1" IS NULL, t."__seq1" DESC, t."__seq2" IS NULL, t."__seq2" DESC, t."__offset" IS NULL, t."__offset" DESC, t."__admitted_ms" IS NULL, t."__admitted_ms" DESC, t."segment") AS schemasync_rank
  FROM (
    SELECT "id", "body", "note", "scan", "tags", "__op", "__ts_ms", "__seq1", "__seq2", "__offset", "__schema_version", "__admitted_ms", "__tombstone", 'base' AS "segment" FROM "lake"."student" t WHERE "segment" IN ('base_s00000000')
    UNION ALL
    SELECT "id", "body", "note", "scan", "tags", "__op", "__ts_ms", "__seq1", "__seq2", "__offset", "__schema_version", "__admitted_ms", "__tombstone", "segment" AS "segment" FROM "lake"."student" t WHERE "segment" IN ('delta_00000002', 'delta_00000003')
  ) t
) r
WHERE r.schemasync_rank = 1
