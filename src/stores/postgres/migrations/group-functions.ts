// See docs/decisions/0030-postgres-groups.md.

import { REPAYMENT } from '../../ledger.ts'
import { RECORD_COLUMNS } from '../../usage-columns.ts'

/** Columns selected from the record `r` of a charge. Time and amounts are those of the charge. */
const CHARGED_RECORD = RECORD_COLUMNS.map((column) => {
  if (column === 'ended_at_ms') return 'v_times[r.ordinality]'
  if (column === 'due') return 'v_dues[r.ordinality]'
  if (column === 'charged') return 'v_paids[r.ordinality]'
  return `r.${column}`
}).join(', ')

/** Stores the state of the current account, and reads the account of `id` into `v_account`. */
const openAccount = (id: string): string => `IF v_account.id IS DISTINCT FROM ${id} THEN
        IF v_place > 0 THEN
          v_accounts[v_place] := v_account;
        END IF;
        v_place := coalesce(array_position(v_ids, ${id}), 0);
        v_account := CASE WHEN v_place > 0 THEN v_accounts[v_place] END;
      END IF;`

/**
 * Reservations, settlements and voids of many accounts in one transaction. The rules are applied to variables, row by row; each
 * table is then written once.
 */
export const GROUP_FUNCTIONS: readonly string[] = [
  // Ends holds with a charge or without (`p_due` is null), then places holds, each as if it came alone. No hold occurs twice, and
  // reservations of an account follow each other. `skipped_ends`: unchanged holds, by place: "locked" if their account is, and
  // "alone" if only the functions for one hold have the rules: with a claim, or after an expiry of credits or of the hold itself.
  // `shortfalls`: what prepaid accounts owe, by place. `facts`: account and key after each charge, by place. `outcomes`: by place,
  // if not the wanted amount is held: a refusal, or "locked".
  // A claim or a task belongs to the only reservation. The planner settings keep plans that were made for empty tables from
  // reading whole tables.
  `CREATE FUNCTION apply_group(
    p_now bigint, p_is_flushed boolean, p_skips_locked boolean, p_lock_timeout text,
    p_ends text[], p_due bigint[], p_descriptions text[], p_details text[], p_record_places integer[], p_records jsonb,
    p_wants_facts boolean,
    p_holds text[], p_accounts text[], p_keys text[], p_amounts bigint[], p_required bigint[], p_larger bigint[],
    p_larger_required bigint[], p_lives bigint[], p_billing text[],
    p_caps bigint[], p_cap_periods text[], p_key_caps bigint[], p_key_cap_periods text[],
    p_claim text[], p_claim_lives bigint, p_task jsonb,
    OUT skipped_ends text, OUT shortfalls text, OUT facts text, OUT outcomes text,
    OUT answer_status integer, OUT answer_headers text, OUT answer_body bytea
  ) LANGUAGE plpgsql SET search_path FROM CURRENT SET lock_timeout = '10s' SET plan_cache_mode = force_generic_plan
  SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
  DECLARE
    v_now bigint := coalesce(p_now, now_ms());
    v_accounts accounts[];
    v_ids text[];
    v_account accounts;
    v_place integer := 0;
    v_keys text[];
    v_found_keys text[];
    v_counts spending[];
    v_key_caps bigint[];
    v_key_cap_periods text[];
    v_key integer;
    v_key_count spending;
    v_ending holds[];
    v_hold holds;
    v_index integer;
    v_held bigint;
    v_due bigint;
    v_paid bigint;
    v_lines entries[];
    v_line integer := 0;
    v_ended text[];
    v_ended_count integer := 0;
    v_statuses text[];
    v_times bigint[];
    v_dues bigint[];
    v_paids bigint[];
    v_skipped jsonb := '{}';
    v_facts jsonb := '{}';
    v_shortfalls jsonb := '{}';
    v_known holds[];
    v_new holds[];
    v_new_count integer := 0;
    v_period integer;
    v_is_metered boolean;
    v_amount bigint;
    v_required bigint;
    v_status text;
    v_counter text;
    v_claim outcome;
    v_expired text;
    v_outcomes jsonb := '{}';
  BEGIN
    IF NOT p_is_flushed THEN
      v_status := set_config('synchronous_commit', 'off', true);
    END IF;
    v_status := set_config('lock_timeout', p_lock_timeout, true);
    -- Locks are taken in the order of the other functions: holds, accounts, keys.
    SELECT array_agg(l.hold) FILTER (WHERE l.is_ending), array_agg(l.hold) FILTER (WHERE l.id = ANY (p_holds)),
      array_agg(l.account_id) FILTER (WHERE l.is_ending), array_agg(l.key_id) FILTER (WHERE l.is_ending)
    INTO v_ending, v_known, v_ids, v_keys FROM (
      SELECT h AS hold, h.id, h.account_id, h.key_id,
        h.id = ANY (p_ends) AND h.status = 'held' AND h.claim_key IS NULL AS is_ending
      FROM holds h WHERE h.id = ANY (p_ends) OR h.id = ANY (p_holds) ORDER BY h.account_id, h.id FOR UPDATE
    ) l;
    v_ids := v_ids || p_accounts;
    IF p_skips_locked THEN
      SELECT array_agg(ROW(a.*)::accounts), array_agg(a.id) INTO v_accounts, v_ids
      FROM (SELECT * FROM accounts a WHERE a.id = ANY (v_ids) ORDER BY a.id FOR UPDATE SKIP LOCKED) a;
    ELSE
      SELECT array_agg(ROW(a.*)::accounts), array_agg(a.id) INTO v_accounts, v_ids
      FROM (SELECT * FROM accounts a WHERE a.id = ANY (v_ids) ORDER BY a.id FOR UPDATE) a;
    END IF;
    v_keys := v_keys || p_keys;
    FOR attempt IN 1..2 LOOP
      SELECT array_agg(s.spending), array_agg(k.cap_amount), array_agg(k.cap_period), coalesce(array_agg(s.key_id), '{}')
      INTO v_counts, v_key_caps, v_key_cap_periods, v_found_keys
      FROM (SELECT * FROM key_spending s WHERE s.key_id = ANY (v_keys) ORDER BY s.key_id FOR UPDATE) s
      LEFT JOIN keys k ON k.id = s.key_id;
      EXIT WHEN cardinality(v_found_keys) = cardinality(v_keys) OR v_found_keys @> v_keys;
      PERFORM lock_keys(ARRAY(SELECT DISTINCT k FROM unnest(v_keys) k ORDER BY k));
    END LOOP;
    v_keys := v_found_keys;

    FOREACH v_hold IN ARRAY coalesce(v_ending, '{}') LOOP
      ${openAccount('v_hold.account_id')}
      v_index := array_position(p_ends, v_hold.id);
      IF v_place = 0 AND p_skips_locked THEN
        v_skipped := v_skipped || jsonb_build_object(v_index::text, 'locked');
      END IF;
      CONTINUE WHEN v_place = 0 OR v_account.first_expiry_ms <= v_now;
      v_key := array_position(v_keys, v_hold.key_id);
      v_due := p_due[v_index];
      v_held := CASE WHEN v_hold.is_metered THEN 0 ELSE v_hold.amount END;
      v_paid := CASE WHEN v_due IS NULL THEN 0 ELSE least(v_due, v_account.balance + v_held) END;
      v_account.balance := v_account.balance + v_held - v_paid;
      v_account.held := v_account.held - v_held;
      v_account.credit_held := v_account.credit_held - v_hold.amount + v_held;
      v_account.spending := spending_changed(v_account.spending, v_hold.period, coalesce(v_due, 0), -v_hold.amount);
      v_key_count := spending_changed(v_counts[v_key], v_hold.period, coalesce(v_due, 0), -v_hold.amount);
      v_counts[v_key] := v_key_count;
      v_ended_count := v_ended_count + 1;
      v_ended[v_ended_count] := v_hold.id;
      v_statuses[v_ended_count] := CASE WHEN v_due IS NULL THEN 'voided' ELSE 'settled' END;
      IF v_due IS NOT NULL THEN
        v_account.journal_at_ms := greatest(v_account.journal_at_ms, v_now);
        v_line := v_line + 1;
        v_lines[v_line] := ROW(NULL, v_hold.account_id, 'charge', -v_paid, 0, v_hold.id, NULL, NULL, NULL, p_descriptions[v_index],
          v_account.journal_at_ms, v_due, v_account.balance + v_account.held, v_account.owed, p_details[v_index],
          v_hold.key_id, v_hold.period)::entries;
        IF v_due > v_paid THEN
          v_account.owed := v_account.owed + v_due - v_paid;
          v_line := v_line + 1;
          v_lines[v_line] := ROW(NULL, v_hold.account_id, 'owed', 0, v_due - v_paid, v_hold.id, NULL, NULL, NULL,
            p_descriptions[v_index], v_account.journal_at_ms, NULL, v_account.balance + v_account.held, v_account.owed, NULL,
            NULL, NULL)::entries;
          IF NOT v_hold.is_metered THEN
            v_shortfalls := v_shortfalls || jsonb_build_object(v_index::text, (v_due - v_paid)::text);
          END IF;
        END IF;
        IF p_wants_facts THEN
          v_facts := v_facts || jsonb_build_object(v_index::text, charge_facts(v_account, v_key_count, v_key_caps[v_key],
            v_key_cap_periods[v_key], v_hold, v_paid));
        END IF;
        IF p_record_places[v_index] IS NOT NULL THEN
          v_times[p_record_places[v_index]] := v_account.journal_at_ms;
          v_dues[p_record_places[v_index]] := v_due;
          v_paids[p_record_places[v_index]] := v_paid;
        END IF;
        IF v_account.first_expiry_ms IS NOT NULL AND v_paid > 0 THEN
          PERFORM spend_credits(v_hold.account_id, v_paid, CASE WHEN v_hold.is_metered THEN v_now ELSE v_hold.created_at_ms END);
        END IF;
      END IF;
      v_paid := least(v_account.balance, v_account.owed);
      IF v_paid > 0 THEN
        v_account.balance := v_account.balance - v_paid;
        v_account.owed := v_account.owed - v_paid;
        v_account.journal_at_ms := greatest(v_account.journal_at_ms, v_now);
        v_line := v_line + 1;
        v_lines[v_line] := ROW(NULL, v_hold.account_id, 'repayment', -v_paid, -v_paid, NULL, NULL, NULL, NULL, '${REPAYMENT}',
          v_account.journal_at_ms, NULL, v_account.balance + v_account.held, v_account.owed, NULL, NULL, NULL)::entries;
        IF v_account.first_expiry_ms IS NOT NULL THEN
          PERFORM spend_credits(v_hold.account_id, v_paid, v_now);
        END IF;
      END IF;
    END LOOP;

    FOR v_index IN 1..cardinality(p_holds) LOOP
      ${openAccount('p_accounts[v_index]')}
      IF v_known IS NOT NULL THEN
        SELECT CASE h.status WHEN 'refused' THEN h.refusal ELSE 'held' END,
          CASE WHEN h.status <> 'refused' AND h.amount = p_larger[v_index] THEN 'larger' ELSE h.refused_by END
        INTO v_status, v_counter FROM unnest(v_known) h WHERE h.id = p_holds[v_index];
        IF FOUND THEN
          v_outcomes := v_outcomes || jsonb_build_object(v_index::text, jsonb_build_object('status', v_status, 'counter', v_counter));
          CONTINUE;
        END IF;
      END IF;
      IF v_place = 0 AND p_skips_locked THEN
        v_outcomes := v_outcomes || jsonb_build_object(v_index::text, jsonb_build_object('status', 'locked'));
        CONTINUE;
      END IF;
      IF v_account.first_expiry_ms <= v_now AND v_expired IS DISTINCT FROM v_account.id THEN
        v_expired := v_account.id;
        v_account.balance := v_account.balance - expire_credits(v_account.id, v_now);
        SELECT a.first_expiry_ms, a.journal_at_ms INTO v_account.first_expiry_ms, v_account.journal_at_ms
        FROM accounts a WHERE a.id = v_account.id;
      END IF;
      v_is_metered := coalesce(v_account.billing, p_billing[v_index], 'prepaid') = 'metered';
      v_period := 0;
      v_counter := NULL;
      v_amount := p_amounts[v_index];
      v_claim := NULL;
      IF v_place = 0 THEN
        v_status := 'unknown_account';
      ELSIF v_account.frozen_at_ms IS NOT NULL THEN
        v_status := 'account_frozen';
      ELSE
        v_key := array_position(v_keys, p_keys[v_index]);
        -- The larger amount comes first, if there is one.
        FOR attempt IN CASE WHEN p_larger[v_index] IS NULL THEN 2 ELSE 1 END..2 LOOP
          v_required := CASE attempt WHEN 1 THEN p_larger_required[v_index] ELSE p_required[v_index] END;
          v_amount := CASE attempt WHEN 1 THEN p_larger[v_index] ELSE p_amounts[v_index] END;
          v_status := CASE
            WHEN v_is_metered THEN CASE
              WHEN v_required > v_account.credit_limit::numeric - v_account.owed - v_account.credit_held + v_account.balance
                THEN 'credit_limit' ELSE 'held' END
            WHEN v_account.owed > 0 THEN 'in_arrears'
            WHEN v_account.balance < v_required THEN 'insufficient_balance'
            ELSE 'held' END;
          IF v_status = 'held' THEN
            v_key_count := v_counts[v_key];
            v_period := greatest(period_of(v_now), (v_account.spending).period, v_key_count.period);
            v_account.spending := spending_at(v_account.spending, v_period);
            v_key_count := spending_at(v_key_count, v_period);
            v_counter := CASE
              WHEN passes_cap(v_account.spending, v_required, v_account.cap_amount, v_account.cap_period)
                THEN format('account:%s:', v_account.id) || period_name(v_period, v_account.cap_period)
              WHEN passes_cap(v_account.spending, v_required, p_caps[v_index], p_cap_periods[v_index])
                THEN format('account:%s:', v_account.id) || period_name(v_period, p_cap_periods[v_index])
              WHEN passes_cap(v_key_count, v_required, v_key_caps[v_key], v_key_cap_periods[v_key])
                THEN format('key:%s:', p_keys[v_index]) || period_name(v_period, v_key_cap_periods[v_key])
              WHEN passes_cap(v_key_count, v_required, p_key_caps[v_index], p_key_cap_periods[v_index])
                THEN format('key:%s:', p_keys[v_index]) || period_name(v_period, p_key_cap_periods[v_index])
            END;
            v_status := CASE WHEN v_counter IS NULL THEN 'held' ELSE 'spending_limit' END;
          END IF;
          EXIT WHEN v_status = 'held';
        END LOOP;
        -- A key that is taken comes first, so that an answer is replayed even on an empty balance.
        IF p_claim IS NOT NULL THEN
          IF v_status = 'held' THEN
            v_claim := take_claim(p_claim[1], p_claim[2], p_claim[3], v_now + p_claim_lives, v_now, p_holds[v_index]);
          ELSE
            v_claim := find_claim(p_claim[1], p_claim[2], p_claim[3], v_now);
          END IF;
          IF v_claim.status <> 'claimed' THEN
            v_status := v_claim.status;
            v_counter := NULL;
            answer_status := v_claim.answer_status;
            answer_headers := v_claim.answer_headers;
            answer_body := v_claim.answer_body;
          END IF;
        END IF;
      END IF;
      IF v_status = 'held' THEN
        IF v_is_metered THEN
          v_account.credit_held := v_account.credit_held + v_amount;
        ELSE
          v_account.balance := v_account.balance - v_amount;
          v_account.held := v_account.held + v_amount;
        END IF;
        v_account.spending := spending_changed(v_account.spending, v_period, 0, v_amount);
        v_counts[v_key] := spending_changed(v_key_count, v_period, 0, v_amount);
      END IF;
      -- A replay is found again through its key.
      IF v_status <> 'replay' THEN
        v_new_count := v_new_count + 1;
        v_new[v_new_count] := ROW(p_holds[v_index], p_accounts[v_index], p_keys[v_index], v_amount,
          CASE v_status WHEN 'held' THEN 'held' ELSE 'refused' END, nullif(v_status, 'held'), v_counter,
          p_claim[1], p_claim[2], p_claim[3], v_now + p_lives[v_index], v_is_metered, v_period, v_now)::holds;
      END IF;
      IF v_status <> 'held' OR v_amount <> p_larger[v_index] THEN
        v_outcomes := v_outcomes || jsonb_build_object(v_index::text, jsonb_build_object('status', v_status, 'counter', v_counter));
      END IF;
    END LOOP;
    IF v_place > 0 THEN
      v_accounts[v_place] := v_account;
    END IF;

    IF v_ended_count > 0 THEN
      UPDATE holds h SET status = e.status FROM unnest(v_ended, v_statuses) e(id, status) WHERE h.id = e.id;
    END IF;
    IF v_line > 0 THEN
      INSERT INTO entries (account_id, kind, amount, owed, hold_id, description, created_at_ms, due, balance_after, owed_after,
        details, key_id, period)
      SELECT l.account_id, l.kind, l.amount, l.owed, l.hold_id, l.description, l.created_at_ms, l.due, l.balance_after,
        l.owed_after, l.details, l.key_id, l.period FROM unnest(v_lines) l;
    END IF;
    IF v_times IS NOT NULL THEN
      INSERT INTO usage_records (${RECORD_COLUMNS.join(', ')})
      SELECT ${CHARGED_RECORD}
      FROM jsonb_populate_recordset(NULL::usage_records, p_records) WITH ORDINALITY AS r
      WHERE v_times[r.ordinality] IS NOT NULL;
    END IF;
    IF v_new_count > 0 THEN
      INSERT INTO holds SELECT h.* FROM unnest(v_new) h ON CONFLICT (id) DO NOTHING;
      GET DIAGNOSTICS v_index = ROW_COUNT;
      IF v_index < v_new_count THEN
        RAISE EXCEPTION 'the same hold was reserved at the same time' USING ERRCODE = 'serialization_failure';
      END IF;
      IF p_task IS NOT NULL AND v_status = 'held' THEN
        INSERT INTO tasks (id, account_id, key_id, state, upstream_id, vendor_account, hold_id,
          created_at_ms, updated_at_ms, next_poll_at_ms, deadline_at_ms, details)
        SELECT t.* FROM jsonb_to_record(p_task) AS t(id text, account text, key text, state text, upstream text,
          vendor_account text, hold text, created bigint, updated bigint, next_poll bigint, deadline bigint, details text)
        ON CONFLICT (id) DO NOTHING;
      END IF;
    END IF;
    UPDATE accounts a SET balance = c.balance, held = c.held, owed = c.owed, credit_held = c.credit_held,
      spending = c.spending, journal_at_ms = c.journal_at_ms
    FROM unnest(v_accounts) c WHERE a.id = c.id
      AND (a.balance, a.held, a.owed, a.credit_held, a.spending, a.journal_at_ms)
        IS DISTINCT FROM (c.balance, c.held, c.owed, c.credit_held, c.spending, c.journal_at_ms);
    UPDATE key_spending s SET spending = c.spending, period = c.period
    FROM unnest(v_keys, v_counts) AS n(key_id, period, charged_day, charged_month, held_day, held_month),
      LATERAL (SELECT ROW(n.period, n.charged_day, n.charged_month, n.held_day, n.held_month)::spending AS spending, n.period) c
    WHERE s.key_id = n.key_id AND s.spending IS DISTINCT FROM c.spending;
    shortfalls := nullif(v_shortfalls, '{}')::text;
    facts := nullif(v_facts, '{}')::text;
    outcomes := nullif(v_outcomes, '{}')::text;
    IF v_ended_count < cardinality(p_ends) THEN
      skipped_ends := (
        SELECT jsonb_object_agg(i, 'alone') FROM generate_subscripts(p_ends, 1) i WHERE p_ends[i] <> ALL (coalesce(v_ended, '{}'))
      ) || v_skipped;
    END IF;
  END $$`,
]
