CREATE OR REPLACE TRIGGER tr_task_types_touch BEFORE UPDATE ON headrace.task_types
  -- That it was seen changes nothing about it.
  FOR EACH ROW WHEN (NEW.updated_at IS NOT DISTINCT FROM OLD.updated_at AND NEW.seen_at IS NOT DISTINCT FROM OLD.seen_at)
  EXECUTE FUNCTION headrace.touch_updated_at();
