ALTER TABLE `lake`.`student` ADD COLUMNS (
  `first-seen` timestamp,
  `n` int COMMENT 'it\'s new'
)
