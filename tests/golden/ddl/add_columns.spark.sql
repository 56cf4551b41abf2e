ALTER TABLE `lake-house`.`student` ADD COLUMNS (
  `first-seen` timestamp,
  `n` int COMMENT 'it\'s new'
)
