CREATE OR REPLACE VIEW "lake"."student_view" COMMENT 'the newest row per key of lake.student' AS
SELECT
  t."id" AS "id",
  t."line" AS "line"
FROM "lake"."student" t
WHERE t."segment" BETWEEN 'base_s00000004' AND 'base_s00000009' AND t."__tombstone" IS NULL
UNION ALL
SELECT
  t."id" AS "id",
  t."line" AS "line"
FROM "lake"."student" t
LEFT JOIN (
  SELECT d."id" AS schemasync_key1, d."line" AS schemasync_key2 FROM "lake"."student" d WHERE d."segment" = 'delta_00000007'
) k ON k.schemasync_key1 = t."id" AND k.schemasync_key2 = t."line"
WHERE (t."segment" = 'base_s00000012' OR t."segment" = 'delta_00000007') AND t."__tombstone" IS NULL
AND (k.schemasync_key1 IS NULL OR t."segment" = 'delta_00000007')
