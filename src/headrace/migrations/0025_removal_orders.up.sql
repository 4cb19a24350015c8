-- What a user's plan says of how many tasks run at once, and passwords of documents while they are worked on.

ALTER TABLE headrace.task_types ADD COLUMN limited_by_plan boolean DEFAULT false;
COMMENT ON COLUMN headrace.task_types.limited_by_plan IS 'Whether a user''s running tasks of all such types together are limited by what their plan says.';


CREATE TABLE headrace.removal_passwords (
  task_id            varchar(64) PRIMARY KEY,
  sealed             text NOT NULL,
  created_at         timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT fk_removal_passwords_tasks_task_id FOREIGN KEY (task_id) REFERENCES headrace.tasks (id) ON DELETE CASCADE
);
COMMENT ON TABLE headrace.removal_passwords IS 'What opens the document of a removal, encrypted. Deleted in the transaction that ends the task.';
COMMENT ON COLUMN headrace.removal_passwords.sealed IS 'Under the deployment''s secret key, bound to the task.';

GRANT SELECT, INSERT, DELETE ON headrace.removal_passwords TO headrace_app;
