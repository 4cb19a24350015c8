-- What a user is told inside the product.

CREATE TABLE headrace.notifications (
  id                 bigserial PRIMARY KEY,
  user_id            varchar(64) NOT NULL,
  type               varchar(32) NOT NULL
                     CONSTRAINT ck_notifications_type CHECK (type IN (
                       'TASK_SUCCEEDED', 'TASK_FAILED', 'SUBSCRIPTION_ACTIVATED', 'SUBSCRIPTION_EXPIRING',
                       'ACCOUNT_DELETE_COMPLETED'
                     )),
  title              varchar(128) NOT NULL,
  body               text NOT NULL,
  payload_json       jsonb,
  event_id           varchar(64),
  is_read            boolean NOT NULL DEFAULT false,
  read_at            timestamptz,
  created_at         timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT fk_notifications_users_user_id FOREIGN KEY (user_id) REFERENCES headrace.users (id),
  CONSTRAINT ck_notifications_read_at CHECK (is_read = (read_at IS NOT NULL))
);
CREATE INDEX idx_notifications_user_read_created_at ON headrace.notifications (user_id, is_read, created_at DESC);
-- The outbox tells at least once; the user is told once.
CREATE UNIQUE INDEX uk_notifications_event ON headrace.notifications (event_id, user_id, type)
  WHERE event_id IS NOT NULL;

COMMENT ON TABLE headrace.notifications IS 'Messages to users, read or not.';
COMMENT ON COLUMN headrace.notifications.event_id IS 'The outbox event it came of. No foreign key: published events are cleared away sooner.';

GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.notifications TO headrace_app;
GRANT USAGE ON SEQUENCE headrace.notifications_id_seq TO headrace_app;
