CREATE OR REPLACE TRIGGER tr_api_keys_touch BEFORE UPDATE ON headrace.api_keys
  FOR EACH ROW WHEN (NEW.updated_at IS NOT DISTINCT FROM OLD.updated_at)
  EXECUTE FUNCTION headrace.touch_updated_at();
