CREATE OR REPLACE TRIGGER tr_tech_risk_ledger_touch BEFORE UPDATE ON headrace.tech_risk_ledger
  FOR EACH ROW WHEN (NEW.updated_at IS NOT DISTINCT FROM OLD.updated_at)
  EXECUTE FUNCTION headrace.touch_updated_at();
