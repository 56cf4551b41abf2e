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
LEFT JOIN (
  SELECT w.schemasync_word, SUM(CAST(1 AS BIGINT) * CASE WHEN w.schemasync_bit % 32 >= 16 THEN 65536 ELSE 1 END * CASE WHEN w.schemasync_bit % 16 >= 8 THEN 256 ELSE 1 END * CASE WHEN w.schemasync_bit % 8 >= 4 THEN 16 ELSE 1 END * CASE WHEN w.schemasync_bit % 4 >= 2 THEN 4 ELSE 1 END * CASE WHEN w.schemasync_bit % 2 >= 1 THEN 2 ELSE 1 END) AS schemasync_bits FROM (
    SELECT DISTINCT d."id" - ((d."id" % 32 + 32) % 32) AS schemasync_word, ((d."id" % 32 + 32) % 32) AS schemasync_bit
    FROM "lake"."student" d WHERE d."segment" BETWEEN 'delta_00000007' AND 'delta_00000008'
  ) w
  GROUP BY w.schemasync_word
) k ON k.schemasync_word = t."id" - ((t."id" % 32 + 32) % 32)
WHERE t."segment" BETWEEN 'base_s00000004' AND 'base_s00000009' AND t."__tombstone" IS NULL
AND (k.schemasync_word IS NULL OR floor(k.schemasync_bits / (CAST(1 AS BIGINT) * CASE WHEN ((t."id" % 32 + 32) % 32) % 32 >= 16 THEN 65536 ELSE 1 END * CASE WHEN ((t."id" % 32 + 32) % 32) % 16 >= 8 THEN 256 ELSE 1 END * CASE WHEN ((t."id" % 32 + 32) % 32) % 8 >= 4 THEN 16 ELSE 1 END * CASE WHEN ((t."id" % 32 + 32) % 32) % 4 >= 2 THEN 4 ELSE 1 END * CASE WHEN ((t."id" % 32 + 32) % 32) % 2 >= 1 THEN 2 ELSE 1 END)) % 2 = 0 OR t."segment" = 'delta_00000008')
UNION ALL
SELECT
  r."id",
  r."Name",
  r."born",
  r."address",
  r."select",
  r."first-seen",
  r."segment"
FROM (
  SELECT
    t."id" AS "id",
    t."name" AS "Name",
    t."born" AS "born",
    t."address" AS "address",
    t."select" AS "select",
    t."first-seen" AS "first-seen",
    t."segment__2" AS "segment",
    t."__op" AS schemasync_op,
    SUM(1) OVER (PARTITION BY t."id" ORDER BY t."__seq1" IS NULL, t."__seq1" DESC, t."__seq2" IS NULL, t."__seq2" DESC, t."__offset" IS NULL, t."__offset" DESC, t."__admitted_ms" IS NULL, t."__admitted_ms" DESC, t."segment" ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS schemasync_rank
  FROM "lake"."student" t
  WHERE t."segment" BETWEEN 'delta_00000007' AND 'delta_00000008'
) r
WHERE r.schemasync_rank = 1 AND r.schemasync_op <> 'd'
