/** Stored answers and their items. */
export const RESPONSE_MIGRATION = `
CREATE TABLE signalbox_responses (
  number        INTEGER PRIMARY KEY,
  account_id    TEXT NOT NULL,
  id            TEXT NOT NULL,
  previous_id   TEXT,
  vendor        TEXT NOT NULL,
  vendor_key    TEXT NOT NULL,
  upstream_id   TEXT,
  conversation_id       TEXT,
  conversation_position INTEGER,
  model         TEXT NOT NULL,
  created_at_ms INTEGER NOT NULL,
  expires_at_ms INTEGER NOT NULL,
  input         TEXT NOT NULL,
  response      TEXT NOT NULL,
  UNIQUE (account_id, id)
) STRICT;
CREATE INDEX signalbox_responses_by_expiry ON signalbox_responses (expires_at_ms);

CREATE TABLE signalbox_response_items (
  account_id TEXT NOT NULL,
  item_id    TEXT NOT NULL,
  response   INTEGER NOT NULL REFERENCES signalbox_responses (number) ON DELETE CASCADE,
  PRIMARY KEY (account_id, item_id, response)
) STRICT, WITHOUT ROWID;
CREATE INDEX signalbox_response_items_by_response ON signalbox_response_items (response);
`

/** Conversations and their items. */
export const CONVERSATION_MIGRATION = `
CREATE TABLE signalbox_conversations (
  number        INTEGER PRIMARY KEY,
  account_id    TEXT NOT NULL,
  id            TEXT NOT NULL,
  metadata      TEXT NOT NULL,
  vendor_key    TEXT,
  last_position INTEGER NOT NULL DEFAULT 0,
  item_count    INTEGER NOT NULL DEFAULT 0,
  byte_length   INTEGER NOT NULL DEFAULT 0,
  created_at_ms INTEGER NOT NULL,
  expires_at_ms INTEGER NOT NULL,
  UNIQUE (account_id, id)
) STRICT;
CREATE INDEX signalbox_conversations_by_expiry ON signalbox_conversations (expires_at_ms);

CREATE TABLE signalbox_conversation_items (
  conversation INTEGER NOT NULL REFERENCES signalbox_conversations (number) ON DELETE CASCADE,
  position     INTEGER NOT NULL,
  item_id      TEXT NOT NULL,
  item         TEXT NOT NULL,
  UNIQUE (conversation, position),
  UNIQUE (conversation, item_id)
) STRICT;
`

/** Callers' files and their bytes, and the outcomes of the requests of batches. */
export const FILE_MIGRATION = `
CREATE TABLE signalbox_files (
  id            TEXT NOT NULL,
  account_id    TEXT NOT NULL,
  purpose       TEXT NOT NULL,
  filename      TEXT NOT NULL,
  byte_length   INTEGER NOT NULL,
  created_at_ms INTEGER NOT NULL,
  expires_at_ms INTEGER NOT NULL,
  PRIMARY KEY (account_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX signalbox_files_by_time ON signalbox_files (account_id, created_at_ms, id);
CREATE INDEX signalbox_files_by_expiry ON signalbox_files (expires_at_ms);

-- A blob that is being written is not whole, and no id has two that are.
CREATE TABLE signalbox_blobs (
  number        INTEGER PRIMARY KEY,
  id            TEXT NOT NULL,
  is_whole      INTEGER NOT NULL DEFAULT 0,
  byte_length   INTEGER NOT NULL DEFAULT 0,
  expires_at_ms INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX signalbox_blobs_by_id ON signalbox_blobs (id) WHERE is_whole = 1;
CREATE INDEX signalbox_blobs_by_expiry ON signalbox_blobs (expires_at_ms);
CREATE TABLE signalbox_blob_rows (
  blob  INTEGER NOT NULL REFERENCES signalbox_blobs (number) ON DELETE CASCADE,
  place INTEGER NOT NULL,
  bytes BLOB NOT NULL,
  PRIMARY KEY (blob, place)
) STRICT;

CREATE TABLE signalbox_batch_outcomes (
  batch_id      TEXT NOT NULL,
  line          INTEGER NOT NULL,
  is_answered   INTEGER NOT NULL,
  text          TEXT NOT NULL,
  usage         TEXT,
  amount        TEXT NOT NULL,
  expires_at_ms INTEGER NOT NULL,
  PRIMARY KEY (batch_id, line)
) STRICT;
CREATE INDEX signalbox_batch_outcomes_by_state ON signalbox_batch_outcomes (batch_id, is_answered);
CREATE INDEX signalbox_batch_outcomes_by_expiry ON signalbox_batch_outcomes (expires_at_ms);
`

/** Media types of files. */
export const FILE_TYPE_MIGRATION = 'ALTER TABLE signalbox_files ADD COLUMN mime_type TEXT;'

/** Changes by operators. */
export const AUDIT_MIGRATION = `
CREATE TABLE signalbox_audit (
  id            TEXT NOT NULL UNIQUE,
  created_at_ms INTEGER NOT NULL,
  subject       TEXT,
  details       TEXT NOT NULL
) STRICT;
CREATE INDEX signalbox_audit_by_time ON signalbox_audit (created_at_ms, id);
CREATE INDEX signalbox_audit_by_subject ON signalbox_audit (subject, created_at_ms, id) WHERE subject IS NOT NULL;
`

/** Settings that the processes of a file share. */
export const SETTINGS_MIGRATION = `
CREATE TABLE signalbox_settings (
  name  TEXT PRIMARY KEY,
  value REAL NOT NULL
) STRICT, WITHOUT ROWID;
`

/** Indexes that contain everything for counting an account's stored data, so that no prompts and answers are read. */
export const STORED_MIGRATION = `
ALTER TABLE signalbox_idempotency ADD COLUMN byte_length INTEGER AS (ifnull(length(answer_body), 0)) VIRTUAL;
ALTER TABLE signalbox_responses ADD COLUMN byte_length INTEGER
  AS (length(CAST(input AS BLOB)) + length(CAST(response AS BLOB))) VIRTUAL;
ALTER TABLE signalbox_tasks ADD COLUMN byte_length INTEGER AS (length(CAST(details AS BLOB))) VIRTUAL;
CREATE INDEX signalbox_idempotency_stored ON signalbox_idempotency (account_id, expires_at_ms, byte_length);
CREATE INDEX signalbox_responses_stored ON signalbox_responses (account_id, expires_at_ms, byte_length);
CREATE INDEX signalbox_conversations_stored ON signalbox_conversations (account_id, expires_at_ms, byte_length);
CREATE INDEX signalbox_tasks_stored ON signalbox_tasks (account_id, byte_length);
`
