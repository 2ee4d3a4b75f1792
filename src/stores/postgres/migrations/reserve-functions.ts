/**
 * Reserving. Locks are taken in one order everywhere, so that no two transactions wait for each other: holds, then
 * accounts by id, then counters by name, then claims.
 */
export const RESERVE_FUNCTIONS: readonly string[] = [
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

  // Judges reservations of one account in their order, each as if it came alone. One outcome for each.
  `CREATE FUNCTION reserve(p_account_id text, p_requests jsonb, p_now bigint) RETURNS SETOF outcome
  LANGUAGE plpgsql SET search_path FROM CURRENT SET lock_timeout = '10s' AS $$
  DECLARE
    v_balance bigint;
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
    SELECT a.balance INTO v_balance FROM accounts a WHERE a.id = p_account_id FOR UPDATE;
    IF FOUND AND jsonb_path_exists(p_requests, '$[*].limits[*]') THEN
      SELECT array_agg(c.name), array_agg(c.id), array_agg(c.spent) INTO v_names, v_ids, v_spent
      FROM lock_counters(p_requests, p_now) c;
    END IF;

    FOR v_request IN
      SELECT * FROM ROWS FROM (jsonb_to_recordset(p_requests) AS (
        hold text, key text, amount bigint, expires bigint, limits jsonb,
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
        v_outcome.status := CASE WHEN v_balance < v_request.amount THEN 'insufficient_balance' ELSE 'held' END;
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
          v_request.claim_account, v_request.claim_key, v_request.claim_fingerprint, v_request.expires
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
