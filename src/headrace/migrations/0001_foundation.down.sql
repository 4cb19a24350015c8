-- The roles stay: they belong to the cluster, and its other databases may stand on them. So does the schema, which
-- holds the book of migrations; `headrace migrate` takes the schema with the book away when it has gone down to nothing.
DROP FUNCTION headrace.create_month_partitions(regclass, date, date);
DROP FUNCTION headrace.adopt_partition(regclass, regclass);
DROP FUNCTION headrace.refuse_rewriting();
DROP FUNCTION headrace.refuse_state_move();
DROP FUNCTION headrace.touch_updated_at();
DROP FUNCTION headrace.typeid_month(text);
DROP FUNCTION headrace.instant_of_millis(bigint);
DROP FUNCTION headrace.typeid_millis(text);
