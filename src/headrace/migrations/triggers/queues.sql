CREATE OR REPLACE TRIGGER tr_queues_touch BEFORE UPDATE ON headrace.queues
  FOR EACH ROW WHEN (NEW.updated_at IS NOT DISTINCT FROM OLD.updated_at)
  EXECUTE FUNCTION headrace.touch_updated_at();
