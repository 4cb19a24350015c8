-- Two owners may use the same key, which was not possible before: the system's locks stay.
DELETE FROM headrace.lock_fences WHERE user_id <> 'u_00000000000000000000000000';
DELETE FROM headrace.task_locks WHERE user_id <> 'u_00000000000000000000000000';

COMMENT ON COLUMN headrace.task_locks.token IS 'Known to the holder alone; renewing and releasing ask for it.';
ALTER TABLE headrace.lock_fences
  DROP CONSTRAINT lock_fences_pkey,
  DROP COLUMN user_id,
  ADD CONSTRAINT lock_fences_pkey PRIMARY KEY (lock_key);
DROP INDEX headrace.idx_task_locks_user;
DROP INDEX headrace.idx_task_locks_key;
ALTER TABLE headrace.task_locks
  DROP CONSTRAINT uk_task_locks_key_fence,
  DROP COLUMN user_id,
  ADD CONSTRAINT uk_task_locks_key_fence UNIQUE (lock_key, fence);
CREATE UNIQUE INDEX idx_task_locks_key ON headrace.task_locks (lock_key) WHERE state = 'active';
