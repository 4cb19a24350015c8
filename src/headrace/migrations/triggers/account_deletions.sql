CREATE OR REPLACE TRIGGER tr_account_deletions_status BEFORE UPDATE OF status ON headrace.account_deletions
  FOR EACH ROW WHEN (NOT headrace.account_deletion_may_move(OLD.status, NEW.status))
  EXECUTE FUNCTION headrace.refuse_state_move('status');
CREATE OR REPLACE TRIGGER tr_account_deletions_touch BEFORE UPDATE ON headrace.account_deletions
  FOR EACH ROW WHEN (NEW.updated_at IS NOT DISTINCT FROM OLD.updated_at)
  EXECUTE FUNCTION headrace.touch_updated_at();
