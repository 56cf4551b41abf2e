CREATE OR REPLACE VIEW "lake"."student_view" COMMENT 'the newest row per key of lake.student' AS
SELECT
  t."id" AS "id",
  t."name" AS "Name",
  t."born" AS "born",
  t."address" AS "address",
  t."select" AS "select",
  t."first-seen" AS "first-seen",
  t."segment__2" AS "segment"
FROM "lake"."student" t
WHERE (t."segment" BETWEEN 'base_s00000004' AND 'base_s00000009' OR t."segment" = 'base_s00000012' OR t."segment" = 'delta_00000007') AND t."__tombstone" IS NULL
AND (t."segment" >= 'delta_00000007' OR CASE WHEN t."id" IN (-7, 3, 1099511627776) THEN 1 ELSE 0 END = 0)
