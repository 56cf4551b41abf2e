CREATE OR REPLACE VIEW `lake`.`student_view` (
  `id`,
  `n`
)
COMMENT 'the newest row per key of lake.student'
TBLPROPERTIES (
  'schemasync.subject' = 'shop.student-value'
)
AS
SELECT
  t.`id` AS `id`,
  t.`n` AS `n`
FROM `lake`.`student` t
WHERE (t.`segment` BETWEEN 'base_s00000004' AND 'base_s00000009' OR t.`segment` BETWEEN 'delta_00000007' AND 'delta_00000008') AND t.`__tombstone` IS NULL
AND (t.`segment` >= 'delta_00000007' OR coalesce(getbit(get((SELECT words FROM orc.`file:/lake/student/delta/g=000007/t/_keys/words.orc`), CAST(shiftright((crc32(CAST(coalesce(CAST(t.`id` AS STRING), '') AS BINARY)) & 65535) - (0), 6) AS INT)), CAST((crc32(CAST(coalesce(CAST(t.`id` AS STRING), '') AS BINARY)) & 65535) & 63 AS INT)), 0) = 0)
AND (t.`segment` >= 'delta_00000008' OR CASE WHEN array_contains(get(from_json('[["a","b"]]', 'ARRAY<ARRAY<STRING>>'), 0), t.`id`) THEN 1 ELSE 0 END = 0)
UNION ALL
SELECT
  t.`id` AS `id`,
  t.`n` AS `n`
FROM `lake`.`student` t
LEFT JOIN (
  SELECT d.`id` AS schemasync_key1, d.`segment` AS schemasync_segment FROM `lake`.`student` d WHERE d.`segment` BETWEEN 'delta_00000007' AND 'delta_00000008'
) k ON k.schemasync_key1 = t.`id` AND t.`segment` < k.schemasync_segment
WHERE (t.`segment` BETWEEN 'base_s00000004' AND 'base_s00000009' OR t.`segment` BETWEEN 'delta_00000007' AND 'delta_00000008') AND t.`__tombstone` IS NULL
AND (k.schemasync_key1 IS NULL OR t.`segment` = 'delta_00000008')
AND t.`segment` < 'delta_00000008' AND NOT ((t.`segment` >= 'delta_00000007' OR coalesce(getbit(get((SELECT words FROM orc.`file:/lake/student/delta/g=000007/t/_keys/words.orc`), CAST(shiftright((crc32(CAST(coalesce(CAST(t.`id` AS STRING), '') AS BINARY)) & 65535) - (0), 6) AS INT)), CAST((crc32(CAST(coalesce(CAST(t.`id` AS STRING), '') AS BINARY)) & 65535) & 63 AS INT)), 0) = 0))
