CREATE OR REPLACE TRIGGER tr_users_touch BEFORE UPDATE ON headrace.users
  FOR EACH ROW WHEN (NEW.updated_at IS NOT DISTINCT FROM OLD.updated_at)
  EXECUTE FUNCTION headrace.touch_updated_at();
CREATE OR REPLACE TRIGGER tr_users_keep_system BEFORE DELETE ON headrace.users
  FOR EACH ROW WHEN (OLD.id = 'u_00000000000000000000000000')
  EXECUTE FUNCTION headrace.refuse_deleting_system_user();
