-- One lane for each combination, as the constraint demands.
UPDATE headrace.task_queue AS q SET lane_id = kept.id
FROM headrace.task_lanes AS lane
JOIN (
  SELECT min(id) AS id, queue, task_type, user_id, limit_key, labels, only_once
  FROM headrace.task_lanes GROUP BY queue, task_type, user_id, limit_key, labels, only_once
) AS kept USING (queue, task_type, user_id, limit_key, labels, only_once)
WHERE q.lane_id = lane.id AND kept.id <> lane.id;
DELETE FROM headrace.task_lanes AS lane
USING headrace.task_lanes AS kept
WHERE kept.id < lane.id AND kept.queue = lane.queue AND kept.task_type = lane.task_type AND kept.user_id = lane.user_id
  AND kept.limit_key = lane.limit_key AND kept.labels = lane.labels AND kept.only_once = lane.only_once;
ALTER TABLE headrace.task_lanes ADD CONSTRAINT uk_task_lanes
  UNIQUE (queue, task_type, user_id, limit_key, labels, only_once);
DROP INDEX headrace.idx_task_lanes_lookup;
CREATE INDEX idx_task_queue_ready ON headrace.task_queue (precedence, lane_id, run_at, seq) WHERE worker IS NULL;
DROP INDEX headrace.idx_task_queue_delayed;
DROP INDEX headrace.idx_task_queue_claim;
