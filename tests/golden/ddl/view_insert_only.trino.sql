CREATE OR REPLACE VIEW "lake"."student_view" COMMENT 'every event but deletes of lake.student' AS
SELECT
  t."id" AS "id",
  t."name" AS "Name",
  t."born" AS "born",
  t."address" AS "address",
  t."select" AS "select",
  t."first-seen" AS "first-seen",
  t."segment__2" AS "segment"
FROM "lake"."student" t
WHERE t."__tombstone" IS NULL
