"""The three documents' tables, as they define them: what `test_catalog` holds our schema against.

Nothing here is ours. 002's DDL and 001's appendix are word for word (long lines broken, without IF NOT EXISTS, and with
"user" in quotes, which PostgreSQL asks for); 000's MySQL is written in PostgreSQL's words and otherwise left as it is.
"""

from tests.migrations.document_002 import WATERMARK_REMOVAL_002

# BIGINT UNSIGNED is written bigint, BINARY(16) uuid, DATETIME timestamp; AUTO_INCREMENT bigserial, a KEY an index.
TASK_DISPATCH_000 = """
CREATE TABLE users (
  id              bigserial NOT NULL,
  username        varchar(64) NOT NULL,
  email           varchar(255) DEFAULT NULL,
  password_hash   varchar(128) NOT NULL,
  created_at      timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,
  updated_at      timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,
  PRIMARY KEY (id)
);
CREATE UNIQUE INDEX idx_users_username ON users (username);

CREATE TABLE tasks (
  id              uuid NOT NULL,
  user_id         bigint NOT NULL,
  title           varchar(255) NOT NULL,
  payload         json,
  priority        int DEFAULT 0,
  status          varchar(32) NOT NULL DEFAULT 'queued',
  result          json,
  retries         int DEFAULT 0,
  created_at      timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,
  updated_at      timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,
  PRIMARY KEY (id)
);
CREATE INDEX idx_tasks_user_status ON tasks (user_id, status);
CREATE INDEX idx_tasks_created_at ON tasks (created_at);

CREATE TABLE task_logs (
  id              bigserial NOT NULL,
  task_id         uuid NOT NULL,
  attempt         int NOT NULL DEFAULT 1,
  status          varchar(32) NOT NULL,
  message         text,
  created_at      timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,
  PRIMARY KEY (id)
);
CREATE INDEX idx_task_logs_task ON task_logs (task_id);

CREATE TABLE idempotency_keys (
  key             varchar(128) NOT NULL,
  user_id         bigint NULL,
  result_task_id  uuid NULL,
  created_at      timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,
  PRIMARY KEY (key)
);
"""

# The appendix, then "index design" of each entity, then the indexes that only the structs' tags name.
SCHEDULER_AND_AUDIT_001 = """
CREATE TABLE scheduled_tasks (
    uid VARCHAR(255) PRIMARY KEY,
    name VARCHAR(255) NOT NULL UNIQUE,
    type VARCHAR(255) NOT NULL,
    description TEXT,
    is_recurring BOOLEAN NOT NULL DEFAULT FALSE,
    cron_expr VARCHAR(255),
    interval BIGINT,
    next_run TIMESTAMP,
    enabled BOOLEAN NOT NULL DEFAULT TRUE,
    max_duration_seconds INTEGER NOT NULL DEFAULT 3600,
    max_retries INTEGER NOT NULL DEFAULT 3,
    timeout_grace_period INTEGER NOT NULL DEFAULT 30,
    max_concurrent INTEGER NOT NULL DEFAULT 1,
    priority INTEGER NOT NULL DEFAULT 0,
    labels TEXT,
    data TEXT,
    total_executions INTEGER NOT NULL DEFAULT 0,
    success_executions INTEGER NOT NULL DEFAULT 0,
    failure_executions INTEGER NOT NULL DEFAULT 0,
    consecutive_failures INTEGER NOT NULL DEFAULT 0,
    last_executed_at TIMESTAMP,
    last_failure_error TEXT,
    created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    updated_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP
);

CREATE TABLE task_executions (
    id BIGSERIAL PRIMARY KEY,
    task_uid VARCHAR(255) NOT NULL,
    task_name VARCHAR(255) NOT NULL,
    task_type VARCHAR(255) NOT NULL,
    execution_uid VARCHAR(255) NOT NULL UNIQUE,
    run_by VARCHAR(255) NOT NULL,
    scheduled_at TIMESTAMP NOT NULL,
    started_at TIMESTAMP NOT NULL,
    finished_at TIMESTAMP,
    state VARCHAR(32) NOT NULL,
    result TEXT,
    error_message TEXT,
    error_stack TEXT,
    duration_ms BIGINT NOT NULL DEFAULT 0,
    progress INTEGER NOT NULL DEFAULT 0,
    retry_count INTEGER NOT NULL DEFAULT 0,
    trigger_type VARCHAR(32) NOT NULL,
    trigger_by VARCHAR(255),
    created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    updated_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP
);

CREATE TABLE task_locks (
    id BIGSERIAL PRIMARY KEY,
    lock_key VARCHAR(255) NOT NULL UNIQUE,
    holder_id VARCHAR(255) NOT NULL,
    token VARCHAR(255) NOT NULL,
    state VARCHAR(32) NOT NULL,
    acquired_at TIMESTAMP NOT NULL,
    expires_at TIMESTAMP NOT NULL,
    released_at TIMESTAMP,
    purpose VARCHAR(255),
    created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    updated_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP
);

CREATE TABLE audit_events (
    id VARCHAR(255) PRIMARY KEY,
    timestamp BIGINT NOT NULL,
    action VARCHAR(64) NOT NULL,
    resource_type VARCHAR(64) NOT NULL,
    resource TEXT NOT NULL,
    "user" TEXT NOT NULL,
    space_path VARCHAR(512),
    diff_object TEXT,
    client_ip VARCHAR(45),
    user_agent TEXT,
    request_method VARCHAR(16),
    request_id VARCHAR(128),
    data TEXT,
    created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP
);

CREATE INDEX idx_scheduled_tasks_enabled ON scheduled_tasks(enabled);
CREATE INDEX idx_scheduled_tasks_next_run ON scheduled_tasks(next_run);
CREATE INDEX idx_scheduled_tasks_priority ON scheduled_tasks(priority DESC);
CREATE INDEX idx_scheduled_tasks_type ON scheduled_tasks(type);
CREATE INDEX idx_task_executions_task_uid ON task_executions(task_uid);
CREATE INDEX idx_task_executions_task_name ON task_executions(task_name);
CREATE INDEX idx_task_executions_state ON task_executions(state);
CREATE INDEX idx_task_executions_started_at ON task_executions(started_at DESC);
CREATE INDEX idx_task_executions_composite ON task_executions(task_name, state, started_at DESC);
CREATE UNIQUE INDEX idx_task_locks_key ON task_locks(lock_key) WHERE state = 'active';
CREATE INDEX idx_task_locks_state ON task_locks(state);
CREATE INDEX idx_task_locks_expires_at ON task_locks(expires_at);
CREATE INDEX idx_task_locks_holder ON task_locks(holder_id);
CREATE INDEX idx_audit_events_timestamp ON audit_events(timestamp DESC);
CREATE INDEX idx_audit_events_action ON audit_events(action);
CREATE INDEX idx_audit_events_resource_type ON audit_events(resource_type);
CREATE INDEX idx_audit_events_client_ip ON audit_events(client_ip);
CREATE INDEX idx_audit_events_request_id ON audit_events(request_id);
CREATE INDEX idx_audit_events_composite ON audit_events(resource_type, action, timestamp DESC);

CREATE INDEX idx_scheduled_tasks_created_at ON scheduled_tasks(created_at);
CREATE INDEX idx_scheduled_tasks_updated_at ON scheduled_tasks(updated_at);
CREATE INDEX idx_task_executions_created_at ON task_executions(created_at);
CREATE INDEX idx_task_executions_updated_at ON task_executions(updated_at);
CREATE INDEX idx_task_locks_acquired_at ON task_locks(acquired_at);
CREATE INDEX idx_task_locks_created_at ON task_locks(created_at);
CREATE INDEX idx_task_locks_updated_at ON task_locks(updated_at);
CREATE INDEX idx_audit_events_created_at ON audit_events(created_at);
"""

DOCUMENTS = {"000": TASK_DISPATCH_000, "001": SCHEDULER_AND_AUDIT_001, "002": WATERMARK_REMOVAL_002}
