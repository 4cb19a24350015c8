ALTER TABLE headrace.statistics_queues DROP COLUMN needs_input;
ALTER TABLE headrace.statistics_minutes DROP COLUMN slots_busy;
COMMENT ON COLUMN headrace.statistics_minutes.waited IS 'Tasks that ended, by how long they had waited when their last attempt began; operations/statistics/model.py has the bounds.';
COMMENT ON COLUMN headrace.statistics_minutes.ran IS 'The same tasks, by how long that attempt took.';
DROP TABLE headrace.statistics_durations;
