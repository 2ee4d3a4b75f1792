import { rollBack, type SqliteDatabase, SqliteStoreError } from './sqlite-database.ts'

/** Columns of every table of sums in version 1. */
const SUMS = `
  requests INTEGER NOT NULL, failed INTEGER NOT NULL, abandoned INTEGER NOT NULL, estimated INTEGER NOT NULL,
  duration_ms INTEGER NOT NULL, due INTEGER NOT NULL, charged INTEGER NOT NULL,
  input_tokens INTEGER NOT NULL, cached_input_tokens INTEGER NOT NULL, cache_write_tokens INTEGER NOT NULL,
  cache_write_1h_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, reasoning_tokens INTEGER NOT NULL,
  input_image_tokens INTEGER NOT NULL, input_audio_tokens INTEGER NOT NULL, output_image_tokens INTEGER NOT NULL,
  images INTEGER NOT NULL, video_milliseconds INTEGER NOT NULL, characters INTEGER NOT NULL,
  web_searches INTEGER NOT NULL, audio_milliseconds INTEGER NOT NULL, search_units INTEGER NOT NULL,
  hook_units INTEGER NOT NULL`

/** Columns of the tables of sums that count latencies, in version 1. */
const LATENCIES = `
  d0 INTEGER NOT NULL, d1 INTEGER NOT NULL, d2 INTEGER NOT NULL, d3 INTEGER NOT NULL, d4 INTEGER NOT NULL,
  d5 INTEGER NOT NULL, d6 INTEGER NOT NULL, d7 INTEGER NOT NULL, d8 INTEGER NOT NULL, d9 INTEGER NOT NULL,
  d10 INTEGER NOT NULL, d11 INTEGER NOT NULL, d12 INTEGER NOT NULL, d13 INTEGER NOT NULL, d14 INTEGER NOT NULL,
  f0 INTEGER NOT NULL, f1 INTEGER NOT NULL, f2 INTEGER NOT NULL, f3 INTEGER NOT NULL, f4 INTEGER NOT NULL,
  f5 INTEGER NOT NULL, f6 INTEGER NOT NULL, f7 INTEGER NOT NULL, f8 INTEGER NOT NULL, f9 INTEGER NOT NULL,
  f10 INTEGER NOT NULL, f11 INTEGER NOT NULL, f12 INTEGER NOT NULL, f13 INTEGER NOT NULL, f14 INTEGER NOT NULL`

const VERSION_1 = `
CREATE TABLE signalbox_accounts (
  id              TEXT PRIMARY KEY,
  balance         INTEGER NOT NULL DEFAULT 0 CHECK (balance >= 0),
  held            INTEGER NOT NULL DEFAULT 0 CHECK (held >= 0),
  owed            INTEGER NOT NULL DEFAULT 0 CHECK (owed >= 0),
  credit_held     INTEGER NOT NULL DEFAULT 0 CHECK (credit_held >= 0),
  -- Balance and held money after the latest credit.
  funded          INTEGER NOT NULL DEFAULT 0,
  tier            TEXT NOT NULL CHECK (tier IN ('free', 'paid')),
  cap_amount      INTEGER CHECK (cap_amount >= 0),
  cap_period      TEXT CHECK (cap_period IN ('day', 'month')),
  name            TEXT,
  plan            TEXT,
  billing         TEXT CHECK (billing IN ('prepaid', 'metered')),
  credit_limit    INTEGER CHECK (credit_limit >= 0),
  frozen_at_ms    INTEGER,
  frozen_reason   TEXT CHECK ((frozen_at_ms IS NULL) = (frozen_reason IS NULL)),
  created_at_ms   INTEGER NOT NULL,
  -- Charges and open holds of a day (20261122) and of its month.
  period          INTEGER NOT NULL DEFAULT 0,
  charged_day     INTEGER NOT NULL DEFAULT 0,
  charged_month   INTEGER NOT NULL DEFAULT 0,
  held_day        INTEGER NOT NULL DEFAULT 0,
  held_month      INTEGER NOT NULL DEFAULT 0,
  -- Times of the newest line and of the first expiry of a credit.
  journal_at_ms   INTEGER NOT NULL DEFAULT 0,
  first_expiry_ms INTEGER,
  CHECK ((cap_amount IS NULL) = (cap_period IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX signalbox_accounts_by_first_expiry ON signalbox_accounts (first_expiry_ms)
  WHERE first_expiry_ms IS NOT NULL;

-- Includes keys that the host authenticates itself.
CREATE TABLE signalbox_key_spending (
  key_id        TEXT PRIMARY KEY,
  period        INTEGER NOT NULL,
  charged_day   INTEGER NOT NULL,
  charged_month INTEGER NOT NULL,
  held_day      INTEGER NOT NULL,
  held_month    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX signalbox_key_spending_by_period ON signalbox_key_spending (period);

CREATE TABLE signalbox_holds (
  id                TEXT PRIMARY KEY,
  account_id        TEXT NOT NULL REFERENCES signalbox_accounts (id),
  key_id            TEXT NOT NULL,
  amount            INTEGER NOT NULL CHECK (amount >= 0),
  is_metered        INTEGER NOT NULL CHECK (is_metered IN (0, 1)),
  period            INTEGER NOT NULL,
  created_at_ms     INTEGER NOT NULL,
  expires_at_ms     INTEGER NOT NULL,
  ended_at_ms       INTEGER,
  ended_by          TEXT CHECK (ended_by IN ('settled', 'voided', 'expired')),
  claim_account_id  TEXT,
  claim_key         TEXT,
  claim_fingerprint TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX signalbox_open_holds ON signalbox_holds (expires_at_ms) WHERE ended_at_ms IS NULL;
CREATE INDEX signalbox_ended_holds ON signalbox_holds (expires_at_ms) WHERE ended_at_ms IS NOT NULL;

CREATE TABLE signalbox_refusals (
  hold_id       TEXT PRIMARY KEY,
  status        TEXT NOT NULL,
  counter       TEXT,
  expires_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX signalbox_refusals_by_expiry ON signalbox_refusals (expires_at_ms);

-- The key and the period of a charge say where it counts.
CREATE TABLE signalbox_entries (
  id            INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id    TEXT NOT NULL REFERENCES signalbox_accounts (id),
  kind          TEXT NOT NULL CHECK (kind IN ('credit', 'charge', 'owed', 'repayment', 'refund', 'adjustment', 'expiry')),
  amount        INTEGER NOT NULL,
  owed          INTEGER NOT NULL,
  credit_id     TEXT,
  hold_id       TEXT,
  operation_id  TEXT,
  charge_id     INTEGER,
  description   TEXT NOT NULL,
  created_at_ms INTEGER NOT NULL,
  due           INTEGER CHECK (due >= 0),
  balance_after INTEGER NOT NULL,
  owed_after    INTEGER NOT NULL,
  details       TEXT,
  key_id        TEXT,
  period        INTEGER
) STRICT;
CREATE INDEX signalbox_entries_by_account ON signalbox_entries (account_id, created_at_ms);
CREATE UNIQUE INDEX signalbox_entries_by_credit ON signalbox_entries (credit_id) WHERE credit_id IS NOT NULL;
CREATE UNIQUE INDEX signalbox_entries_by_operation ON signalbox_entries (kind, operation_id)
  WHERE kind IN ('adjustment', 'refund');
CREATE INDEX signalbox_entries_by_charge ON signalbox_entries (charge_id) WHERE charge_id IS NOT NULL;
CREATE TRIGGER signalbox_entries_stay BEFORE UPDATE ON signalbox_entries
BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;
CREATE TRIGGER signalbox_entries_last BEFORE DELETE ON signalbox_entries
BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;

CREATE TABLE signalbox_expiring_credits (
  account_id    TEXT NOT NULL REFERENCES signalbox_accounts (id),
  credit_id     TEXT NOT NULL,
  remaining     INTEGER NOT NULL CHECK (remaining >= 0),
  expires_at_ms INTEGER NOT NULL,
  UNIQUE (account_id, credit_id)
) STRICT;

CREATE TABLE signalbox_keys (
  id              TEXT NOT NULL UNIQUE,
  account_id      TEXT NOT NULL,
  hash            TEXT NOT NULL UNIQUE,
  label           TEXT NOT NULL,
  scopes          TEXT NOT NULL,
  limits          TEXT,
  cap_amount      INTEGER CHECK (cap_amount >= 0),
  cap_period      TEXT CHECK (cap_period IN ('day', 'month')),
  names_end_users INTEGER NOT NULL CHECK (names_end_users IN (0, 1)),
  tags            TEXT,
  replaces        TEXT,
  created_at_ms   INTEGER NOT NULL,
  expires_at_ms   INTEGER,
  revoked_at_ms   INTEGER,
  CHECK ((cap_amount IS NULL) = (cap_period IS NULL))
) STRICT;
CREATE INDEX signalbox_keys_by_account ON signalbox_keys (account_id, created_at_ms, id);
CREATE INDEX signalbox_keys_by_time ON signalbox_keys (created_at_ms, id);

-- The indexes named stored contain everything for counting an account's stored data, so that no prompts and answers are read.
CREATE TABLE signalbox_idempotency (
  account_id     TEXT NOT NULL,
  key            TEXT NOT NULL,
  fingerprint    TEXT NOT NULL,
  expires_at_ms  INTEGER NOT NULL,
  claimed_by     TEXT,
  answer_status  INTEGER,
  answer_headers TEXT,
  answer_body    BLOB,
  byte_length    INTEGER AS (ifnull(length(answer_body), 0)) VIRTUAL,
  PRIMARY KEY (account_id, key)
) STRICT;
CREATE INDEX signalbox_idempotency_by_expiry ON signalbox_idempotency (expires_at_ms);
CREATE INDEX signalbox_idempotency_stored ON signalbox_idempotency (account_id, expires_at_ms, byte_length);

-- A lease of 0 means none.
CREATE TABLE signalbox_tasks (
  id              TEXT NOT NULL UNIQUE,
  account_id      TEXT NOT NULL,
  key_id          TEXT NOT NULL,
  state           TEXT NOT NULL
    CHECK (state IN ('submitting', 'unknown', 'queued', 'in_progress', 'completed', 'failed', 'cancelled')),
  upstream_id     TEXT,
  vendor_account  TEXT NOT NULL,
  hold_id         TEXT,
  created_at_ms   INTEGER NOT NULL,
  updated_at_ms   INTEGER NOT NULL,
  next_poll_at_ms INTEGER NOT NULL,
  deadline_at_ms  INTEGER NOT NULL,
  lease_until_ms  INTEGER NOT NULL DEFAULT 0,
  details         TEXT NOT NULL,
  byte_length     INTEGER AS (length(CAST(details AS BLOB))) VIRTUAL
) STRICT;
CREATE INDEX signalbox_tasks_by_account ON signalbox_tasks (account_id, created_at_ms, id);
CREATE INDEX signalbox_tasks_by_time ON signalbox_tasks (created_at_ms, id);
CREATE INDEX signalbox_tasks_by_state ON signalbox_tasks (state, created_at_ms, id);
CREATE INDEX signalbox_tasks_by_upstream ON signalbox_tasks (account_id, upstream_id) WHERE upstream_id IS NOT NULL;
CREATE INDEX signalbox_tasks_due ON signalbox_tasks (vendor_account, next_poll_at_ms)
  WHERE state IN ('queued', 'in_progress');
CREATE INDEX signalbox_tasks_by_deadline ON signalbox_tasks (deadline_at_ms)
  WHERE state IN ('submitting', 'unknown', 'queued', 'in_progress');
CREATE INDEX signalbox_tasks_by_hold ON signalbox_tasks (hold_id)
  WHERE state IN ('submitting', 'unknown', 'queued', 'in_progress');
CREATE INDEX signalbox_ended_tasks ON signalbox_tasks (updated_at_ms)
  WHERE state IN ('completed', 'failed', 'cancelled');
CREATE INDEX signalbox_tasks_stored ON signalbox_tasks (account_id, byte_length);

-- Number of tasks that all processes together took in the window that begins then.
CREATE TABLE signalbox_poll_budgets (
  vendor_account  TEXT PRIMARY KEY,
  window_start_ms INTEGER NOT NULL,
  taken           INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE signalbox_deliveries (
  id                 TEXT NOT NULL UNIQUE,
  account_id         TEXT NOT NULL,
  task_id            TEXT NOT NULL,
  url                TEXT NOT NULL,
  body               TEXT NOT NULL,
  state              TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'delivered', 'failed', 'disabled')),
  attempts           TEXT NOT NULL DEFAULT '[]',
  created_at_ms      INTEGER NOT NULL,
  next_attempt_at_ms INTEGER NOT NULL,
  lease_until_ms     INTEGER NOT NULL DEFAULT 0,
  resent_at_ms       INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX signalbox_deliveries_by_task ON signalbox_deliveries (task_id);
CREATE INDEX signalbox_deliveries_by_account ON signalbox_deliveries (account_id, created_at_ms, id);
CREATE INDEX signalbox_deliveries_by_time ON signalbox_deliveries (created_at_ms, id);
CREATE INDEX signalbox_deliveries_by_state ON signalbox_deliveries (state, created_at_ms, id);
CREATE INDEX signalbox_deliveries_due ON signalbox_deliveries (next_attempt_at_ms) WHERE state = 'pending';

CREATE TABLE signalbox_webhook_secrets (
  number        INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id    TEXT NOT NULL,
  secret        TEXT NOT NULL,
  expires_at_ms INTEGER,
  UNIQUE (account_id, secret)
) STRICT;

CREATE TABLE signalbox_interactions (
  account_id    TEXT NOT NULL,
  id            TEXT NOT NULL,
  vendor        TEXT NOT NULL,
  vendor_key    TEXT NOT NULL,
  upstream_id   TEXT NOT NULL,
  model         TEXT NOT NULL,
  created_at_ms INTEGER NOT NULL,
  expires_at_ms INTEGER NOT NULL,
  PRIMARY KEY (account_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX signalbox_interactions_by_expiry ON signalbox_interactions (expires_at_ms);

CREATE TABLE signalbox_responses (
  number                INTEGER PRIMARY KEY,
  account_id            TEXT NOT NULL,
  id                    TEXT NOT NULL,
  previous_id           TEXT,
  vendor                TEXT NOT NULL,
  vendor_key            TEXT NOT NULL,
  upstream_id           TEXT,
  conversation_id       TEXT,
  conversation_position INTEGER,
  model                 TEXT NOT NULL,
  created_at_ms         INTEGER NOT NULL,
  expires_at_ms         INTEGER NOT NULL,
  input                 TEXT NOT NULL,
  response              TEXT NOT NULL,
  byte_length           INTEGER AS (length(CAST(input AS BLOB)) + length(CAST(response AS BLOB))) VIRTUAL,
  UNIQUE (account_id, id)
) STRICT;
CREATE INDEX signalbox_responses_by_expiry ON signalbox_responses (expires_at_ms);
CREATE INDEX signalbox_responses_stored ON signalbox_responses (account_id, expires_at_ms, byte_length);

CREATE TABLE signalbox_response_items (
  account_id TEXT NOT NULL,
  item_id    TEXT NOT NULL,
  response   INTEGER NOT NULL REFERENCES signalbox_responses (number) ON DELETE CASCADE,
  PRIMARY KEY (account_id, item_id, response)
) STRICT, WITHOUT ROWID;
CREATE INDEX signalbox_response_items_by_response ON signalbox_response_items (response);

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
CREATE INDEX signalbox_conversations_stored ON signalbox_conversations (account_id, expires_at_ms, byte_length);

CREATE TABLE signalbox_conversation_items (
  conversation INTEGER NOT NULL REFERENCES signalbox_conversations (number) ON DELETE CASCADE,
  position     INTEGER NOT NULL,
  item_id      TEXT NOT NULL,
  item         TEXT NOT NULL,
  UNIQUE (conversation, position),
  UNIQUE (conversation, item_id)
) STRICT;

-- Records of calls, in the order in which they were written.
CREATE TABLE signalbox_usage (
  number            INTEGER PRIMARY KEY AUTOINCREMENT,
  id                TEXT NOT NULL,
  account_id        TEXT NOT NULL,
  key_id            TEXT NOT NULL,
  end_user          TEXT,
  tags              TEXT,
  endpoint          TEXT NOT NULL,
  model             TEXT NOT NULL,
  requested_model   TEXT NOT NULL,
  vendor            TEXT,
  credential_id     TEXT,
  vendor_request_id TEXT,
  ending            TEXT NOT NULL,
  status            INTEGER NOT NULL,
  code              TEXT,
  is_stream         INTEGER NOT NULL,
  is_estimated      INTEGER NOT NULL,
  duration_ms       INTEGER NOT NULL,
  first_byte_ms     INTEGER,
  attempts          TEXT,
  ended_at_ms       INTEGER NOT NULL,
  due               INTEGER NOT NULL,
  charged           INTEGER NOT NULL,
  input_tokens INTEGER, cached_input_tokens INTEGER, cache_write_tokens INTEGER, cache_write_1h_tokens INTEGER,
  output_tokens INTEGER, reasoning_tokens INTEGER, input_image_tokens INTEGER, input_audio_tokens INTEGER,
  output_image_tokens INTEGER, images INTEGER, video_milliseconds INTEGER, characters INTEGER, web_searches INTEGER,
  audio_milliseconds INTEGER, search_units INTEGER, hook_units INTEGER
) STRICT;
CREATE INDEX signalbox_usage_by_time ON signalbox_usage (ended_at_ms);
CREATE INDEX signalbox_usage_by_account ON signalbox_usage (account_id, ended_at_ms);

CREATE TABLE signalbox_usage_hours (
  hour INTEGER NOT NULL, endpoint TEXT NOT NULL, model TEXT NOT NULL, vendor TEXT NOT NULL,${SUMS},${LATENCIES},
  PRIMARY KEY (hour, endpoint, model, vendor)
) STRICT, WITHOUT ROWID;
CREATE TABLE signalbox_usage_model_days (
  day INTEGER NOT NULL, endpoint TEXT NOT NULL, model TEXT NOT NULL, vendor TEXT NOT NULL,${SUMS},${LATENCIES},
  PRIMARY KEY (day, endpoint, model, vendor)
) STRICT, WITHOUT ROWID;
CREATE TABLE signalbox_usage_days (
  day INTEGER NOT NULL, account_id TEXT NOT NULL, key_id TEXT NOT NULL,
  model TEXT NOT NULL, endpoint TEXT NOT NULL, vendor TEXT NOT NULL,${SUMS},
  PRIMARY KEY (day, account_id, key_id, model, endpoint, vendor)
) STRICT, WITHOUT ROWID;

-- Number of the last record in the sums.
CREATE TABLE signalbox_usage_mark (mark INTEGER NOT NULL, as_of_ms INTEGER NOT NULL) STRICT;
INSERT INTO signalbox_usage_mark VALUES (0, 0);

CREATE TABLE signalbox_files (
  id            TEXT NOT NULL,
  account_id    TEXT NOT NULL,
  purpose       TEXT NOT NULL,
  filename      TEXT NOT NULL,
  mime_type     TEXT,
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

CREATE TABLE signalbox_audit (
  id            TEXT NOT NULL UNIQUE,
  created_at_ms INTEGER NOT NULL,
  subject       TEXT,
  details       TEXT NOT NULL
) STRICT;
CREATE INDEX signalbox_audit_by_time ON signalbox_audit (created_at_ms, id);
CREATE INDEX signalbox_audit_by_subject ON signalbox_audit (subject, created_at_ms, id) WHERE subject IS NOT NULL;

CREATE TABLE signalbox_settings (
  name  TEXT PRIMARY KEY,
  value REAL NOT NULL
) STRICT, WITHOUT ROWID;
`

/**
 * Steps of the schema: the first one creates version 1. A released step is literal SQL and never changes; a change is a new
 * step. Every name begins with `signalbox_`, because the database may contain tables of the host. Times are Unix milliseconds,
 * amounts nano-dollars.
 */
export const MIGRATIONS: readonly string[] = [VERSION_1]

/**
 * Migrates the schema in one transaction; if several processes start together, one migrates.
 * @throws SqliteStoreError `schema_too_new` if newer code has written the database, which stays unchanged.
 */
export function migrate(database: SqliteDatabase, label: string, steps: readonly string[] = MIGRATIONS): void {
  // Reads first: a current database is not locked, and one that is too new is not changed.
  if (versionOf(database, label, steps.length) === steps.length) return
  database.exec('BEGIN IMMEDIATE')
  try {
    const version = versionOf(database, label, steps.length)
    database.exec(`CREATE TABLE IF NOT EXISTS signalbox_migrations (
      version       INTEGER PRIMARY KEY,
      applied_at_ms INTEGER NOT NULL
    ) STRICT`)
    const record = database.prepare('INSERT INTO signalbox_migrations (version, applied_at_ms) VALUES (?, ?)')
    for (const [index, step] of steps.entries()) {
      if (index < version) continue
      database.exec(step)
      record.run(index + 1, Date.now())
    }
    database.exec('COMMIT')
  } catch (error) {
    rollBack(database)
    throw error
  }
}

/**
 * Returns how many steps the next start will apply, and whether these are all. Changes nothing.
 * @throws SqliteStoreError `schema_too_new` if newer code has written the database.
 */
export function pendingSqliteMigrations(
  database: SqliteDatabase,
  label: string,
): { readonly pending: number; readonly isNew: boolean } {
  const version = versionOf(database, label, MIGRATIONS.length)
  return { pending: MIGRATIONS.length - version, isNew: version === 0 }
}

function versionOf(database: SqliteDatabase, label: string, known: number): number {
  const table = database
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name = 'signalbox_migrations'")
    .get()
  if (table === undefined) return 0
  const row = database.prepare('SELECT max(version) AS version FROM signalbox_migrations').get()
  const version = Number((row as { readonly version: number | bigint | null }).version ?? 0)
  if (version <= known) return version
  throw new SqliteStoreError(
    'schema_too_new',
    `${label} has schema version ${version}, and this version of signalbox knows ${known} only: update signalbox`,
  )
}
