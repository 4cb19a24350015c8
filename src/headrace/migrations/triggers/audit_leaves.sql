CREATE OR REPLACE TRIGGER tr_audit_leaves_refuse_rewriting BEFORE UPDATE ON headrace.audit_leaves
  FOR EACH ROW EXECUTE FUNCTION headrace.refuse_rewriting();
CREATE OR REPLACE TRIGGER tr_audit_leaves_refuse_truncate BEFORE TRUNCATE ON headrace.audit_leaves
  FOR EACH STATEMENT EXECUTE FUNCTION headrace.refuse_rewriting();
