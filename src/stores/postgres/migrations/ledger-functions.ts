import { REPAYMENT } from '../../ledger.ts'

/**
 * Reserving. Locks are taken in one order everywhere, so that no two transactions wait for each other: holds, then
 * accounts by id, then counters by name, then claims.
 */
export const RESERVE_FUNCTIONS: readonly string[] = [
  // The clock that all processes share. Not that of the transaction, which may have waited for a lock.
  `CREATE FUNCTION now_ms() RETURNS bigint LANGUAGE sql VOLATILE SET search_path FROM CURRENT AS $$
    SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint
  $$`,

  // Locks the counters named in a batch, made or set to zero where needed, and gives them by name.
  `CREATE FUNCTION lock_counters(p_requests jsonb, p_now bigint) RETURNS SETOF counters
  LANGUAGE plpgsql SET search_path FROM CURRENT SET lock_timeout = '10s' AS $$
  DECLARE
    v_names text[];
    v_expiries bigint[];
    v_count integer;
  BEGIN
    SELECT array_agg(w.counter ORDER BY w.counter), array_agg(w.expires ORDER BY w.counter)
    INTO v_names, v_expiries
    FROM (
      SELECT l.counter, max(l.expires) AS expires
      FROM jsonb_array_elements(p_requests) r, jsonb_to_recordset(r -> 'limits') AS l(counter text, expires bigint)
      GROUP BY l.counter
    ) w;
    IF v_names IS NULL THEN
      RETURN;
    END IF;
    LOOP
      INSERT INTO counters (name, spent, expires_at_ms)
      SELECT w.name, 0, w.expires FROM unnest(v_names, v_expiries) AS w(name, expires) ORDER BY w.name
      ON CONFLICT (name) DO NOTHING;
      PERFORM 1 FROM counters WHERE name = ANY (v_names) ORDER BY name FOR UPDATE;
      GET DIAGNOSTICS v_count = ROW_COUNT;
      -- Fewer when one was forgotten in between.
      EXIT WHEN v_count = cardinality(v_names);
    END LOOP;
    -- A new id, so that holds of the expired period do not correct the new one.
    UPDATE counters c SET spent = 0, id = nextval(pg_get_serial_sequence('counters', 'id')), expires_at_ms = w.expires
    FROM unnest(v_names, v_expiries) AS w(name, expires)
    WHERE c.name = w.name AND c.expires_at_ms <= p_now;
    UPDATE counters c SET expires_at_ms = w.expires
    FROM unnest(v_names, v_expiries) AS w(name, expires)
    WHERE c.name = w.name AND c.expires_at_ms < w.expires;
    RETURN QUERY SELECT * FROM counters WHERE name = ANY (v_names) ORDER BY name;
  END $$`,

  // Judges reservations of one account in their order, each as if it came alone. One outcome for each. A request that says how
  // long its hold lives has it expire by this clock.
  `CREATE FUNCTION reserve(p_account_id text, p_requests jsonb, p_now bigint) RETURNS SETOF outcome
  LANGUAGE plpgsql SET search_path FROM CURRENT SET lock_timeout = '10s' AS $$
  DECLARE
    v_balance bigint;
    v_owed bigint;
    v_time bigint := now_ms();
    v_total bigint := 0;
    v_names text[];
    v_ids bigint[];
    v_spent bigint[];
    v_places integer[];
    v_request record;
    v_outcome outcome;
    v_claim outcome;
    v_place integer;
  BEGIN
    SELECT a.balance, a.owed INTO v_balance, v_owed FROM accounts a WHERE a.id = p_account_id FOR UPDATE;
    IF FOUND AND jsonb_path_exists(p_requests, '$[*].limits[*]') THEN
      SELECT array_agg(c.name), array_agg(c.id), array_agg(c.spent) INTO v_names, v_ids, v_spent
      FROM lock_counters(p_requests, p_now) c;
    END IF;

    FOR v_request IN
      SELECT * FROM ROWS FROM (jsonb_to_recordset(p_requests) AS (
        hold text, key text, amount bigint, expires bigint, lives bigint, limits jsonb,
        claim_account text, claim_key text, claim_fingerprint text, claim_expires bigint
      )) WITH ORDINALITY AS r ORDER BY r.ordinality
    LOOP
      v_outcome := NULL;
      SELECT CASE h.status WHEN 'refused' THEN h.refusal ELSE 'held' END, h.refused_by
      INTO v_outcome.status, v_outcome.counter FROM holds h WHERE h.id = v_request.hold;
      IF FOUND THEN
        RETURN NEXT v_outcome;
        CONTINUE;
      END IF;

      v_places := '{}';
      IF v_balance IS NULL THEN
        v_outcome.status := 'unknown_account';
      ELSE
        v_outcome.status := CASE WHEN v_owed > 0 THEN 'in_arrears'
          WHEN v_balance < v_request.amount THEN 'insufficient_balance' ELSE 'held' END;
        IF v_names IS NOT NULL AND v_outcome.status = 'held' THEN
          SELECT coalesce(array_agg(DISTINCT array_position(v_names, l.counter)), '{}') INTO v_places
          FROM jsonb_to_recordset(v_request.limits) AS l(counter text);
          SELECT 'spending_limit', l.counter INTO v_outcome.status, v_outcome.counter
          FROM ROWS FROM (jsonb_to_recordset(v_request.limits) AS (counter text, most bigint))
            WITH ORDINALITY AS l
          WHERE v_request.amount > 0 AND v_request.amount > l.most - v_spent[array_position(v_names, l.counter)]
          ORDER BY l.ordinality LIMIT 1;
          IF NOT FOUND THEN
            v_outcome := ('held', NULL, NULL, NULL, NULL);
          END IF;
        END IF;
        -- A key that is taken comes first, so that an answer is replayed even on an empty balance.
        IF v_request.claim_key IS NOT NULL THEN
          IF v_outcome.status = 'held' THEN
            v_claim := take_claim(v_request.claim_account, v_request.claim_key, v_request.claim_fingerprint,
              v_request.claim_expires, p_now);
          ELSE
            v_claim := find_claim(v_request.claim_account, v_request.claim_key, v_request.claim_fingerprint, p_now);
          END IF;
          IF v_claim.status <> 'claimed' THEN
            v_outcome := v_claim;
          END IF;
        END IF;
      END IF;

      IF v_outcome.status = 'held' THEN
        v_balance := v_balance - v_request.amount;
        v_total := v_total + v_request.amount;
        FOREACH v_place IN ARRAY v_places LOOP
          v_spent[v_place] := v_spent[v_place] + v_request.amount;
        END LOOP;
      END IF;
      -- A replay is found again through its key.
      IF v_outcome.status <> 'replay' THEN
        INSERT INTO holds VALUES (
          v_request.hold, p_account_id, v_request.key, v_request.amount,
          CASE v_outcome.status WHEN 'held' THEN 'held' ELSE 'refused' END,
          nullif(v_outcome.status, 'held'), v_outcome.counter,
          ARRAY(SELECT v_ids[p] FROM unnest(v_places) p),
          v_request.claim_account, v_request.claim_key, v_request.claim_fingerprint,
          coalesce(v_time + v_request.lives, v_request.expires)
        ) ON CONFLICT (id) DO NOTHING;
        IF NOT FOUND THEN
          RAISE EXCEPTION 'the same hold was reserved at the same time' USING ERRCODE = 'serialization_failure';
        END IF;
      END IF;
      RETURN NEXT v_outcome;
    END LOOP;

    IF v_total > 0 THEN
      UPDATE accounts a SET balance = v_balance, held = a.held + v_total WHERE a.id = p_account_id;
      IF v_names IS NOT NULL THEN
        UPDATE counters c SET spent = n.spent FROM unnest(v_ids, v_spent) AS n(id, spent)
        WHERE c.id = n.id AND c.spent <> n.spent;
      END IF;
    END IF;
  END $$`,
]

/** Ends of holds, credits and purging. The order of locks is that of reserving. */
export const RESOLVE_FUNCTIONS: readonly string[] = [
  // Pays what accounts owe from their balances, as far as those go. The caller has locked them.
  `CREATE FUNCTION repay(p_accounts text[], p_now bigint) RETURNS void
  LANGUAGE sql SET search_path FROM CURRENT AS $$
    WITH due AS (
      SELECT a.id, least(a.balance, a.owed) AS paid FROM accounts a
      WHERE a.id = ANY (p_accounts) AND a.owed > 0 AND a.balance > 0
    ), repaid AS (
      UPDATE accounts a SET balance = a.balance - d.paid, owed = a.owed - d.paid FROM due d WHERE a.id = d.id
      RETURNING a.id, d.paid
    )
    INSERT INTO entries (account_id, kind, amount, owed, description, created_at_ms)
    SELECT r.id, 'repayment', -r.paid, -r.paid, '${REPAYMENT}', p_now FROM repaid r
  $$`,

  // What the balance lacks is owed, and a hold that has expired is charged too, against the balance, once.
  // `ended_by`: how a hold that is not charged had ended.
  `CREATE FUNCTION settle(
    p_hold text, p_amount bigint, p_description text, p_now bigint,
    p_status integer, p_headers text, p_body bytea, p_record jsonb DEFAULT NULL,
    OUT charged bigint, OUT shortfall bigint, OUT ended_by text
  ) LANGUAGE plpgsql SET search_path FROM CURRENT SET lock_timeout = '10s' AS $$
  DECLARE
    v_hold holds;
    v_held bigint;
    v_available bigint;
    v_owed bigint;
  BEGIN
    UPDATE holds SET status = 'settled' WHERE id = p_hold AND status = 'held' RETURNING * INTO v_hold;
    v_held := v_hold.amount;
    IF NOT FOUND THEN
      UPDATE holds SET status = 'settled' WHERE id = p_hold AND status = 'expired' RETURNING * INTO v_hold;
      IF NOT FOUND THEN
        SELECT h.status INTO ended_by FROM holds h WHERE h.id = p_hold AND h.status <> 'refused';
        RETURN;
      END IF;
      -- Its money and its key went back when it expired, and the key may belong to another request by now.
      v_held := 0;
      v_hold.claim_key := NULL;
    END IF;
    SELECT a.balance + v_held, a.owed INTO STRICT v_available, v_owed FROM accounts a WHERE a.id = v_hold.account_id FOR UPDATE;
    charged := least(p_amount, v_available);
    shortfall := p_amount - charged;
    UPDATE accounts a SET balance = v_available - charged, held = a.held - v_held, owed = a.owed + shortfall
    WHERE a.id = v_hold.account_id;
    IF p_amount <> v_held AND v_hold.counter_ids <> '{}' THEN
      PERFORM 1 FROM counters c WHERE c.id = ANY (v_hold.counter_ids) ORDER BY c.name FOR UPDATE;
      UPDATE counters c SET spent = c.spent - v_held + p_amount WHERE c.id = ANY (v_hold.counter_ids);
    END IF;
    INSERT INTO entries (account_id, kind, amount, hold_id, description, created_at_ms)
    VALUES (v_hold.account_id, 'charge', -charged, p_hold, p_description, p_now);
    IF shortfall > 0 THEN
      INSERT INTO entries (account_id, kind, amount, owed, hold_id, description, created_at_ms)
      VALUES (v_hold.account_id, 'owed', 0, shortfall, p_hold, p_description, p_now);
    ELSIF v_owed > 0 THEN
      PERFORM repay(ARRAY[v_hold.account_id], p_now);
    END IF;
    IF p_record IS NOT NULL THEN
      PERFORM write_usage(jsonb_build_array(p_record), p_now, p_amount, charged);
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
    PERFORM repay(ARRAY(SELECT DISTINCT h.account_id FROM unnest(v_holds) h), now_ms());
    UPDATE counters c SET spent = c.spent - f.amount
    FROM (
      SELECT i AS id, sum(h.amount)::bigint AS amount FROM unnest(v_holds) h, unnest(h.counter_ids) i GROUP BY i
    ) f
    WHERE c.id = f.id;
    PERFORM release_claim(h.claim_account_id, h.claim_key, h.claim_fingerprint)
    FROM unnest(v_holds) h WHERE h.claim_key IS NOT NULL;
    RETURN cardinality(v_holds);
  END $$`,

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
    PERFORM repay(ARRAY[p_account_id], p_now);
    RETURN true;
  END $$`,

  // To which account a credit was given; null: to none.
  `CREATE FUNCTION credited_account(p_credit text) RETURNS text LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
    SELECT e.account_id FROM entries e WHERE e.credit_id = p_credit
  $$`,

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
