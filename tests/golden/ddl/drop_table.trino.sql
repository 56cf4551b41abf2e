DROP TABLE IF EXISTS "lake"."student"
