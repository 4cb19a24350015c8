CREATE OR REPLACE TRIGGER tr_uploads_status BEFORE UPDATE OF status ON headrace.uploads
  FOR EACH ROW WHEN (NOT headrace.upload_may_move(OLD.status, NEW.status))
  EXECUTE FUNCTION headrace.refuse_state_move('status');
CREATE OR REPLACE TRIGGER tr_uploads_touch BEFORE UPDATE ON headrace.uploads
  FOR EACH ROW WHEN (NEW.updated_at IS NOT DISTINCT FROM OLD.updated_at)
  EXECUTE FUNCTION headrace.touch_updated_at();
