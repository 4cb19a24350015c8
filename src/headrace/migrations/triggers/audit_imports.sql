CREATE OR REPLACE TRIGGER tr_audit_imports_touch BEFORE UPDATE ON headrace.audit_imports
  FOR EACH ROW WHEN (NEW.updated_at IS NOT DISTINCT FROM OLD.updated_at)
  EXECUTE FUNCTION headrace.touch_updated_at();
