/** Stored answers and their items; conversations and their items. */
export const RESPONSE_TABLES: readonly string[] = [
  `CREATE TABLE responses (
    account_id text NOT NULL,
    id text NOT NULL,
    previous_id text,
    vendor text NOT NULL,
    vendor_key text NOT NULL,
    upstream_id text,
    conversation_id text,
    conversation_position bigint,
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
  `CREATE TABLE conversations (
    account_id text NOT NULL,
    id text NOT NULL,
    metadata text NOT NULL,
    vendor_key text,
    last_position bigint NOT NULL,
    item_count bigint NOT NULL,
    byte_length bigint NOT NULL,
    created_at_ms bigint NOT NULL,
    expires_at_ms bigint NOT NULL,
    PRIMARY KEY (account_id, id)
  )`,
  `CREATE INDEX conversations_by_expiry ON conversations (expires_at_ms)`,
  `CREATE TABLE conversation_items (
    account_id text NOT NULL,
    conversation_id text NOT NULL,
    position bigint NOT NULL,
    item_id text NOT NULL,
    item text NOT NULL,
    PRIMARY KEY (account_id, conversation_id, position),
    UNIQUE (account_id, conversation_id, item_id),
    FOREIGN KEY (account_id, conversation_id) REFERENCES conversations (account_id, id) ON DELETE CASCADE
  )`,
]
