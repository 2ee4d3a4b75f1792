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
