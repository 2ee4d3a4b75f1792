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

  // Two new secrets at once would each leave the other without an end.
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
