CREATE OR REPLACE VIEW "lake"."student_view" COMMENT 'the newest row per key of lake.student' AS
SELECT
  r."id",
  r."schemasync_rank",
  r."Schemasync_Op",
  r."schemasync_was",
  r."__op",
  r."__segment",
  r."ROW__ID",
  r."t",
  r."r",
  r."__op__2",
  r."__ts_ms",
  r."__segment__2"
FROM (
  SELECT
    t."id" AS "id",
    t."schemasync_rank__2" AS "schemasync_rank",
    t."schemasync_op" AS "Schemasync_Op",
    t."schemasync_was__2" AS "schemasync_was",
    t."__op__2" AS "__op",
    t."__segment" AS "__segment",
    t."row__id__2" AS "ROW__ID",
    t."t" AS "t",
    t."r" AS "r",
    t."__op" AS "__op__2",
    t."__ts_ms" AS "__ts_ms",
    t."segment" AS "__segment__2",
    t."__op" AS schemasync_op__2,
    row_number() OVER (PARTITION BY t."id" ORDER BY t."__seq1" IS NULL, t."__seq1" DESC, t."__offset" IS NULL, t."__offset" DESC, t."__admitted_ms" IS NULL, t."__admitted_ms" DESC, t."segment") AS schemasync_rank__2
  FROM "lake"."student" t
) r
WHERE r.schemasync_rank__2 = 1 AND r.schemasync_op__2 <> 'd'
