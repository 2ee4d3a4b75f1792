import { expiryText } from '../../expiring-credits.ts'

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
    SELECT coalesce(v_charge.due, -v_charge.amount) - coalesce(sum(e.amount), 0)::bigint INTO amount
    FROM entries e WHERE e.charge_id = p_charge;
    IF amount = 0 OR p_amount > amount THEN
      status := 'above_charge';
      RETURN;
    END IF;
    amount := coalesce(p_amount, amount);
    PERFORM lock_keys(ARRAY[v_charge.key_id]) WHERE v_charge.key_id IS NOT NULL;
    UPDATE accounts a SET balance = a.balance + a.held + amount - a.held,
      spending = CASE WHEN v_charge.key_id IS NULL THEN a.spending
        ELSE spending_changed(a.spending, v_charge.period, -amount, 0) END,
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
