CREATE OR REPLACE TRIGGER tr_system_configs_touch BEFORE UPDATE ON headrace.system_configs
  FOR EACH ROW WHEN (NEW.updated_at IS NOT DISTINCT FROM OLD.updated_at)
  EXECUTE FUNCTION headrace.touch_updated_at();
CREATE OR REPLACE TRIGGER tr_system_configs_tell AFTER INSERT OR UPDATE OR DELETE ON headrace.system_configs
  FOR EACH ROW EXECUTE FUNCTION headrace.notify_config_change();
