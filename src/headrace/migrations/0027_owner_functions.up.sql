-- What is temporary comes last: unless it is named, it is searched first, before the catalog itself. The application could
-- have put a view of its own in the place of pg_class, and what that calls would have run as the owner.
ALTER FUNCTION headrace.make_month_ahead(regclass) SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION headrace.create_month_partitions(regclass, date, date) SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION headrace.adopt_partition(regclass, regclass) SET search_path = pg_catalog, pg_temp;
