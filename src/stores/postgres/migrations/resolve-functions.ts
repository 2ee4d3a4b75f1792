/** Ends of holds, credits and forgetting. The order of locks is that of reserving. */
export const RESOLVE_FUNCTIONS: readonly string[] = [
  // Null when the hold had ended before; else what was charged and what the balance lacked.
  `CREATE FUNCTION settle(
    p_hold text, p_amount bigint, p_description text, p_now bigint,
    p_status integer, p_headers text, p_body bytea, OUT charged bigint, OUT shortfall bigint
  ) LANGUAGE plpgsql SET search_path FROM CURRENT SET lock_timeout = '10s' AS $$
  DECLARE
    v_hold holds;
    v_available bigint;
  BEGIN
    UPDATE holds SET status = 'settled' WHERE id = p_hold AND status = 'held' RETURNING * INTO v_hold;
    IF NOT FOUND THEN
      RETURN;
    END IF;
    SELECT a.balance + v_hold.amount INTO STRICT v_available FROM accounts a WHERE a.id = v_hold.account_id FOR UPDATE;
    charged := least(p_amount, v_available);
    shortfall := p_amount - charged;
    UPDATE accounts a SET balance = v_available - charged, held = a.held - v_hold.amount WHERE a.id = v_hold.account_id;
    IF charged <> v_hold.amount AND v_hold.counter_ids <> '{}' THEN
      PERFORM 1 FROM counters c WHERE c.id = ANY (v_hold.counter_ids) ORDER BY c.name FOR UPDATE;
      UPDATE counters c SET spent = c.spent - v_hold.amount + charged WHERE c.id = ANY (v_hold.counter_ids);
    END IF;
    INSERT INTO entries (account_id, kind, amount, hold_id, description, created_at_ms)
    VALUES (v_hold.account_id, 'charge', -charged, p_hold, p_description, p_now);
    IF shortfall > 0 THEN
      INSERT INTO entries (account_id, kind, amount, missing, hold_id, description, created_at_ms)
      VALUES (v_hold.account_id, 'shortfall', 0, shortfall, p_hold, p_description, p_now);
    END IF;
    IF v_hold.claim_key IS NOT NULL THEN
      IF p_status IS NULL THEN
        PERFORM release_claim(v_hold.claim_account_id, v_hold.claim_key, v_hold.claim_fingerprint);
      ELSE
        PERFORM complete_claim(v_hold.claim_account_id, v_hold.claim_key, v_hold.claim_fingerprint,
          p_status, p_headers, p_body);
      END IF;
    END IF;
  END $$`,

  // Ends open holds without a charge; gives how many of them were open.
  `CREATE FUNCTION end_holds(p_ids text[], p_status text) RETURNS integer
  LANGUAGE plpgsql SET search_path FROM CURRENT SET lock_timeout = '10s' AS $$
  DECLARE
    v_holds holds[];
  BEGIN
    WITH ended AS (UPDATE holds SET status = p_status WHERE id = ANY (p_ids) AND status = 'held' RETURNING *)
    SELECT array_agg(ROW(ended.*)::holds) INTO v_holds FROM ended;
    IF v_holds IS NULL THEN
      RETURN 0;
    END IF;
    PERFORM 1 FROM accounts a WHERE a.id IN (SELECT h.account_id FROM unnest(v_holds) h) ORDER BY a.id FOR UPDATE;
    PERFORM 1 FROM counters c WHERE c.id IN (SELECT i FROM unnest(v_holds) h, unnest(h.counter_ids) i)
      ORDER BY c.name FOR UPDATE;
    UPDATE accounts a SET balance = a.balance + f.amount, held = a.held - f.amount
    FROM (SELECT h.account_id, sum(h.amount)::bigint AS amount FROM unnest(v_holds) h GROUP BY h.account_id) f
    WHERE a.id = f.account_id;
    UPDATE counters c SET spent = c.spent - f.amount
    FROM (
      SELECT i AS id, sum(h.amount)::bigint AS amount FROM unnest(v_holds) h, unnest(h.counter_ids) i GROUP BY i
    ) f
    WHERE c.id = f.id;
    PERFORM release_claim(h.claim_account_id, h.claim_key, h.claim_fingerprint)
    FROM unnest(v_holds) h WHERE h.claim_key IS NOT NULL;
    RETURN cardinality(v_holds);
  END $$`,

  // Holds that another process is ending right now are passed over, so that several may sweep at the same time.
  `CREATE FUNCTION expire_holds(p_now bigint, p_limit integer) RETURNS integer
  LANGUAGE sql SET search_path FROM CURRENT AS $$
    SELECT end_holds(ARRAY(
      SELECT h.id FROM holds h WHERE h.status = 'held' AND h.expires_at_ms <= p_now
      ORDER BY h.expires_at_ms LIMIT p_limit FOR UPDATE SKIP LOCKED
    ), 'expired')
  $$`,

  // False when that credit was given before, null when there is no such account.
  `CREATE FUNCTION credit(p_credit text, p_account_id text, p_amount bigint, p_description text, p_now bigint)
  RETURNS boolean LANGUAGE plpgsql SET search_path FROM CURRENT SET lock_timeout = '10s' AS $$
  BEGIN
    PERFORM 1 FROM accounts a WHERE a.id = p_account_id FOR UPDATE;
    IF NOT FOUND THEN
      RETURN NULL;
    END IF;
    INSERT INTO entries (account_id, kind, amount, credit_id, description, created_at_ms)
    VALUES (p_account_id, 'credit', p_amount, p_credit, p_description, p_now) ON CONFLICT (credit_id) DO NOTHING;
    IF NOT FOUND THEN
      RETURN false;
    END IF;
    -- Adding the held money makes the sum overflow here, not when a hold comes back.
    UPDATE accounts a SET balance = a.balance + a.held + p_amount - a.held WHERE a.id = p_account_id;
    RETURN true;
  END $$`,

  // Drops what nobody will ask for any more: outcomes some time after the deadline of the hold, expired keys and counters.
  // Gives the largest number of rows dropped from one table: p_limit when there may be more.
  `CREATE FUNCTION forget(p_now bigint, p_refusals_kept bigint, p_ends_kept bigint, p_limit integer) RETURNS integer
  LANGUAGE sql SET search_path FROM CURRENT AS $$
    WITH refusals AS (
      DELETE FROM holds WHERE id IN (
        SELECT id FROM holds WHERE status = 'refused' AND expires_at_ms <= p_now - p_refusals_kept
        ORDER BY expires_at_ms LIMIT p_limit FOR UPDATE SKIP LOCKED
      ) RETURNING 1
    ), ends AS (
      DELETE FROM holds WHERE id IN (
        SELECT id FROM holds
        WHERE status IN ('settled', 'voided', 'expired') AND expires_at_ms <= p_now - p_ends_kept
        ORDER BY expires_at_ms LIMIT p_limit FOR UPDATE SKIP LOCKED
      ) RETURNING 1
    ), expired_claims AS (
      DELETE FROM claims WHERE (account_id, key) IN (
        SELECT account_id, key FROM claims WHERE expires_at_ms <= p_now
        ORDER BY expires_at_ms LIMIT p_limit FOR UPDATE SKIP LOCKED
      ) RETURNING 1
    ), expired_counters AS (
      DELETE FROM counters WHERE id IN (
        SELECT id FROM counters WHERE expires_at_ms <= p_now
        ORDER BY expires_at_ms LIMIT p_limit FOR UPDATE SKIP LOCKED
      ) RETURNING 1
    )
    SELECT greatest(
      (SELECT count(*) FROM refusals), (SELECT count(*) FROM ends),
      (SELECT count(*) FROM expired_claims), (SELECT count(*) FROM expired_counters)
    )::integer
  $$`,
]
