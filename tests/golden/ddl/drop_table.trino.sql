DROP TABLE IF EXISTS "lake-house"."student"
