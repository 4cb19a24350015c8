ALTER FUNCTION headrace.take_tasks(integer, integer[], integer[], timestamptz[], bigint[], integer[], integer) SET plan_cache_mode = force_custom_plan;
ALTER FUNCTION headrace.survey_lanes(text[], text[], jsonb, integer, integer, integer) SET plan_cache_mode = force_custom_plan;
DROP FUNCTION headrace.take_first(integer, text[], text[], jsonb, integer, integer);
