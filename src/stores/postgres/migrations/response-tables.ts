/** Stored answers, and which of them holds which item. */
export const RESPONSE_TABLES: readonly string[] = [
  `CREATE TABLE responses (
    account_id text NOT NULL,
    id text NOT NULL,
    previous_id text,
    vendor text NOT NULL,
    vendor_key text NOT NULL,
    upstream_id text,
    model text NOT NULL,
    created_at_ms bigint NOT NULL,
    expires_at_ms bigint NOT NULL,
    input text NOT NULL,
    response text NOT NULL,
    PRIMARY KEY (account_id, id)
  )`,
  `CREATE INDEX responses_by_expiry ON responses (expires_at_ms)`,
  `CREATE TABLE response_items (
    account_id text NOT NULL,
    item_id text NOT NULL,
    response_id text NOT NULL,
    PRIMARY KEY (account_id, item_id, response_id),
    FOREIGN KEY (account_id, response_id) REFERENCES responses (account_id, id) ON DELETE CASCADE
  )`,
  `CREATE INDEX response_items_by_response ON response_items (account_id, response_id)`,
]
