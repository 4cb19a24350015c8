CREATE OR REPLACE TRIGGER tr_bulk_actions_touch BEFORE UPDATE ON headrace.bulk_actions
  FOR EACH ROW WHEN (NEW.updated_at IS NOT DISTINCT FROM OLD.updated_at)
  EXECUTE FUNCTION headrace.touch_updated_at();
