-- A worker that stops before it can write an end leaves it with the claim, and the reaper writes it.

ALTER TABLE headrace.task_queue ADD COLUMN ended jsonb;
COMMENT ON COLUMN headrace.task_queue.ended IS 'How the attempt ended, where its worker stopped before it could write the end; the reaper writes it.';
