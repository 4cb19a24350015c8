-- A lock has an owner, and its key is a name among the owner's: nobody can take, hold up or even see a stranger's lock.

ALTER TABLE headrace.task_locks
  ADD COLUMN user_id varchar(64) NOT NULL DEFAULT 'u_00000000000000000000000000'
    CONSTRAINT fk_task_locks_users_user_id REFERENCES headrace.users (id),
  DROP CONSTRAINT uk_task_locks_key_fence,
  ADD CONSTRAINT uk_task_locks_key_fence UNIQUE (user_id, lock_key, fence);
DROP INDEX headrace.idx_task_locks_key;
CREATE UNIQUE INDEX idx_task_locks_key ON headrace.task_locks (user_id, lock_key) WHERE state = 'active';
-- An owner's locks, newest first; everybody's go by the primary key.
CREATE INDEX idx_task_locks_user ON headrace.task_locks (user_id, id);

ALTER TABLE headrace.lock_fences
  ADD COLUMN user_id varchar(64) NOT NULL DEFAULT 'u_00000000000000000000000000'
    CONSTRAINT fk_lock_fences_users_user_id REFERENCES headrace.users (id),
  DROP CONSTRAINT lock_fences_pkey,
  ADD CONSTRAINT lock_fences_pkey PRIMARY KEY (user_id, lock_key);

COMMENT ON COLUMN headrace.task_locks.user_id IS 'Whose lock it is; the system''s own by default.';
COMMENT ON COLUMN headrace.task_locks.token IS 'SHA-256 of the token, which is known to the holder alone; renewing and releasing ask for it.';
