CREATE OR REPLACE TRIGGER tr_usage_ledger_refuse_rewriting BEFORE UPDATE OR DELETE ON headrace.usage_ledger
  FOR EACH ROW EXECUTE FUNCTION headrace.refuse_rewriting();
CREATE OR REPLACE TRIGGER tr_usage_ledger_refuse_truncate BEFORE TRUNCATE ON headrace.usage_ledger
  FOR EACH STATEMENT EXECUTE FUNCTION headrace.refuse_rewriting();
-- PostgreSQL passes no TRUNCATE trigger on to the partitions that are there.
SELECT headrace.adopt_partition(inhparent::regclass, inhrelid::regclass) FROM pg_inherits WHERE inhparent = 'headrace.usage_ledger'::regclass;
