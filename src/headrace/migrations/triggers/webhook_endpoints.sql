CREATE OR REPLACE TRIGGER tr_webhook_endpoints_touch BEFORE UPDATE ON headrace.webhook_endpoints
  FOR EACH ROW WHEN (NEW.updated_at IS NOT DISTINCT FROM OLD.updated_at)
  EXECUTE FUNCTION headrace.touch_updated_at();
