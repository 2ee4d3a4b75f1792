import { REPAYMENT } from '../../ledger.ts'

/**
 * Spending of accounts and keys. Functions without tables have no `search_path` of their own, because the server inlines only
 * functions without settings. Their callers have one.
 */
export const SPENDING_FUNCTIONS: readonly string[] = [
  // Clock that all processes share. It is not the transaction's clock, because the transaction may have waited for a lock.
  `CREATE FUNCTION now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint
  $$`,

  // Returns the UTC day of a time: 20261122.
  `CREATE FUNCTION period_of(p_ms bigint) RETURNS integer LANGUAGE sql IMMUTABLE AS $$
    SELECT (extract(year FROM date '1970-01-01' + (p_ms / 86400000)::integer) * 10000
      + extract(month FROM date '1970-01-01' + (p_ms / 86400000)::integer) * 100
      + extract(day FROM date '1970-01-01' + (p_ms / 86400000)::integer))::integer
  $$`,

  // Returns the name of a day, or of its month.
  `CREATE FUNCTION period_name(p_day integer, p_cap_period text) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT to_char(to_date(p_day::text, 'YYYYMMDD'), CASE p_cap_period WHEN 'day' THEN 'YYYY-MM-DD' ELSE 'YYYY-MM' END)
  $$`,

  // Returns the spending as of a day: zero for past periods. An earlier day changes nothing, because clocks of processes may differ.
  `CREATE FUNCTION spending_at(s spending, p_period integer) RETURNS spending LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
      WHEN p_period <= (s).period THEN s
      WHEN p_period / 100 = (s).period / 100 THEN ROW(p_period, 0, (s).charged_month, 0, (s).held_month)::spending
      ELSE ROW(p_period, 0, 0, 0, 0)::spending
    END
  $$`,

  // Returns the spending after a change by a hold of a day. Amounts of past days or months no longer count.
  `CREATE FUNCTION spending_changed(s spending, p_period integer, p_charged bigint, p_held bigint) RETURNS spending
  LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
      WHEN p_period / 100 <> (s).period / 100 THEN s
      ELSE ROW((s).period,
        (s).charged_day + CASE WHEN p_period = (s).period THEN p_charged ELSE 0 END, (s).charged_month + p_charged,
        (s).held_day + CASE WHEN p_period = (s).period THEN p_held ELSE 0 END, (s).held_month + p_held)::spending
    END
  $$`,

  // Whether an amount would exceed a cap.
  `CREATE FUNCTION passes_cap(s spending, p_amount bigint, p_cap bigint, p_cap_period text) RETURNS boolean
  LANGUAGE sql IMMUTABLE AS $$
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

/** Adding to an open hold, under the rules of a reservation. */
export const ENLARGE_FUNCTIONS: readonly string[] = [
  `CREATE FUNCTION enlarge_hold(p_hold text, p_amount bigint, p_now bigint) RETURNS text
  LANGUAGE plpgsql SET search_path FROM CURRENT SET lock_timeout = '10s' AS $$
  DECLARE
    v_hold holds;
    v_account accounts;
    v_key_count spending;
    v_now bigint := coalesce(p_now, now_ms());
  BEGIN
    SELECT * INTO v_hold FROM holds h WHERE h.id = p_hold AND h.status = 'held' FOR UPDATE;
    IF NOT FOUND THEN
      RETURN 'not_held';
    END IF;
    SELECT * INTO STRICT v_account FROM accounts a WHERE a.id = v_hold.account_id FOR UPDATE;
    SELECT (k.spending).* INTO v_key_count FROM lock_keys(ARRAY[v_hold.key_id]) k;
    IF v_account.first_expiry_ms <= v_now THEN
      v_account.balance := v_account.balance - expire_credits(v_hold.account_id, v_now);
    END IF;
    IF v_account.frozen_at_ms IS NOT NULL THEN
      RETURN 'account_frozen';
    ELSIF v_hold.is_metered THEN
      IF p_amount > v_account.credit_limit::numeric - v_account.owed - v_account.credit_held + v_account.balance THEN
        RETURN 'credit_limit';
      END IF;
    ELSIF v_account.owed > 0 THEN
      RETURN 'in_arrears';
    ELSIF v_account.balance < p_amount THEN
      RETURN 'insufficient_balance';
    END IF;
    v_account.spending := spending_at(v_account.spending, period_of(v_now));
    IF passes_cap(v_account.spending, p_amount, v_account.cap_amount, v_account.cap_period)
      OR EXISTS (SELECT 1 FROM keys k WHERE k.id = v_hold.key_id
        AND passes_cap(spending_at(v_key_count, period_of(v_now)), p_amount, k.cap_amount, k.cap_period)) THEN
      RETURN 'spending_limit';
    END IF;
    UPDATE holds SET amount = amount + p_amount WHERE id = p_hold;
    UPDATE accounts a SET
      balance = a.balance - CASE WHEN v_hold.is_metered THEN 0 ELSE p_amount END,
      held = a.held + CASE WHEN v_hold.is_metered THEN 0 ELSE p_amount END,
      credit_held = a.credit_held + CASE WHEN v_hold.is_metered THEN p_amount ELSE 0 END,
      spending = spending_changed(a.spending, v_hold.period, 0, p_amount)
    WHERE a.id = v_hold.account_id;
    UPDATE key_spending s SET spending = spending_changed(s.spending, v_hold.period, 0, p_amount)
    WHERE s.key_id = v_hold.key_id;
    RETURN 'held';
  END $$`,
]

/** Ends of holds, credits and purging. The order of locks is that of reserving. */
export const RESOLVE_FUNCTIONS: readonly string[] = [
  // Returns account and key after a charge, for the thresholds of caps, balance and credit limit.
  `CREATE FUNCTION charge_facts(a accounts, s spending, p_key_cap bigint, p_key_cap_period text, h holds, p_paid bigint)
  RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object('paid', p_paid::text, 'period', (h).period, 'metered', (h).is_metered,
      'cap_amount', (a).cap_amount::text, 'cap_period', (a).cap_period,
      'key_cap_amount', p_key_cap::text, 'key_cap_period', p_key_cap_period,
      'account', to_jsonb(ARRAY[((a).spending).period, ((a).spending).charged_day, ((a).spending).charged_month]::text[]),
      'key', to_jsonb(ARRAY[(s).period, (s).charged_day, (s).charged_month]::text[]),
      'money', ((a).balance + (a).held)::text, 'funded', (a).funded::text,
      'owed', (a).owed::text, 'credit_limit', (a).credit_limit::text)
  $$`,

  // Pays the debts of accounts from their balances, as far as possible, after removing expired credits. The caller has locked the
  // accounts.
  `CREATE FUNCTION repay(p_accounts text[], p_now bigint) RETURNS void
  LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
  DECLARE
    v_account accounts;
    v_paid bigint;
  BEGIN
    FOR v_account IN
      SELECT * FROM accounts a WHERE a.id = ANY (p_accounts)
        AND (a.owed > 0 AND a.balance > 0 OR a.first_expiry_ms <= p_now) ORDER BY a.id
    LOOP
      IF v_account.first_expiry_ms <= p_now THEN
        v_account.balance := v_account.balance - expire_credits(v_account.id, p_now);
      END IF;
      v_paid := least(v_account.balance, v_account.owed);
      CONTINUE WHEN v_paid = 0;
      UPDATE accounts a SET balance = a.balance - v_paid, owed = a.owed - v_paid,
        journal_at_ms = greatest(a.journal_at_ms, p_now)
      WHERE a.id = v_account.id RETURNING * INTO v_account;
      INSERT INTO entries (account_id, kind, amount, owed, description, created_at_ms, balance_after, owed_after)
      VALUES (v_account.id, 'repayment', -v_paid, -v_paid, '${REPAYMENT}', v_account.journal_at_ms,
        v_account.balance + v_account.held, v_account.owed);
      IF v_account.first_expiry_ms IS NOT NULL THEN
        PERFORM spend_credits(v_account.id, v_paid, p_now);
      END IF;
    END LOOP;
  END $$`,

  // The account owes the part that its balance lacks. An expired hold is charged too, once, against the balance. `ended_by`: how
  // an uncharged hold had ended. `facts`: account and key after the charge.
  `CREATE FUNCTION settle(
    p_hold text, p_amount bigint, p_description text, p_now bigint,
    p_status integer, p_headers text, p_body bytea, p_details text DEFAULT NULL, p_wants_facts boolean DEFAULT false,
    p_record jsonb DEFAULT NULL, p_account text DEFAULT NULL, p_key text DEFAULT NULL, p_billing text DEFAULT NULL,
    OUT charged bigint, OUT shortfall bigint, OUT ended_by text, OUT facts jsonb
  ) LANGUAGE plpgsql SET search_path FROM CURRENT SET lock_timeout = '10s' AS $$
  DECLARE
    v_hold holds;
    v_account accounts;
    v_held bigint;
    v_paid bigint;
    v_owed bigint;
    v_key_count spending;
    v_now bigint := coalesce(p_now, now_ms());
    v_expiry bigint;
  BEGIN
    UPDATE holds SET status = 'settled' WHERE id = p_hold AND status = 'held' RETURNING * INTO v_hold;
    v_held := v_hold.amount;
    IF NOT FOUND THEN
      UPDATE holds SET status = 'settled' WHERE id = p_hold AND status = 'expired' RETURNING * INTO v_hold;
      IF NOT FOUND THEN
        -- A server that crashes forgets reservations that were not on its disk. The journal keeps every charge.
        INSERT INTO holds (id, account_id, key_id, amount, status, expires_at_ms, is_metered, period, created_at_ms)
        SELECT p_hold, a.id, p_key, 0, 'settled', v_now, coalesce(a.billing, p_billing, 'prepaid') = 'metered', period_of(v_now), v_now
        FROM accounts a WHERE a.id = p_account AND NOT EXISTS (
          SELECT FROM entries e WHERE e.hold_id = p_hold AND e.kind = 'charge'
        ) ON CONFLICT (id) DO NOTHING RETURNING * INTO v_hold;
        IF NOT FOUND THEN
          SELECT h.status INTO ended_by FROM holds h WHERE h.id = p_hold AND h.status <> 'refused';
          IF ended_by IN ('held', 'expired') THEN
            RAISE EXCEPTION 'the hold was reserved at the same time' USING ERRCODE = 'serialization_failure';
          END IF;
          RETURN;
        END IF;
      END IF;
      -- Its money and its key went back when it expired, and the key may belong to another request by now.
      v_held := 0;
      v_hold.claim_key := NULL;
    END IF;
    SELECT * INTO STRICT v_account FROM accounts a WHERE a.id = v_hold.account_id FOR UPDATE;
    PERFORM lock_keys(ARRAY[v_hold.key_id]);
    v_expiry := v_account.first_expiry_ms;
    IF v_expiry <= v_now THEN
      v_account.balance := v_account.balance - expire_credits(v_hold.account_id, v_now,
        CASE WHEN v_hold.is_metered THEN 0 ELSE v_held END, v_hold.created_at_ms);
    END IF;
    v_paid := least(p_amount, v_account.balance + CASE WHEN v_hold.is_metered THEN 0 ELSE v_held END);
    v_owed := p_amount - v_paid;
    UPDATE accounts a SET
      balance = a.balance + CASE WHEN v_hold.is_metered THEN 0 ELSE v_held END - v_paid,
      held = a.held - CASE WHEN v_hold.is_metered THEN 0 ELSE v_held END,
      credit_held = a.credit_held - CASE WHEN v_hold.is_metered THEN v_held ELSE 0 END,
      owed = a.owed + v_owed,
      journal_at_ms = greatest(a.journal_at_ms, v_now),
      spending = spending_changed(a.spending, v_hold.period, p_amount, -v_held)
    WHERE a.id = v_hold.account_id RETURNING * INTO v_account;
    UPDATE key_spending s SET spending = spending_changed(s.spending, v_hold.period, p_amount, -v_held)
    WHERE s.key_id = v_hold.key_id RETURNING (s.spending).* INTO v_key_count;
    charged := CASE WHEN v_hold.is_metered THEN p_amount ELSE v_paid END;
    shortfall := p_amount - charged;
    IF p_wants_facts THEN
      SELECT charge_facts(v_account, v_key_count, k.cap_amount, k.cap_period, v_hold, v_paid)
      INTO facts FROM (SELECT 1) one LEFT JOIN keys k ON k.id = v_hold.key_id;
    END IF;
    IF v_expiry IS NOT NULL THEN
      -- What had expired when the money was promised stays for those it was promised to.
      PERFORM spend_credits(v_hold.account_id, v_paid, CASE WHEN v_hold.is_metered THEN v_now ELSE v_hold.created_at_ms END);
    END IF;
    INSERT INTO entries (account_id, kind, amount, hold_id, description, created_at_ms, due, balance_after, owed_after,
      details, key_id, period)
    VALUES (v_hold.account_id, 'charge', -v_paid, p_hold, p_description, v_account.journal_at_ms, p_amount,
      v_account.balance + v_account.held, v_account.owed - v_owed, p_details, v_hold.key_id, v_hold.period);
    IF v_owed > 0 THEN
      INSERT INTO entries (account_id, kind, amount, owed, hold_id, description, created_at_ms, balance_after, owed_after)
      VALUES (v_hold.account_id, 'owed', 0, v_owed, p_hold, p_description, v_account.journal_at_ms,
        v_account.balance + v_account.held, v_account.owed);
    END IF;
    IF v_account.owed > 0 AND v_account.balance > 0 OR v_expiry <= v_now THEN
      PERFORM repay(ARRAY[v_hold.account_id], v_now);
    END IF;
    IF p_record IS NOT NULL THEN
      PERFORM write_usage(jsonb_build_array(p_record), v_account.journal_at_ms, p_amount, v_paid);
    END IF;
    IF v_hold.claim_key IS NOT NULL THEN
      IF p_status IS NULL THEN
        PERFORM release_claim(v_hold.claim_account_id, v_hold.claim_key, v_hold.claim_fingerprint, p_hold);
      ELSE
        PERFORM complete_claim(v_hold.claim_account_id, v_hold.claim_key, v_hold.claim_fingerprint,
          p_status, p_headers, p_body, p_hold);
      END IF;
    END IF;
  END $$`,

  // Ends open holds without a charge and returns how many of them were open.
  `CREATE FUNCTION end_holds(p_ids text[], p_status text, p_now bigint DEFAULT NULL) RETURNS integer
  LANGUAGE plpgsql SET search_path FROM CURRENT SET lock_timeout = '10s' AS $$
  DECLARE
    v_holds holds[];
    v_sum record;
  BEGIN
    WITH ended AS (UPDATE holds SET status = p_status WHERE id = ANY (p_ids) AND status = 'held' RETURNING *)
    SELECT array_agg(ROW(ended.*)::holds) INTO v_holds FROM ended;
    IF v_holds IS NULL THEN
      RETURN 0;
    END IF;
    PERFORM 1 FROM accounts a WHERE a.id IN (SELECT h.account_id FROM unnest(v_holds) h) ORDER BY a.id FOR UPDATE;
    PERFORM lock_keys(ARRAY(SELECT DISTINCT h.key_id FROM unnest(v_holds) h));
    -- Together what counts in one day.
    FOR v_sum IN
      SELECT h.account_id, h.period, sum(h.amount)::bigint AS amount,
        coalesce(sum(h.amount) FILTER (WHERE h.is_metered), 0)::bigint AS metered
      FROM unnest(v_holds) h GROUP BY h.account_id, h.period
    LOOP
      UPDATE accounts a SET
        balance = a.balance + v_sum.amount - v_sum.metered,
        held = a.held - (v_sum.amount - v_sum.metered),
        credit_held = a.credit_held - v_sum.metered,
        spending = spending_changed(a.spending, v_sum.period, 0, -v_sum.amount)
      WHERE a.id = v_sum.account_id;
    END LOOP;
    FOR v_sum IN
      SELECT h.key_id, h.period, sum(h.amount)::bigint AS amount FROM unnest(v_holds) h GROUP BY h.key_id, h.period
    LOOP
      UPDATE key_spending s SET spending = spending_changed(s.spending, v_sum.period, 0, -v_sum.amount)
      WHERE s.key_id = v_sum.key_id;
    END LOOP;
    PERFORM repay(ARRAY(SELECT DISTINCT h.account_id FROM unnest(v_holds) h), coalesce(p_now, now_ms()));
    PERFORM release_claim(h.claim_account_id, h.claim_key, h.claim_fingerprint, h.id)
    FROM unnest(v_holds) h WHERE h.claim_key IS NOT NULL;
    RETURN cardinality(v_holds);
  END $$`,

  // Returns false if that credit was added before, null if there is no such account.
  `CREATE FUNCTION credit(
    p_credit text, p_account_id text, p_amount bigint, p_description text, p_now bigint, p_expires bigint DEFAULT NULL
  ) RETURNS boolean LANGUAGE plpgsql SET search_path FROM CURRENT SET lock_timeout = '10s' AS $$
  DECLARE
    v_now bigint := coalesce(p_now, now_ms());
    v_account accounts;
  BEGIN
    SELECT * INTO v_account FROM accounts a WHERE a.id = p_account_id FOR UPDATE;
    IF NOT FOUND THEN
      RETURN NULL;
    END IF;
    v_account.journal_at_ms := greatest(v_account.journal_at_ms, v_now);
    -- The sum with the held money overflows here, not when a hold comes back.
    INSERT INTO entries (account_id, kind, amount, credit_id, description, created_at_ms, balance_after, owed_after)
    VALUES (p_account_id, 'credit', p_amount, p_credit, p_description, v_account.journal_at_ms,
      v_account.balance + v_account.held + p_amount, v_account.owed) ON CONFLICT (credit_id)
      WHERE credit_id IS NOT NULL DO NOTHING;
    IF NOT FOUND THEN
      RETURN false;
    END IF;
    UPDATE accounts a SET balance = a.balance + p_amount, journal_at_ms = v_account.journal_at_ms,
      first_expiry_ms = least(a.first_expiry_ms, p_expires)
    WHERE a.id = p_account_id;
    IF p_expires IS NOT NULL THEN
      INSERT INTO expiring_credits (account_id, credit_id, remaining, expires_at_ms)
      VALUES (p_account_id, p_credit, p_amount, p_expires);
    END IF;
    PERFORM repay(ARRAY[p_account_id], v_now);
    UPDATE accounts a SET funded = a.balance + a.held WHERE a.id = p_account_id;
    RETURN true;
  END $$`,

  // Returns the account of a credit, or null if there is none.
  `CREATE FUNCTION credited_account(p_credit text) RETURNS text LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
    SELECT e.account_id FROM entries e WHERE e.credit_id = p_credit
  $$`,

  // Deletes obsolete rows: outcomes some time after the deadline of the hold, expired Idempotency-Keys, and the spending of keys
  // in past months. Returns the largest number of rows deleted from one table: p_limit if there may be more. Uses arrays, because
  // with a parameter as limit the planner expects a tenth of the table, and would read all of it.
  `CREATE FUNCTION forget(
    p_now bigint, p_refusals_kept bigint, p_ends_kept bigint, p_oldest_period integer, p_limit integer
  ) RETURNS integer
  LANGUAGE sql SET search_path FROM CURRENT AS $$
    WITH refusals AS (
      DELETE FROM holds WHERE id = ANY (ARRAY(
        SELECT id FROM holds WHERE status = 'refused' AND expires_at_ms <= p_now - p_refusals_kept
        ORDER BY expires_at_ms LIMIT p_limit FOR UPDATE SKIP LOCKED
      )) RETURNING 1
    ), ends AS (
      DELETE FROM holds WHERE id = ANY (ARRAY(
        SELECT id FROM holds
        WHERE status IN ('settled', 'voided', 'expired') AND expires_at_ms <= p_now - p_ends_kept
        ORDER BY expires_at_ms LIMIT p_limit FOR UPDATE SKIP LOCKED
      )) RETURNING 1
    ), expired_claims AS (
      DELETE FROM claims WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM claims WHERE expires_at_ms <= p_now
        ORDER BY expires_at_ms LIMIT p_limit FOR UPDATE SKIP LOCKED
      )) RETURNING 1
    ), unused_keys AS (
      DELETE FROM key_spending WHERE key_id = ANY (ARRAY(
        SELECT key_id FROM key_spending WHERE period < p_oldest_period
        ORDER BY period LIMIT p_limit FOR UPDATE SKIP LOCKED
      )) RETURNING 1
    )
    SELECT greatest(
      (SELECT count(*) FROM refusals), (SELECT count(*) FROM ends),
      (SELECT count(*) FROM expired_claims), (SELECT count(*) FROM unused_keys)
    )::integer
  $$`,
]
