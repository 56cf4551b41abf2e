ALTER TABLE `lake`.`student_history` SET LOCATION 'file:/lake/it\'s here/history/v=000002-1790000000000-0007'
