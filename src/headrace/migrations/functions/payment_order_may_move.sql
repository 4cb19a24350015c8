CREATE OR REPLACE FUNCTION headrace.payment_order_may_move(source text, target text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE source
  WHEN target      THEN true
  WHEN 'PENDING'   THEN target IN ('PAID', 'CLOSED', 'REFUNDED')  -- REFUNDED: of a payment without a notice
  WHEN 'CLOSED'    THEN target IN ('PAID', 'REFUNDED')            -- paid in the moment in which it was closed
  WHEN 'PAID'      THEN target IN ('REFUNDING', 'REFUNDED')       -- straight: refunded on WeChat Pay's own pages
  WHEN 'REFUNDING' THEN target IN ('PAID', 'REFUNDED')            -- PAID: the refund failed
  ELSE false
END;
COMMENT ON FUNCTION headrace.payment_order_may_move(text, text) IS 'Whether an order may go from one status to another (or stay).';
GRANT EXECUTE ON FUNCTION headrace.payment_order_may_move(text, text) TO headrace_app;
