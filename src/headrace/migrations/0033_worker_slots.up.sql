-- The slots of a worker by the isolation of what runs in them: {"process": {"slots": 2, "running": 1, "types": ["…"]}}.
-- Workers of an earlier release leave it empty.

ALTER TABLE headrace.workers ADD COLUMN slots jsonb NOT NULL DEFAULT '{}';
COMMENT ON COLUMN headrace.workers.slots IS 'Slots by isolation: how many, how many of them run a task, and for which types.';
