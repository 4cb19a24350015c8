-- What of a payload does not fit its type, as a sentence without its end; null if it fits. The check is a JSON Schema of
-- the keywords that payload_checks.py lets through, and the verdict is that of the API's validator: a test compares them.
CREATE OR REPLACE FUNCTION headrace.payload_fault(
  schema jsonb, value jsonb, root jsonb DEFAULT NULL, place text DEFAULT '', depth integer DEFAULT 0
)
RETURNS text
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog
AS $$
DECLARE
  top      jsonb := coalesce(root, schema);
  here     text := CASE place WHEN '' THEN '(payload)' ELSE place END;
  kind     text := jsonb_typeof(value);
  wanted   jsonb := schema -> 'type';
  number   numeric;
  content  text;
  length   integer;
  fault    text;
  first    text;
  fits     integer;
  name     text;
  number_of integer;
  part     jsonb;
  rule     jsonb;
  named    jsonb;
BEGIN
  IF schema IS NULL OR schema = 'true' THEN
    RETURN NULL;
  ELSIF schema = 'false' THEN
    RETURN here || ': nothing is allowed here';
  ELSIF depth > 300 THEN
    RETURN here || ': the schema refers to itself without end';
  END IF;

  IF schema ? '$ref' THEN
    fault := headrace.payload_fault(top -> '$defs' -> (schema ->> '$ref'), value, top, place, depth + 1);
    IF fault IS NOT NULL THEN
      RETURN fault;
    END IF;
  END IF;
  IF kind = 'number' THEN
    number := value::numeric;
  END IF;
  IF wanted IS NOT NULL AND NOT (wanted @> to_jsonb(kind)
                                 OR (kind = 'number' AND wanted @> '"integer"' AND number % 1 = 0)) THEN
    RETURN format('%s: is not of the type %s', here, translate(wanted::text, '"[]', ''));
  END IF;
  IF schema ? 'const' AND schema -> 'const' <> value THEN
    RETURN format('%s: must be %s', here, schema -> 'const');
  END IF;
  IF schema ? 'enum' AND NOT EXISTS (SELECT FROM jsonb_array_elements(schema -> 'enum') AS one (given) WHERE one.given = value) THEN
    RETURN format('%s: is not one of %s', here, left((schema -> 'enum')::text, 200));
  END IF;

  CASE kind
  WHEN 'number' THEN
    IF number < (schema ->> 'minimum')::numeric OR number <= (schema ->> 'exclusiveMinimum')::numeric THEN
      RETURN format('%s: is too small', here);
    ELSIF number > (schema ->> 'maximum')::numeric OR number >= (schema ->> 'exclusiveMaximum')::numeric THEN
      RETURN format('%s: is too large', here);
    ELSIF number % (schema ->> 'multipleOf')::numeric <> 0 THEN
      RETURN format('%s: is not a multiple of %s', here, schema ->> 'multipleOf');
    END IF;
  WHEN 'string' THEN
    content := value #>> '{}';
    length := char_length(content);
    IF length < (schema ->> 'minLength')::numeric THEN
      RETURN format('%s: is too short', here);
    ELSIF length > (schema ->> 'maxLength')::numeric THEN
      RETURN format('%s: is too long', here);
    ELSIF schema ? 'pattern' AND content !~ (schema ->> 'pattern') THEN
      RETURN format('%s: does not match its pattern', here);
    END IF;
  WHEN 'array' THEN
    length := jsonb_array_length(value);
    IF length < (schema ->> 'minItems')::numeric THEN
      RETURN format('%s: has too few items', here);
    ELSIF length > (schema ->> 'maxItems')::numeric THEN
      RETURN format('%s: has too many items', here);
    ELSIF schema -> 'uniqueItems' = 'true'
          AND length > (SELECT count(DISTINCT one.given) FROM jsonb_array_elements(value) AS one (given)) THEN
      RETURN format('%s: has the same item twice', here);
    END IF;
    IF schema ? 'items' OR schema ? 'prefixItems' THEN
      FOR part, number_of IN SELECT one.given, one.at - 1 FROM jsonb_array_elements(value) WITH ORDINALITY AS one (given, at) LOOP
        rule := coalesce(schema -> 'prefixItems' -> number_of, schema -> 'items');
        IF rule IS NOT NULL THEN
          fault := headrace.payload_fault(rule, part, top, concat_ws('.', nullif(place, ''), number_of), depth + 1);
          IF fault IS NOT NULL THEN
            RETURN fault;
          END IF;
        END IF;
      END LOOP;
    END IF;
  WHEN 'object' THEN
    SELECT one.field INTO name FROM jsonb_array_elements_text(schema -> 'required') AS one (field) WHERE NOT value ? one.field LIMIT 1;
    IF FOUND THEN
      RETURN format('%s: %L is missing', here, name);
    END IF;
    IF schema ?| ARRAY['minProperties', 'maxProperties'] THEN
      SELECT count(*) INTO length FROM jsonb_object_keys(value);
      IF length < (schema ->> 'minProperties')::numeric THEN
        RETURN format('%s: has too few fields', here);
      ELSIF length > (schema ->> 'maxProperties')::numeric THEN
        RETURN format('%s: has too many fields', here);
      END IF;
    END IF;
    named := schema -> 'properties';
    IF schema ?| ARRAY['properties', 'additionalProperties', 'propertyNames'] THEN
      FOR name, part IN SELECT one.field, one.given FROM jsonb_each(value) AS one (field, given) LOOP
        IF schema ? 'propertyNames' THEN
          fault := headrace.payload_fault(schema -> 'propertyNames', to_jsonb(name), top, here, depth + 1);
          IF fault IS NOT NULL THEN
            RETURN fault;
          END IF;
        END IF;
        rule := CASE WHEN named ? name THEN named -> name ELSE schema -> 'additionalProperties' END;
        IF rule IS NOT NULL THEN
          fault := headrace.payload_fault(rule, part, top, concat_ws('.', nullif(place, ''), name), depth + 1);
          IF fault IS NOT NULL THEN
            RETURN CASE WHEN rule = 'false' THEN format('%s: there is no field %L', here, name) ELSE fault END;
          END IF;
        END IF;
      END LOOP;
    END IF;
  ELSE
    NULL;
  END CASE;

  FOR rule IN SELECT one.given FROM jsonb_array_elements(schema -> 'allOf') AS one (given) LOOP
    fault := headrace.payload_fault(rule, value, top, place, depth + 1);
    IF fault IS NOT NULL THEN
      RETURN fault;
    END IF;
  END LOOP;
  FOREACH name IN ARRAY ARRAY['anyOf', 'oneOf'] LOOP
    CONTINUE WHEN NOT schema ? name;
    fits := 0;
    first := NULL;
    FOR rule IN SELECT one.given FROM jsonb_array_elements(schema -> name) AS one (given) LOOP
      fault := headrace.payload_fault(rule, value, top, place, depth + 1);
      first := coalesce(first, fault);
      IF fault IS NULL THEN
        fits := fits + 1;
        EXIT WHEN name = 'anyOf';
      END IF;
    END LOOP;
    IF fits = 0 THEN
      RETURN coalesce(first, here || ': nothing is allowed here') || ', and fits none of the other forms either';
    ELSIF fits > 1 THEN
      RETURN here || ': fits more than one form';
    END IF;
  END LOOP;
  RETURN NULL;
END
$$;
COMMENT ON FUNCTION headrace.payload_fault(jsonb, jsonb, jsonb, text, integer) IS 'What of a payload does not fit the payload_check of its type; null if it fits.';
GRANT EXECUTE ON FUNCTION headrace.payload_fault(jsonb, jsonb, jsonb, text, integer) TO headrace_app;
