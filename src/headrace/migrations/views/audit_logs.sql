CREATE OR REPLACE VIEW headrace.audit_logs AS
SELECT
  seq                                            AS id,
  (CASE WHEN "user" ->> 'type' = 'user'
        THEN "user" ->> 'uid' END)::varchar(64)  AS user_id,
  actor_type                                     AS actor_type,
  ("user" ->> 'uid')::varchar(64)                AS actor_id,
  action                                         AS action,
  resource_type::varchar(32)                     AS target_type,
  (resource ->> 'identifier')::varchar(64)       AS target_id,
  client_ip::inet                                AS ip,
  user_agent                                     AS user_agent,
  trace_id                                       AS trace_id,
  request_id::varchar(64)                        AS request_id,
  jsonb_strip_nulls(jsonb_build_object(
    'event_id', id,
    'username', "user" -> 'username',
    'resource', resource -> 'data',
    'diff', diff_object,
    'data', data,
    'request_method', request_method,
    'space_path', space_path
  ))                                             AS detail_json,
  created_at                                     AS created_at
FROM headrace.audit_events;
COMMENT ON VIEW headrace.audit_logs IS 'The trail under the watermark service''s names. Written only through audit_events.';
COMMENT ON COLUMN headrace.audit_logs.user_id IS 'Null when a service or nobody known acted.';
COMMENT ON COLUMN headrace.audit_logs.detail_json IS 'What the trail knows beyond these columns: event_id, username, resource, diff, data, request_method, space_path.';
GRANT SELECT ON headrace.audit_logs TO headrace_app;
