ALTER FUNCTION headrace.adopt_partition(regclass, regclass) SET search_path = pg_catalog;
ALTER FUNCTION headrace.create_month_partitions(regclass, date, date) SET search_path = pg_catalog;
ALTER FUNCTION headrace.make_month_ahead(regclass) SET search_path = pg_catalog;
