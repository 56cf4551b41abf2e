ALTER TABLE `lake`.`student_history` SET TBLPROPERTIES (
  'schemasync.history_hash' = '0f',
  'schemasync.history_of' = 'student'
)
