-- Several claims, each as its fence.
CREATE OR REPLACE FUNCTION headrace.fences(seqs bigint[], attempts integer[]) RETURNS bigint[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ARRAY(SELECT given.seq << 20 | given.attempt FROM unnest(seqs, attempts) AS given (seq, attempt));
