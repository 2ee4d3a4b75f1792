import { expiryText } from '../../expiring-credits.ts'

/**
 * Idempotency keys. `outcome` is a result of claiming or reserving: a status, the replayed answer, the exceeded counter. A
 * function that waits for another's lock times out after ten seconds, even if the process that called it has died.
 */
export const CLAIM_FUNCTIONS: readonly string[] = [
  // Returns the state of a key; a null status if it is free.
  `CREATE FUNCTION find_claim(p_account_id text, p_key text, p_fingerprint text, p_now bigint) RETURNS outcome
  LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
  DECLARE
    v_claim claims;
    v_outcome outcome;
  BEGIN
    SELECT * INTO v_claim FROM claims c WHERE c.account_id = p_account_id AND c.key = p_key AND c.expires_at_ms > p_now;
    IF NOT FOUND THEN
      RETURN v_outcome;
    ELSIF v_claim.fingerprint <> p_fingerprint THEN
      v_outcome.status := 'mismatch';
    ELSIF v_claim.answer_status IS NULL THEN
      v_outcome.status := 'in_flight';
    ELSE
      v_outcome := ('replay', NULL, v_claim.answer_status, v_claim.answer_headers, v_claim.answer_body);
    END IF;
    RETURN v_outcome;
  END $$`,

  // The insert decides between many concurrent equal claims; a loser reads the winner, which may be gone by then. A claim that
  // specifies its lifetime expires by the clock of the server.
  `CREATE FUNCTION take_claim(p_account_id text, p_key text, p_fingerprint text, p_expires bigint, p_now bigint,
    p_claimed_by text DEFAULT NULL, p_lives bigint DEFAULT NULL)
  RETURNS outcome LANGUAGE plpgsql SET search_path FROM CURRENT SET lock_timeout = '10s' AS $$
  DECLARE
    v_outcome outcome;
    v_now bigint := CASE WHEN p_lives IS NULL THEN p_now ELSE now_ms() END;
    v_expires bigint := coalesce(v_now + p_lives, p_expires);
  BEGIN
    LOOP
      INSERT INTO claims AS c (account_id, key, fingerprint, expires_at_ms, claimed_by)
      VALUES (p_account_id, p_key, p_fingerprint, v_expires, p_claimed_by)
      ON CONFLICT (account_id, key) DO UPDATE SET
        fingerprint = excluded.fingerprint, expires_at_ms = excluded.expires_at_ms, claimed_by = excluded.claimed_by,
        answer_status = NULL, answer_headers = NULL, answer_body = NULL
      WHERE c.expires_at_ms <= v_now;
      IF FOUND THEN
        v_outcome.status := 'claimed';
        RETURN v_outcome;
      END IF;
      v_outcome := find_claim(p_account_id, p_key, p_fingerprint, v_now);
      IF v_outcome.status = 'in_flight' AND p_claimed_by IS NOT NULL THEN
        UPDATE claims c SET expires_at_ms = greatest(c.expires_at_ms, v_expires)
        WHERE c.account_id = p_account_id AND c.key = p_key AND c.claimed_by = p_claimed_by AND c.answer_status IS NULL;
        IF FOUND THEN
          v_outcome.status := 'claimed';
        END IF;
      END IF;
      IF v_outcome.status IS NOT NULL THEN
        RETURN v_outcome;
      END IF;
    END LOOP;
  END $$`,

  // The first answer stays. Returns false if the key no longer belongs to the request. An expired key may belong to another
  // request, which has another body or another claimant.
  `CREATE FUNCTION complete_claim(p_account_id text, p_key text, p_fingerprint text, p_status integer, p_headers text, p_body bytea,
    p_claimed_by text DEFAULT NULL, p_expires bigint DEFAULT NULL)
  RETURNS boolean LANGUAGE plpgsql SET search_path FROM CURRENT SET lock_timeout = '10s' AS $$
  BEGIN
    UPDATE claims c SET answer_status = p_status, answer_headers = p_headers, answer_body = p_body,
      expires_at_ms = greatest(c.expires_at_ms, p_expires)
    WHERE c.account_id = p_account_id AND c.key = p_key AND c.fingerprint = p_fingerprint AND c.answer_status IS NULL
      AND (c.claimed_by IS NULL OR c.claimed_by = coalesce(p_claimed_by, c.claimed_by));
    RETURN FOUND OR EXISTS (
      SELECT FROM claims c WHERE c.account_id = p_account_id AND c.key = p_key AND c.fingerprint = p_fingerprint
        AND c.answer_status IS NOT NULL AND (c.claimed_by IS NULL OR c.claimed_by = coalesce(p_claimed_by, c.claimed_by))
    );
  END $$`,

  `CREATE FUNCTION release_claim(p_account_id text, p_key text, p_fingerprint text, p_claimed_by text DEFAULT NULL)
  RETURNS void LANGUAGE sql SET search_path FROM CURRENT SET lock_timeout = '10s' AS $$
    DELETE FROM claims
    WHERE account_id = p_account_id AND key = p_key AND fingerprint = p_fingerprint AND answer_status IS NULL
      AND (claimed_by IS NULL OR claimed_by = coalesce(p_claimed_by, claimed_by))
  $$`,
]

/**
 * Credits that expire, adjustments and refunds. Locks are taken in the order of reserving; credits that expire are changed under
 * their account's lock.
 */
export const JOURNAL_FUNCTIONS: readonly string[] = [
  // Takes an amount out of one of them.
  `CREATE FUNCTION take_credit(p_number bigint, p_amount bigint) RETURNS void
  LANGUAGE sql SET search_path FROM CURRENT AS $$
    DELETE FROM expiring_credits c WHERE c.number = p_number AND c.remaining = p_amount;
    UPDATE expiring_credits c SET remaining = c.remaining - p_amount WHERE c.number = p_number AND c.remaining > p_amount
  $$`,

  // Spends money: the credit that expires first is spent first, and credits that had expired when the hold was created are not
  // used. The caller has locked the account.
  `CREATE FUNCTION spend_credits(p_account text, p_amount bigint, p_at bigint) RETURNS void
  LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
  DECLARE
    v_left bigint := p_amount;
    v_credit expiring_credits;
  BEGIN
    FOR v_credit IN
      SELECT * FROM expiring_credits c WHERE c.account_id = p_account AND c.expires_at_ms > p_at
      ORDER BY c.expires_at_ms, c.number
    LOOP
      EXIT WHEN v_left <= 0;
      PERFORM take_credit(v_credit.number, least(v_credit.remaining, v_left));
      v_left := v_left - v_credit.remaining;
    END LOOP;
    UPDATE accounts a SET first_expiry_ms = (
      SELECT min(c.expires_at_ms) FROM expiring_credits c WHERE c.account_id = p_account
    ) WHERE a.id = p_account;
  END $$`,

  // Removes expired credits from the balance and returns the amount. Money that open holds from before the expiry may still
  // charge stays until they end; p_held and p_created describe a hold that is just ending.
  `CREATE FUNCTION expire_credits(p_account text, p_now bigint, p_held bigint DEFAULT 0, p_created bigint DEFAULT NULL)
  RETURNS bigint LANGUAGE plpgsql SET search_path FROM CURRENT SET lock_timeout = '10s' AS $$
  DECLARE
    v_account accounts;
    v_credit expiring_credits;
    v_at bigint;
    v_held bigint;
    v_kept bigint := 0;
    v_taken bigint;
    v_total bigint := 0;
  BEGIN
    SELECT * INTO STRICT v_account FROM accounts a WHERE a.id = p_account FOR UPDATE;
    v_at := greatest(v_account.journal_at_ms, p_now);
    FOR v_credit IN
      SELECT * FROM expiring_credits c WHERE c.account_id = p_account AND c.expires_at_ms <= p_now
      ORDER BY c.expires_at_ms, c.number
    LOOP
      v_held := 0;
      -- No index leads to the open holds of an account: they are read only if there are others.
      IF v_account.held > p_held THEN
        SELECT coalesce(sum(h.amount), 0)::bigint INTO v_held FROM holds h
        WHERE h.status = 'held' AND NOT h.is_metered AND h.account_id = p_account AND h.created_at_ms < v_credit.expires_at_ms;
      END IF;
      IF p_created < v_credit.expires_at_ms THEN
        v_held := v_held + p_held;
      END IF;
      v_held := least(v_credit.remaining, greatest(v_held - v_kept, 0));
      v_kept := v_kept + v_held;
      v_taken := least(v_credit.remaining - v_held, v_account.balance - v_total);
      CONTINUE WHEN v_taken = 0;
      v_total := v_total + v_taken;
      PERFORM take_credit(v_credit.number, v_taken);
      INSERT INTO entries (account_id, kind, amount, operation_id, description, created_at_ms, balance_after, owed_after)
      VALUES (p_account, 'expiry', -v_taken, v_credit.credit_id, '${expiryText('')}' || v_credit.credit_id, v_at,
        v_account.balance + v_account.held - v_total, v_account.owed);
    END LOOP;
    IF v_total > 0 THEN
      UPDATE accounts a SET balance = a.balance - v_total, journal_at_ms = v_at, first_expiry_ms = (
        SELECT min(c.expires_at_ms) FROM expiring_credits c WHERE c.account_id = p_account
      ) WHERE a.id = p_account;
    END IF;
    RETURN v_total;
  END $$`,

  // Processes accounts with expired credits one after the other and returns how many there were.
  `CREATE FUNCTION expire_due_credits(p_now bigint, p_limit integer) RETURNS integer
  LANGUAGE plpgsql SET search_path FROM CURRENT SET lock_timeout = '10s' AS $$
  DECLARE
    v_ids text[];
  BEGIN
    SELECT array_agg(d.id) INTO v_ids FROM (
      SELECT a.id FROM accounts a WHERE a.first_expiry_ms <= p_now
      ORDER BY a.first_expiry_ms LIMIT p_limit FOR UPDATE SKIP LOCKED
    ) d;
    PERFORM expire_credits(i, p_now) FROM unnest(v_ids) i;
    RETURN coalesce(cardinality(v_ids), 0);
  END $$`,

  // A metered account owes the part that its balance lacks. Returns null if there is no such account, and "conflict" if the id
  // was used for another adjustment.
  `CREATE FUNCTION adjust(
    p_id text, p_account text, p_amount bigint, p_description text, p_now bigint, p_billing text DEFAULT NULL
  ) RETURNS text
  LANGUAGE plpgsql SET search_path FROM CURRENT SET lock_timeout = '10s' AS $$
  DECLARE
    v_now bigint := coalesce(p_now, now_ms());
    v_account accounts;
    v_made entries;
    v_owed bigint := 0;
  BEGIN
    SELECT * INTO v_account FROM accounts a WHERE a.id = p_account FOR UPDATE;
    IF NOT FOUND THEN
      RETURN NULL;
    END IF;
    SELECT * INTO v_made FROM entries e WHERE e.kind = 'adjustment' AND e.operation_id = p_id;
    IF FOUND THEN
      RETURN CASE WHEN v_made.account_id = p_account AND v_made.amount - v_made.owed = p_amount THEN 'repeated' ELSE 'conflict' END;
    END IF;
    IF v_account.first_expiry_ms <= v_now THEN
      v_account.balance := v_account.balance - expire_credits(p_account, v_now);
    END IF;
    IF coalesce(v_account.billing, p_billing) = 'metered' AND p_amount < 0 THEN
      v_owed := greatest(-p_amount - v_account.balance, 0);
    END IF;
    UPDATE accounts a SET balance = a.balance + a.held + p_amount + v_owed - a.held, owed = a.owed + v_owed,
      journal_at_ms = greatest(a.journal_at_ms, v_now)
    WHERE a.id = p_account AND a.balance + (p_amount + v_owed) >= 0 RETURNING * INTO v_account;
    IF NOT FOUND THEN
      RETURN 'insufficient_balance';
    END IF;
    INSERT INTO entries (account_id, kind, amount, owed, operation_id, description, created_at_ms, balance_after, owed_after)
    VALUES (p_account, 'adjustment', p_amount + v_owed, v_owed, p_id, p_description, v_account.journal_at_ms,
      v_account.balance + v_account.held, v_account.owed) ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'the same adjustment was made at the same time' USING ERRCODE = 'serialization_failure';
    END IF;
    IF v_account.first_expiry_ms IS NOT NULL AND p_amount < 0 THEN
      PERFORM spend_credits(p_account, -(p_amount + v_owed), v_now);
    END IF;
    IF p_amount > 0 THEN
      PERFORM repay(ARRAY[p_account], v_now);
      UPDATE accounts a SET funded = a.balance + a.held WHERE a.id = p_account;
    END IF;
    RETURN 'adjusted';
  END $$`,

  // Returns "conflict" if the id was used for another refund. The amount is the refunded one, or for "above_charge" the refundable one.
  `CREATE FUNCTION refund(
    p_id text, p_charge bigint, p_amount bigint, p_description text, p_now bigint,
    OUT status text, OUT account text, OUT amount bigint
  ) LANGUAGE plpgsql SET search_path FROM CURRENT SET lock_timeout = '10s' AS $$
  DECLARE
    v_charge entries;
    v_account accounts;
    v_made entries;
  BEGIN
    SELECT * INTO v_charge FROM entries e WHERE e.id = p_charge AND e.kind = 'charge';
    PERFORM 1 FROM accounts a WHERE a.id = v_charge.account_id FOR UPDATE;
    SELECT * INTO v_made FROM entries e WHERE e.kind = 'refund' AND e.operation_id = p_id;
    IF FOUND THEN
      account := v_made.account_id;
      amount := v_made.amount;
      status := CASE WHEN v_made.charge_id = p_charge AND coalesce(p_amount, amount) = amount THEN 'repeated'
        ELSE 'conflict' END;
      RETURN;
    ELSIF v_charge.id IS NULL THEN
      status := 'unknown_charge';
      RETURN;
    END IF;
    account := v_charge.account_id;
    SELECT v_charge.due - coalesce(sum(e.amount), 0)::bigint INTO amount
    FROM entries e WHERE e.charge_id = p_charge;
    IF amount = 0 OR p_amount > amount THEN
      status := 'above_charge';
      RETURN;
    END IF;
    amount := coalesce(p_amount, amount);
    PERFORM lock_keys(ARRAY[v_charge.key_id]);
    UPDATE accounts a SET balance = a.balance + a.held + amount - a.held,
      spending = spending_changed(a.spending, v_charge.period, -amount, 0),
      journal_at_ms = greatest(a.journal_at_ms, coalesce(p_now, now_ms()))
    WHERE a.id = account RETURNING * INTO v_account;
    UPDATE key_spending s SET spending = spending_changed(s.spending, v_charge.period, -amount, 0)
    WHERE s.key_id = v_charge.key_id;
    INSERT INTO entries (account_id, kind, amount, hold_id, operation_id, charge_id, description, created_at_ms,
      balance_after, owed_after)
    VALUES (account, 'refund', amount, v_charge.hold_id, p_id, p_charge, p_description, v_account.journal_at_ms,
      v_account.balance + v_account.held, v_account.owed) ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'the same refund was made at the same time' USING ERRCODE = 'serialization_failure';
    END IF;
    PERFORM repay(ARRAY[account], v_account.journal_at_ms);
    UPDATE accounts a SET funded = a.balance + a.held WHERE a.id = account;
    status := 'refunded';
  END $$`,
]

/**
 * Changes of tasks and of their dependent rows. Locks are taken in the order of reserving, with the task before its hold; rows
 * that another process leases are skipped, never waited for.
 */
export const TASK_FUNCTIONS: readonly string[] = [
  // Sets the members of p_set that are present, if the task is in one of the states p_from, and applies the consequences.
  // `is_charge`: the hold ended with a charge by `settle`.
  `CREATE FUNCTION change_task(
    p_id text, p_from text[], p_set jsonb, p_now bigint,
    p_resolve text, p_amount bigint, p_description text,
    p_claim_account text, p_claim_key text, p_claim_fingerprint text, p_status integer, p_headers text, p_body bytea,
    p_delivery jsonb, p_details text DEFAULT NULL, p_wants_facts boolean DEFAULT false, p_record jsonb DEFAULT NULL,
    p_claimed_by text DEFAULT NULL, p_claim_lives bigint DEFAULT NULL,
    OUT changed boolean, OUT is_charge boolean,
    OUT charged bigint, OUT shortfall bigint, OUT ended_by text, OUT facts jsonb
  ) LANGUAGE plpgsql SET search_path FROM CURRENT SET lock_timeout = '10s' AS $$
  DECLARE
    v_hold_id text;
    v_hold holds;
    v_claim_expires bigint := coalesce(p_now, now_ms()) + p_claim_lives;
  BEGIN
    is_charge := false;
    UPDATE tasks t SET
      state = coalesce(s.state, t.state), upstream_id = coalesce(s.upstream, t.upstream_id),
      vendor_account = coalesce(s.vendor_account, t.vendor_account), updated_at_ms = coalesce(s.updated, t.updated_at_ms),
      next_poll_at_ms = coalesce(s.next_poll, t.next_poll_at_ms), deadline_at_ms = coalesce(s.deadline, t.deadline_at_ms),
      details = coalesce(s.details, t.details), lease_until_ms = 0
    FROM jsonb_to_record(p_set) AS s(state text, upstream text, vendor_account text, updated bigint, next_poll bigint,
      deadline bigint, details text)
    WHERE t.id = p_id AND t.state = ANY (p_from) RETURNING t.hold_id INTO v_hold_id;
    changed := FOUND;
    IF NOT changed THEN
      RETURN;
    END IF;
    IF v_hold_id IS NOT NULL AND p_resolve = 'settle' THEN
      is_charge := true;
      SELECT s.charged, s.shortfall, s.ended_by, s.facts INTO charged, shortfall, ended_by, facts
      FROM settle(v_hold_id, p_amount, p_description, p_now, p_status, p_headers, p_body, p_details, p_wants_facts,
        p_record) AS s;
    ELSIF v_hold_id IS NOT NULL AND p_resolve = 'void' THEN
      IF p_claim_key IS NOT NULL THEN
        -- The end of the hold frees a key without an answer, so the answer comes first; the locks keep their order.
        SELECT * INTO v_hold FROM holds h WHERE h.id = v_hold_id FOR UPDATE;
        PERFORM 1 FROM accounts a WHERE a.id = v_hold.account_id FOR UPDATE;
        PERFORM lock_keys(ARRAY[v_hold.key_id]);
        PERFORM complete_claim(p_claim_account, p_claim_key, p_claim_fingerprint, p_status, p_headers, p_body,
          p_claimed_by, v_claim_expires);
      END IF;
      PERFORM end_holds(ARRAY[v_hold_id], 'voided', p_now);
    END IF;
    IF p_claim_key IS NOT NULL THEN
      PERFORM complete_claim(p_claim_account, p_claim_key, p_claim_fingerprint, p_status, p_headers, p_body,
        p_claimed_by, v_claim_expires);
    END IF;
    INSERT INTO deliveries (id, account_id, task_id, url, body, created_at_ms, next_attempt_at_ms)
    SELECT d.* FROM jsonb_to_record(p_delivery) AS d(id text, account text, task text, url text, body text,
      created bigint, next_attempt bigint)
    WHERE p_delivery IS NOT NULL ON CONFLICT (id) DO NOTHING;
  END $$`,

  `CREATE FUNCTION discard_task(p_id text, p_claim_account text, p_claim_key text, p_claim_fingerprint text,
    p_claimed_by text DEFAULT NULL)
  RETURNS boolean LANGUAGE plpgsql SET search_path FROM CURRENT SET lock_timeout = '10s' AS $$
  DECLARE
    v_hold_id text;
  BEGIN
    DELETE FROM tasks t WHERE t.id = p_id AND t.state = 'submitting' RETURNING t.hold_id INTO v_hold_id;
    IF NOT FOUND THEN
      RETURN false;
    END IF;
    PERFORM end_holds(ARRAY[v_hold_id], 'voided');
    PERFORM release_claim(p_claim_account, p_claim_key, p_claim_fingerprint, p_claimed_by);
    RETURN true;
  END $$`,

  // Leases due tasks of one vendor account, or only the task p_id, within the budget of the current window.
  `CREATE FUNCTION take_due_tasks(
    p_vendor_account text, p_now bigint, p_lease bigint, p_limit bigint, p_takes bigint, p_window bigint, p_id text,
    p_except_accounts text[] DEFAULT '{}'
  ) RETURNS SETOF tasks LANGUAGE plpgsql SET search_path FROM CURRENT SET lock_timeout = '10s' AS $$
  DECLARE
    v_start bigint := p_now - p_now % p_window;
    v_left bigint;
    v_ids text[];
  BEGIN
    -- Nothing is written, and nobody waited for, while nothing is due.
    IF p_id IS NULL AND NOT EXISTS (
      SELECT 1 FROM tasks t WHERE t.vendor_account = p_vendor_account AND t.state IN ('queued', 'in_progress')
        AND t.next_poll_at_ms <= p_now AND t.lease_until_ms <= p_now AND t.account_id <> ALL (p_except_accounts)
    ) THEN
      RETURN;
    END IF;
    -- Locks the row, so that others wait until what is taken here is counted, whether the window is new or not.
    -- A process whose clock lags a little counts in the window that others opened. One that begins later than the next
    -- was opened by a clock that was wrong.
    INSERT INTO poll_budgets AS b VALUES (p_vendor_account, v_start, 0)
    ON CONFLICT (vendor_account) DO UPDATE SET window_start_ms = v_start, taken = 0
    WHERE b.window_start_ms < v_start OR b.window_start_ms > v_start + p_window;
    SELECT least(p_limit, p_takes - b.taken) INTO v_left
    FROM poll_budgets b WHERE b.vendor_account = p_vendor_account;
    IF v_left <= 0 THEN
      RETURN;
    END IF;
    IF p_id IS NULL THEN
      v_ids := ARRAY(
        SELECT t.id FROM tasks t WHERE t.vendor_account = p_vendor_account AND t.state IN ('queued', 'in_progress')
          AND t.next_poll_at_ms <= p_now AND t.lease_until_ms <= p_now AND t.account_id <> ALL (p_except_accounts)
        ORDER BY t.next_poll_at_ms LIMIT v_left FOR UPDATE SKIP LOCKED
      );
    ELSE
      v_ids := ARRAY(
        SELECT t.id FROM tasks t WHERE t.id = p_id AND t.vendor_account = p_vendor_account
          AND t.state IN ('queued', 'in_progress') AND t.lease_until_ms <= p_now AND t.account_id <> ALL (p_except_accounts)
        FOR UPDATE SKIP LOCKED
      );
    END IF;
    IF v_ids = '{}' THEN
      RETURN;
    END IF;
    UPDATE poll_budgets b SET taken = b.taken + cardinality(v_ids) WHERE b.vendor_account = p_vendor_account;
    UPDATE tasks t SET lease_until_ms = p_lease WHERE t.id = ANY (v_ids);
    RETURN QUERY SELECT * FROM tasks t WHERE t.id = ANY (v_ids) ORDER BY t.next_poll_at_ms, t.id;
  END $$`,

  // Skips holds that another process is ending, so that several may sweep at the same time, and holds of open tasks, which end
  // with their task.
  `CREATE FUNCTION expire_holds(p_now bigint, p_limit integer) RETURNS integer
  LANGUAGE sql SET search_path FROM CURRENT AS $$
    SELECT end_holds(ARRAY(
      SELECT h.id FROM holds h WHERE h.status = 'held' AND h.expires_at_ms <= p_now AND NOT EXISTS (
        SELECT 1 FROM tasks t
        WHERE t.hold_id = h.id AND t.state IN ('submitting', 'unknown', 'queued', 'in_progress')
      )
      ORDER BY h.expires_at_ms LIMIT p_limit FOR UPDATE OF h SKIP LOCKED
    ), 'expired', p_now)
  $$`,
]
