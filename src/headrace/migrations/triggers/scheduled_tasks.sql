CREATE OR REPLACE TRIGGER tr_scheduled_tasks_touch BEFORE UPDATE ON headrace.scheduled_tasks
  FOR EACH ROW WHEN (NEW.updated_at IS NOT DISTINCT FROM OLD.updated_at)
  EXECUTE FUNCTION headrace.touch_updated_at();
