CREATE OR REPLACE TRIGGER tr_task_types_touch BEFORE UPDATE ON headrace.task_types
  FOR EACH ROW WHEN (NEW.updated_at IS NOT DISTINCT FROM OLD.updated_at)
  EXECUTE FUNCTION headrace.touch_updated_at();
