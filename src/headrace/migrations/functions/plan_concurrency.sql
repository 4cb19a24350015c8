-- How many tasks of a user run at once, by the entitlements that they have now: the best of them counts, and what none says
-- is as billing/features.py has it. A test runs one table of cases through both.
CREATE OR REPLACE FUNCTION headrace.plan_concurrency(of_user text) RETURNS integer
LANGUAGE sql STABLE
AS $$
  SELECT coalesce(max(coalesce((
    SELECT (entry ->> 'tasks')::integer
    FROM jsonb_array_elements(
      CASE jsonb_typeof(entitlement.features_json) WHEN 'array' THEN entitlement.features_json ELSE '[]' END
    ) WITH ORDINALITY AS given (entry, position)
    WHERE entry ->> 'feature' = 'concurrency' AND entry ->> 'tasks' ~ '^[1-9][0-9]{0,8}$'
    ORDER BY position
    LIMIT 1
  ), 2)), 2)
  FROM headrace.entitlements AS entitlement
  WHERE entitlement.user_id = of_user AND entitlement.status = 'ACTIVE'
    AND entitlement.period_start <= now() AND entitlement.period_end > now()
$$;
COMMENT ON FUNCTION headrace.plan_concurrency(text) IS 'How many tasks of a user run at once, by their plan.';
REVOKE EXECUTE ON FUNCTION headrace.plan_concurrency(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION headrace.plan_concurrency(text) TO headrace_app;
