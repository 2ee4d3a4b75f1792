/**
 * Idempotency keys. `outcome` is a result of claiming or reserving: a status, what is replayed, which counter refused.
 * A function that waits for another's lock gives up after ten seconds, even when the process that called it is gone.
 */
export const CLAIM_FUNCTIONS: readonly string[] = [
  // What is known of a key; a null status when it is free.
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

  // The insert decides between many equal claims at once; a loser looks what it lost to, which may be gone by then.
  `CREATE FUNCTION take_claim(p_account_id text, p_key text, p_fingerprint text, p_expires bigint, p_now bigint,
    p_claimed_by text DEFAULT NULL)
  RETURNS outcome LANGUAGE plpgsql SET search_path FROM CURRENT SET lock_timeout = '10s' AS $$
  DECLARE
    v_outcome outcome;
  BEGIN
    LOOP
      INSERT INTO claims AS c (account_id, key, fingerprint, expires_at_ms, claimed_by)
      VALUES (p_account_id, p_key, p_fingerprint, p_expires, p_claimed_by)
      ON CONFLICT (account_id, key) DO UPDATE SET
        fingerprint = excluded.fingerprint, expires_at_ms = excluded.expires_at_ms, claimed_by = excluded.claimed_by,
        answer_status = NULL, answer_headers = NULL, answer_body = NULL
      WHERE c.expires_at_ms <= p_now;
      IF FOUND THEN
        v_outcome.status := 'claimed';
        RETURN v_outcome;
      END IF;
      v_outcome := find_claim(p_account_id, p_key, p_fingerprint, p_now);
      IF v_outcome.status = 'in_flight' AND EXISTS (SELECT FROM claims c
          WHERE c.account_id = p_account_id AND c.key = p_key AND c.claimed_by = p_claimed_by) THEN
        v_outcome.status := 'claimed';
      END IF;
      IF v_outcome.status IS NOT NULL THEN
        RETURN v_outcome;
      END IF;
    END LOOP;
  END $$`,

  // The first answer stays. A key that expired meanwhile may belong to another request, told apart by its body.
  `CREATE FUNCTION complete_claim(p_account_id text, p_key text, p_fingerprint text, p_status integer, p_headers text, p_body bytea)
  RETURNS void LANGUAGE sql SET search_path FROM CURRENT SET lock_timeout = '10s' AS $$
    UPDATE claims SET answer_status = p_status, answer_headers = p_headers, answer_body = p_body
    WHERE account_id = p_account_id AND key = p_key AND fingerprint = p_fingerprint AND answer_status IS NULL
  $$`,

  `CREATE FUNCTION release_claim(p_account_id text, p_key text, p_fingerprint text)
  RETURNS void LANGUAGE sql SET search_path FROM CURRENT SET lock_timeout = '10s' AS $$
    DELETE FROM claims
    WHERE account_id = p_account_id AND key = p_key AND fingerprint = p_fingerprint AND answer_status IS NULL
  $$`,
]
