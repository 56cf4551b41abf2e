CREATE OR REPLACE VIEW "lake"."student_view" COMMENT 'the newest row per key of lake.student' AS
SELECT
  r."id",
  r."body",
  r."note",
  r."scan",
  r."tags",
  r."bucket",
  r."letter"
FROM (
  SELECT
    t."id" AS "id",
    CASE WHEN first_value(CASE WHEN t."__op" <> 'd' AND t."body" IS NULL THEN 1 END) OVER (PARTITION BY t."id" ORDER BY CASE WHEN t."__op" = 'u' AND t."body" = '__debezium_unavailable_value' THEN 1 ELSE 0 END, t."__seq1" IS NULL, t."__seq1" DESC, t."__seq2" IS NULL, t."__seq2" DESC, t."__offset" IS NULL, t."__offset" DESC, t."__admitted_ms" IS NULL, t."__admitted_ms" DESC, t."segment" ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) = 1 THEN t."body" ELSE first_value(CASE WHEN t."__op" <> 'd' THEN t."body" END) OVER (PARTITION BY t."id" ORDER BY CASE WHEN t."__op" = 'u' AND t."body" = '__debezium_unavailable_value' THEN 1 ELSE 0 END, t."__seq1" IS NULL, t."__seq1" DESC, t."__seq2" IS NULL, t."__seq2" DESC, t."__offset" IS NULL, t."__offset" DESC, t."__admitted_ms" IS NULL, t."__admitted_ms" DESC, t."segment" ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) END AS "body",
    t."note" AS "note",
    t."scan" AS "scan",
    CASE WHEN first_value(CASE WHEN t."__op" <> 'd' AND t."tags" IS NULL THEN 1 END) OVER (PARTITION BY t."id" ORDER BY CASE WHEN t."__op" = 'u' AND (t."tags" = ARRAY['__debezium_unavailable_value'] OR t."tags" = ARRAY['b68a35a7-17ad-35b3-af2a-ae46edb4545a']) THEN 1 ELSE 0 END, t."__seq1" IS NULL, t."__seq1" DESC, t."__seq2" IS NULL, t."__seq2" DESC, t."__offset" IS NULL, t."__offset" DESC, t."__admitted_ms" IS NULL, t."__admitted_ms" DESC, t."segment" ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) = 1 THEN t."tags" ELSE first_value(CASE WHEN t."__op" <> 'd' THEN t."tags" END) OVER (PARTITION BY t."id" ORDER BY CASE WHEN t."__op" = 'u' AND (t."tags" = ARRAY['__debezium_unavailable_value'] OR t."tags" = ARRAY['b68a35a7-17ad-35b3-af2a-ae46edb4545a']) THEN 1 ELSE 0 END, t."__seq1" IS NULL, t."__seq1" DESC, t."__seq2" IS NULL, t."__seq2" DESC, t."__offset" IS NULL, t."__offset" DESC, t."__admitted_ms" IS NULL, t."__admitted_ms" DESC, t."segment" ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) END AS "tags",
    t."bucket" AS "bucket",
    CASE WHEN first_value(CASE WHEN t."__op" <> 'd' AND t."body" IS NULL THEN 1 END) OVER (PARTITION BY t."id" ORDER BY CASE WHEN t."__op" = 'u' AND t."body" = '__debezium_unavailable_value' THEN 1 ELSE 0 END, t."__seq1" IS NULL, t."__seq1" DESC, t."__seq2" IS NULL, t."__seq2" DESC, t."__offset" IS NULL, t."__offset" DESC, t."__admitted_ms" IS NULL, t."__admitted_ms" DESC, t."segment" ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) = 1 THEN t."letter" ELSE first_value(CASE WHEN t."__op" <> 'd' THEN t."letter" END) OVER (PARTITION BY t."id" ORDER BY CASE WHEN t."__op" = 'u' AND t."body" = '__debezium_unavailable_value' THEN 1 ELSE 0 END, t."__seq1" IS NULL, t."__seq1" DESC, t."__seq2" IS NULL, t."__seq2" DESC, t."__offset" IS NULL, t."__offset" DESC, t."__admitted_ms" IS NULL, t."__admitted_ms" DESC, t."segment" ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) END AS "letter",
    t."__op" AS schemasync_op,
    row_number() OVER (PARTITION BY t."id" ORDER BY t."__seq1" IS NULL, t."__seq1" DESC, t."__seq2" IS NULL, t."__seq2" DESC, t."__offset" IS NULL, t."__offset" DESC, t."__admitted_ms" IS NULL, t."__admitted_ms" DESC, t."segment") AS schemasync_rank
  FROM "lake"."student" t
) r
WHERE r.schemasync_rank = 1 AND r.schemasync_op <> 'd'
