CREATE OR REPLACE TRIGGER tr_audit_events_refuse_rewriting BEFORE UPDATE OR DELETE ON headrace.audit_events
  FOR EACH ROW EXECUTE FUNCTION headrace.refuse_rewriting();
CREATE OR REPLACE TRIGGER tr_audit_events_refuse_truncate BEFORE TRUNCATE ON headrace.audit_events
  FOR EACH STATEMENT EXECUTE FUNCTION headrace.refuse_rewriting();
-- PostgreSQL passes no TRUNCATE trigger on to the partitions that are there.
SELECT headrace.adopt_partition(inhparent::regclass, inhrelid::regclass) FROM pg_inherits WHERE inhparent = 'headrace.audit_events'::regclass;
