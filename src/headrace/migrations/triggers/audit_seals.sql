CREATE OR REPLACE TRIGGER tr_audit_seals_refuse_rewriting BEFORE UPDATE OR DELETE ON headrace.audit_seals
  FOR EACH ROW EXECUTE FUNCTION headrace.refuse_rewriting();
CREATE OR REPLACE TRIGGER tr_audit_seals_refuse_truncate BEFORE TRUNCATE ON headrace.audit_seals
  FOR EACH STATEMENT EXECUTE FUNCTION headrace.refuse_rewriting();
CREATE OR REPLACE TRIGGER tr_audit_seals_follow BEFORE INSERT ON headrace.audit_seals
  FOR EACH ROW EXECUTE FUNCTION headrace.refuse_loose_seal();
