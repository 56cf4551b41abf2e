DROP VIEW IF EXISTS `lake`.`student_view`
