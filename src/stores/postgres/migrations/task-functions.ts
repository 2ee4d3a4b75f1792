/**
 * Changes of tasks and of their dependent rows. Locks are taken in the order of reserving, with the task before its hold; rows
 * that another process leases are skipped, never waited for.
 */
export const TASK_FUNCTIONS: readonly string[] = [
  // Reserves as usual, and stores the tasks whose money this call reserves. The lock prevents a new hold from appearing in
  // between.
  `CREATE FUNCTION reserve_with_tasks(p_account_id text, p_requests jsonb, p_now bigint) RETURNS SETOF outcome
  LANGUAGE plpgsql SET search_path FROM CURRENT SET lock_timeout = '10s' AS $$
  DECLARE
    v_known text[];
    v_outcomes outcome[];
  BEGIN
    PERFORM 1 FROM accounts a WHERE a.id = p_account_id FOR UPDATE;
    v_known := ARRAY(
      SELECT h.id FROM holds h WHERE h.id IN (SELECT r ->> 'hold' FROM jsonb_array_elements(p_requests) r)
    );
    SELECT array_agg(
      ROW(o.status, o.counter, o.answer_status, o.answer_headers, o.answer_body)::outcome ORDER BY o.ordinality
    ) INTO v_outcomes FROM reserve(p_account_id, p_requests, p_now) WITH ORDINALITY AS o;
    INSERT INTO tasks (id, account_id, key_id, state, upstream_id, vendor_account, hold_id,
      created_at_ms, updated_at_ms, next_poll_at_ms, deadline_at_ms, details)
    SELECT t.id, t.account, t.key, t.state, t.upstream, t.vendor_account, t.hold,
      t.created, t.updated, t.next_poll, t.deadline, t.details
    FROM jsonb_array_elements(p_requests) WITH ORDINALITY AS r(request, place),
      jsonb_to_record(r.request -> 'task') AS t(id text, account text, key text, state text, upstream text,
        vendor_account text, hold text, created bigint, updated bigint, next_poll bigint, deadline bigint, details text)
    WHERE r.request ? 'task' AND v_outcomes[r.place].status = 'held' AND r.request ->> 'hold' <> ALL (v_known)
    ON CONFLICT (id) DO NOTHING;
    RETURN QUERY SELECT o.* FROM unnest(v_outcomes) o;
  END $$`,

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

  `CREATE FUNCTION take_overdue_tasks(p_now bigint, p_lease bigint, p_limit bigint) RETURNS SETOF tasks
  LANGUAGE sql SET search_path FROM CURRENT AS $$
    WITH taken AS (
      UPDATE tasks t SET lease_until_ms = p_lease WHERE t.id = ANY (ARRAY(
        SELECT o.id FROM tasks o WHERE o.state IN ('submitting', 'unknown', 'queued', 'in_progress')
          AND o.deadline_at_ms <= p_now AND o.lease_until_ms <= p_now
        ORDER BY o.deadline_at_ms LIMIT p_limit FOR UPDATE SKIP LOCKED
      )) RETURNING t.*
    )
    SELECT * FROM taken ORDER BY deadline_at_ms, id
  $$`,

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

  // Skips tasks with waiting messages, so that they do not block the rest. The messages are locked with their tasks: a message
  // that is resent at the same moment is deleted with its task, or keeps it.
  `CREATE FUNCTION forget_tasks(p_changed_until bigint, p_limit bigint) RETURNS integer
  LANGUAGE plpgsql SET search_path FROM CURRENT SET lock_timeout = '10s' AS $$
  DECLARE
    v_ids text[];
  BEGIN
    v_ids := ARRAY(
      SELECT t.id FROM tasks t
      WHERE t.state IN ('completed', 'failed', 'cancelled') AND t.updated_at_ms <= p_changed_until AND NOT EXISTS (
        SELECT 1 FROM deliveries d WHERE d.task_id = t.id AND d.state = 'pending'
      )
      ORDER BY t.updated_at_ms LIMIT p_limit FOR UPDATE OF t SKIP LOCKED
    );
    PERFORM 1 FROM deliveries d WHERE d.task_id = ANY (v_ids) ORDER BY d.id FOR UPDATE;
    v_ids := ARRAY(
      SELECT i.id FROM unnest(v_ids) AS i(id)
      WHERE NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.task_id = i.id AND d.state = 'pending')
    );
    DELETE FROM deliveries d WHERE d.task_id = ANY (v_ids);
    DELETE FROM tasks t WHERE t.id = ANY (v_ids);
    RETURN cardinality(v_ids);
  END $$`,
]

/** Delivery of messages, and the secrets that sign them. */
export const WEBHOOK_FUNCTIONS: readonly string[] = [
  `CREATE FUNCTION take_due_deliveries(p_now bigint, p_lease bigint, p_limit bigint) RETURNS SETOF deliveries
  LANGUAGE sql SET search_path FROM CURRENT AS $$
    WITH taken AS (
      UPDATE deliveries d SET lease_until_ms = p_lease WHERE d.id = ANY (ARRAY(
        SELECT o.id FROM deliveries o
        WHERE o.state = 'pending' AND o.next_attempt_at_ms <= p_now AND o.lease_until_ms <= p_now
        ORDER BY o.next_attempt_at_ms LIMIT p_limit FOR UPDATE SKIP LOCKED
      )) RETURNING d.*
    )
    SELECT * FROM taken ORDER BY next_attempt_at_ms, id
  $$`,

  // Two concurrent new secrets would each leave the other without an expiry.
  `CREATE FUNCTION replace_webhook_secret(p_account_id text, p_secret text, p_overlap_until bigint) RETURNS void
  LANGUAGE plpgsql SET search_path FROM CURRENT SET lock_timeout = '10s' AS $$
  BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(format('%s:webhook_secrets:%s', current_schema(), p_account_id), 0));
    DELETE FROM webhook_secrets s WHERE s.account_id = p_account_id AND s.secret = p_secret;
    -- Passes over a null: no end yet. Never later than it was.
    UPDATE webhook_secrets s SET expires_at_ms = least(s.expires_at_ms, p_overlap_until) WHERE s.account_id = p_account_id;
    INSERT INTO webhook_secrets (account_id, secret) VALUES (p_account_id, p_secret);
  END $$`,
]
