-- Changes of configs are told to those who keep them at hand; risks get a version, and are found by what they refer to.

-- By the table itself: a value that somebody changes with psql counts at once, too.
CREATE FUNCTION headrace.tell_of_config() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  PERFORM pg_notify('headrace_configs', coalesce(NEW.config_key, OLD.config_key));
  IF NEW.config_key <> OLD.config_key THEN
    PERFORM pg_notify('headrace_configs', OLD.config_key);
  END IF;
  RETURN NULL;
END
$$;
COMMENT ON FUNCTION headrace.tell_of_config() IS 'Trigger: notifies headrace_configs with the key that changed.';

CREATE TRIGGER tr_system_configs_tell AFTER INSERT OR UPDATE OR DELETE ON headrace.system_configs
  FOR EACH ROW EXECUTE FUNCTION headrace.tell_of_config();

-- A user's values, when the account goes; and the list of all.
CREATE INDEX idx_system_configs_scope_id ON headrace.system_configs (scope_id) WHERE scope_id <> '';
CREATE INDEX idx_system_configs_created_at ON headrace.system_configs (created_at DESC, id DESC);

ALTER TABLE headrace.tech_risk_ledger ADD COLUMN version integer NOT NULL DEFAULT 0;
COMMENT ON COLUMN headrace.tech_risk_ledger.version IS 'Optimistic lock, and the ETag.';
-- "Which risks speak of this trace?"
CREATE INDEX idx_tech_risk_ledger_refs ON headrace.tech_risk_ledger USING gin (refs_json jsonb_path_ops);
CREATE INDEX idx_tech_risk_ledger_created_at ON headrace.tech_risk_ledger (created_at DESC, id DESC);
