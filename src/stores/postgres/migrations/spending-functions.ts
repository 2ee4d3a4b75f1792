/** Spending of accounts and keys. */
export const SPENDING_FUNCTIONS: readonly string[] = [
  // Clock that all processes share. It is not the transaction's clock, because the transaction may have waited for a lock.
  `CREATE FUNCTION now_ms() RETURNS bigint LANGUAGE sql VOLATILE SET search_path FROM CURRENT AS $$
    SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint
  $$`,

  // Returns the UTC day of a time: 20261122.
  `CREATE FUNCTION period_of(p_ms bigint) RETURNS integer LANGUAGE sql IMMUTABLE AS $$
    SELECT to_char(to_timestamp(p_ms / 1000) AT TIME ZONE 'UTC', 'YYYYMMDD')::integer
  $$`,

  // Returns the spending as of a day: zero for past periods. An earlier day changes nothing, because clocks of processes may differ.
  `CREATE FUNCTION spending_at(s spending, p_period integer) RETURNS spending
  LANGUAGE sql IMMUTABLE SET search_path FROM CURRENT AS $$
    SELECT CASE
      WHEN p_period <= (s).period THEN s
      WHEN p_period / 100 = (s).period / 100 THEN ROW(p_period, 0, (s).charged_month, 0, (s).held_month)::spending
      ELSE ROW(p_period, 0, 0, 0, 0)::spending
    END
  $$`,

  // Returns the spending after a change by a hold of a day. Amounts of past days or months no longer count.
  `CREATE FUNCTION spending_changed(s spending, p_period integer, p_charged bigint, p_held bigint) RETURNS spending
  LANGUAGE sql IMMUTABLE SET search_path FROM CURRENT AS $$
    SELECT CASE
      WHEN p_period / 100 <> (s).period / 100 THEN s
      ELSE ROW((s).period,
        (s).charged_day + CASE WHEN p_period = (s).period THEN p_charged ELSE 0 END, (s).charged_month + p_charged,
        (s).held_day + CASE WHEN p_period = (s).period THEN p_held ELSE 0 END, (s).held_month + p_held)::spending
    END
  $$`,

  // Whether an amount would exceed a cap.
  `CREATE FUNCTION passes_cap(s spending, p_amount bigint, p_cap bigint, p_cap_period text) RETURNS boolean
  LANGUAGE sql IMMUTABLE SET search_path FROM CURRENT AS $$
    SELECT p_amount > 0 AND p_amount > p_cap - CASE p_cap_period
      WHEN 'day' THEN (s).charged_day + (s).held_day ELSE (s).charged_month + (s).held_month END
  $$`,

  // Locks the spending of keys, in the order of their ids. Creates missing rows.
  `CREATE FUNCTION lock_keys(p_keys text[]) RETURNS SETOF key_spending
  LANGUAGE plpgsql SET search_path FROM CURRENT SET lock_timeout = '10s' AS $$
  DECLARE
    v_count integer;
  BEGIN
    LOOP
      PERFORM 1 FROM key_spending s WHERE s.key_id = ANY (p_keys) ORDER BY s.key_id FOR UPDATE;
      GET DIAGNOSTICS v_count = ROW_COUNT;
      EXIT WHEN v_count = cardinality(p_keys);
      INSERT INTO key_spending (key_id) SELECT k FROM unnest(p_keys) k ORDER BY k ON CONFLICT (key_id) DO NOTHING;
    END LOOP;
    RETURN QUERY SELECT * FROM key_spending s WHERE s.key_id = ANY (p_keys) ORDER BY s.key_id;
  END $$`,
]
