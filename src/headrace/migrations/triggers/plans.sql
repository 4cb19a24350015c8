CREATE OR REPLACE TRIGGER tr_plans_touch BEFORE UPDATE ON headrace.plans
  FOR EACH ROW WHEN (NEW.updated_at IS NOT DISTINCT FROM OLD.updated_at)
  EXECUTE FUNCTION headrace.touch_updated_at();
