CREATE OR REPLACE VIEW "lake"."student_view" COMMENT 'the newest row per key of lake.student' AS
SELECT
  r."id",
  r."body",
  r."note",
  r."scan",
  r."tags"
FROM (
  SELECT
    t."id" AS "id",
    first_value(CASE WHEN t."__op" <> 'd' THEN t."body" END) OVER (PARTITION BY t."id" ORDER BY CASE WHEN t."__op" = 'u' AND t."body" = '__debezium_unavailable_value' THEN 1 ELSE 0 END, t."__seq1" IS NULL, t."__seq1" DESC, t."__seq2" IS NULL, t."__seq2" DESC, t."__offset" IS NULL, t."__offset" DESC, t."__admitted_ms" IS NULL, t."__admitted_ms" DESC, t."segment" ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS "body",
    t."note" AS "note",
    first_value(CASE WHEN t."__op" <> 'd' THEN t."scan" END) OVER (PARTITION BY t."id" ORDER BY CASE WHEN t."__op" = 'u' AND t."scan" = X'5F5F646562657A69756D5F756E617661696C61626C655F76616C7565' THEN 1 ELSE 0 END, t."__seq1" IS NULL, t."__seq1" DESC, t."__seq2" IS NULL, t."__seq2" DESC, t."__offset" IS NULL, t."__offset" DESC, t."__admitted_ms" IS NULL, t."__admitted_ms" DESC, t."segment" ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS "scan",
    first_value(CASE WHEN t."__op" <> 'd' THEN t."tags" END) OVER (PARTITION BY t."id" ORDER BY CASE WHEN t."__op" = 'u' AND (t."tags" = ARRAY['__debezium_unavailable_value'] OR t."tags" = ARRAY['b68a35a7-17ad-35b3-af2a-ae46edb4545a']) THEN 1 ELSE 0 END, t."__seq1" IS NULL, t."__seq1" DESC, t."__seq2" IS NULL, t."__seq2" DESC, t."__offset" IS NULL, t."__offset" DESC, t."__admitted_ms" IS NULL, t."__admitted_ms" DESC, t."segment" ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS "tags",
    t."__op" AS schemasync_op,
    row_number() OVER (PARTITION BY t."id" ORDER BY t."__seq1" IS NULL, t."__seq1" DESC, t."__seq2" IS NULL, t."__seq2" DESC, t."__offset" IS NULL, t."__offset" DESC, t."__admitted_ms" IS NULL, t."__admitted_ms" DESC, t."segment") AS schemasync_rank
  FROM "lake"."student" t
) r
WHERE r.schemasync_rank = 1 AND r.schemasync_op <> 'd'
