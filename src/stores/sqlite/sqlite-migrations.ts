import { BUCKET_NAMES, LATER_METER_NAMES, modelDaysOfHours } from '../usage-columns.ts'
import {
  ACCOUNT_PAGES_MIGRATION,
  NEWEST_MIGRATION,
  rollBack,
  type SqliteDatabase,
  SqliteStoreError,
} from './sqlite-database.ts'
import {
  AUDIT_MIGRATION,
  CONVERSATION_MIGRATION,
  FILE_MIGRATION,
  FILE_TYPE_MIGRATION,
  RESPONSE_MIGRATION,
  SETTINGS_MIGRATION,
  STORED_MIGRATION,
} from './sqlite-tables.ts'

/** Columns of every table of sums in the migration. */
const SUMS = `  requests               INTEGER NOT NULL,
  failed                 INTEGER NOT NULL,
  abandoned              INTEGER NOT NULL,
  estimated              INTEGER NOT NULL,
  duration_ms            INTEGER NOT NULL,
  due                    INTEGER NOT NULL,
  charged                INTEGER NOT NULL,
  input_tokens           INTEGER NOT NULL,
  cached_input_tokens    INTEGER NOT NULL,
  cache_write_tokens     INTEGER NOT NULL,
  cache_write_1h_tokens  INTEGER NOT NULL,
  output_tokens          INTEGER NOT NULL,
  reasoning_tokens       INTEGER NOT NULL,
  input_image_tokens     INTEGER NOT NULL,
  input_audio_tokens     INTEGER NOT NULL,
  output_image_tokens    INTEGER NOT NULL,
  images                 INTEGER NOT NULL,
  video_milliseconds     INTEGER NOT NULL,
  characters             INTEGER NOT NULL,
  web_searches           INTEGER NOT NULL,
`
const BUCKETS = BUCKET_NAMES.map((column) => `${column} INTEGER NOT NULL`).join(', ')

/** Records of calls, in the order in which they were written, and their sums. `mark`: last counted record. */
const USAGE_MIGRATION = `
CREATE TABLE signalbox_usage (
  number                 INTEGER PRIMARY KEY AUTOINCREMENT,
  id                     TEXT NOT NULL,
  account_id             TEXT NOT NULL,
  key_id                 TEXT NOT NULL,
  end_user               TEXT,
  tags                   TEXT,
  endpoint               TEXT NOT NULL,
  model                  TEXT NOT NULL,
  requested_model        TEXT NOT NULL,
  vendor                 TEXT,
  credential_id          TEXT,
  vendor_request_id      TEXT,
  ending                 TEXT NOT NULL,
  status                 INTEGER NOT NULL,
  code                   TEXT,
  is_stream              INTEGER NOT NULL,
  is_estimated           INTEGER NOT NULL,
  duration_ms            INTEGER NOT NULL,
  first_byte_ms          INTEGER,
  attempts               TEXT,
  ended_at_ms            INTEGER NOT NULL,
  due                    INTEGER NOT NULL,
  charged                INTEGER NOT NULL,
  input_tokens           INTEGER,
  cached_input_tokens    INTEGER,
  cache_write_tokens     INTEGER,
  cache_write_1h_tokens  INTEGER,
  output_tokens          INTEGER,
  reasoning_tokens       INTEGER,
  input_image_tokens     INTEGER,
  input_audio_tokens     INTEGER,
  output_image_tokens    INTEGER,
  images                 INTEGER,
  video_milliseconds     INTEGER,
  characters             INTEGER,
  web_searches           INTEGER
) STRICT;
CREATE INDEX signalbox_usage_by_time ON signalbox_usage (ended_at_ms);
CREATE INDEX signalbox_usage_by_account ON signalbox_usage (account_id, ended_at_ms);

CREATE TABLE signalbox_usage_hours (
  hour                   INTEGER NOT NULL,
  endpoint               TEXT NOT NULL,
  model                  TEXT NOT NULL,
  vendor                 TEXT NOT NULL,
${SUMS}  ${BUCKETS},
  PRIMARY KEY (hour, endpoint, model, vendor)
) STRICT, WITHOUT ROWID;

CREATE TABLE signalbox_usage_days (
  day                    INTEGER NOT NULL,
  account_id             TEXT NOT NULL,
  key_id                 TEXT NOT NULL,
  model                  TEXT NOT NULL,
  endpoint               TEXT NOT NULL,
  vendor                 TEXT NOT NULL,
${SUMS}  PRIMARY KEY (day, account_id, key_id, model, endpoint, vendor)
) STRICT, WITHOUT ROWID;

CREATE TABLE signalbox_usage_mark (mark INTEGER NOT NULL, as_of_ms INTEGER NOT NULL) STRICT;
INSERT INTO signalbox_usage_mark VALUES (0, 0);
`

/** Sums by UTC day of all accounts together, computed from those by hour. */
export const MODEL_DAYS_MIGRATION = `
CREATE TABLE signalbox_usage_model_days (
  day                    INTEGER NOT NULL,
  endpoint               TEXT NOT NULL,
  model                  TEXT NOT NULL,
  vendor                 TEXT NOT NULL,
${SUMS}  ${BUCKETS},
  PRIMARY KEY (day, endpoint, model, vendor)
) STRICT, WITHOUT ROWID;
${modelDaysOfHours('signalbox_')};
`

/** Columns of later meters. */
const LATER_METERS_MIGRATION = LATER_METER_NAMES.map(
  (column) => `
ALTER TABLE signalbox_usage ADD COLUMN ${column} INTEGER;
ALTER TABLE signalbox_usage_hours ADD COLUMN ${column} INTEGER NOT NULL DEFAULT 0;
ALTER TABLE signalbox_usage_model_days ADD COLUMN ${column} INTEGER NOT NULL DEFAULT 0;
ALTER TABLE signalbox_usage_days ADD COLUMN ${column} INTEGER NOT NULL DEFAULT 0;
`,
).join('')

/** Request that has claimed an idempotency key. */
const CLAIMANT_MIGRATION = 'ALTER TABLE signalbox_idempotency ADD COLUMN claimed_by TEXT;'

/** Long jobs, their messages, and the owners of conversations. A lease of 0 means none. */
const TASK_MIGRATION = `
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
  details         TEXT NOT NULL
) STRICT;
CREATE INDEX signalbox_tasks_by_account ON signalbox_tasks (account_id, created_at_ms, id);
CREATE INDEX signalbox_tasks_by_upstream ON signalbox_tasks (account_id, upstream_id) WHERE upstream_id IS NOT NULL;
CREATE INDEX signalbox_tasks_due ON signalbox_tasks (vendor_account, next_poll_at_ms)
  WHERE state IN ('queued', 'in_progress');
CREATE INDEX signalbox_tasks_by_deadline ON signalbox_tasks (deadline_at_ms)
  WHERE state IN ('submitting', 'unknown', 'queued', 'in_progress');
CREATE INDEX signalbox_tasks_by_hold ON signalbox_tasks (hold_id)
  WHERE state IN ('submitting', 'unknown', 'queued', 'in_progress');

-- How many tasks all processes together took in the window that begins then.
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
  lease_until_ms     INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX signalbox_deliveries_by_task ON signalbox_deliveries (task_id);
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
`

/** Indexes for tasks to be purged, and the time of the last resend; 0 for never. */
const RETENTION_MIGRATION = `
CREATE INDEX signalbox_ended_tasks ON signalbox_tasks (updated_at_ms)
  WHERE state IN ('completed', 'failed', 'cancelled');
ALTER TABLE signalbox_deliveries ADD COLUMN resent_at_ms INTEGER NOT NULL DEFAULT 0;
`

/**
 * Debts of accounts, and how holds ended: null if they ended before this step. A hold with null was settled or voided, and is not
 * charged again.
 */
const ARREARS_MIGRATION = `
ALTER TABLE signalbox_accounts ADD COLUMN owed INTEGER NOT NULL DEFAULT 0 CHECK (owed >= 0);
ALTER TABLE signalbox_entries ADD COLUMN owed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE signalbox_holds ADD COLUMN ended_by TEXT CHECK (ended_by IN ('settled', 'voided', 'expired'));
`

/**
 * Spending of accounts and keys: charges and open holds of a day (20261122) and of its month, also of keys that the host
 * authenticates itself. Metered and frozen accounts, plans, and keys that name end users. Earlier holds count in no day.
 */
const SPENDING_MIGRATION = `
ALTER TABLE signalbox_accounts ADD COLUMN name TEXT;
ALTER TABLE signalbox_accounts ADD COLUMN plan TEXT;
ALTER TABLE signalbox_accounts ADD COLUMN billing TEXT CHECK (billing IN ('prepaid', 'metered'));
ALTER TABLE signalbox_accounts ADD COLUMN credit_limit INTEGER CHECK (credit_limit >= 0);
ALTER TABLE signalbox_accounts ADD COLUMN credit_held INTEGER NOT NULL DEFAULT 0 CHECK (credit_held >= 0);
ALTER TABLE signalbox_accounts ADD COLUMN funded INTEGER NOT NULL DEFAULT 0;
ALTER TABLE signalbox_accounts ADD COLUMN frozen_at_ms INTEGER;
ALTER TABLE signalbox_accounts ADD COLUMN frozen_reason TEXT CHECK ((frozen_at_ms IS NULL) = (frozen_reason IS NULL));
ALTER TABLE signalbox_accounts ADD COLUMN period INTEGER NOT NULL DEFAULT 0;
ALTER TABLE signalbox_accounts ADD COLUMN charged_day INTEGER NOT NULL DEFAULT 0;
ALTER TABLE signalbox_accounts ADD COLUMN charged_month INTEGER NOT NULL DEFAULT 0;
ALTER TABLE signalbox_accounts ADD COLUMN held_day INTEGER NOT NULL DEFAULT 0;
ALTER TABLE signalbox_accounts ADD COLUMN held_month INTEGER NOT NULL DEFAULT 0;
CREATE TABLE signalbox_key_spending (
  key_id        TEXT PRIMARY KEY,
  period        INTEGER NOT NULL,
  charged_day   INTEGER NOT NULL,
  charged_month INTEGER NOT NULL,
  held_day      INTEGER NOT NULL,
  held_month    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX signalbox_key_spending_by_period ON signalbox_key_spending (period);
DROP TABLE signalbox_hold_counters;
DROP TABLE signalbox_counters;
ALTER TABLE signalbox_holds DROP COLUMN is_counted;
ALTER TABLE signalbox_holds ADD COLUMN is_metered INTEGER NOT NULL DEFAULT 0 CHECK (is_metered IN (0, 1));
ALTER TABLE signalbox_holds ADD COLUMN period INTEGER NOT NULL DEFAULT 0;
ALTER TABLE signalbox_keys ADD COLUMN replaces TEXT;
ALTER TABLE signalbox_keys ADD COLUMN names_end_users INTEGER NOT NULL DEFAULT 0 CHECK (names_end_users IN (0, 1));
ALTER TABLE signalbox_keys ADD COLUMN tags TEXT;
`

/**
 * Journal lines with their purpose and the balance after them, in the order of time; refunds, adjustments, and credits that
 * expire. `journal_at_ms`: time of an account's newest line. `key_id` and `period` say where a charge counts. The table is
 * created again, because its check of kinds cannot be changed: earlier versions had other kinds for repayments and debts.
 */
const JOURNAL_MIGRATION = `
ALTER TABLE signalbox_accounts ADD COLUMN journal_at_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE signalbox_accounts ADD COLUMN first_expiry_ms INTEGER;
CREATE INDEX signalbox_accounts_by_first_expiry ON signalbox_accounts (first_expiry_ms)
  WHERE first_expiry_ms IS NOT NULL;

CREATE TABLE signalbox_journal (
  id            INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id    TEXT NOT NULL REFERENCES signalbox_accounts (id),
  kind          TEXT NOT NULL CHECK (kind IN
    ('credit', 'charge', 'owed', 'repayment', 'refund', 'adjustment', 'expiry', 'shortfall')),
  amount        INTEGER NOT NULL,
  owed          INTEGER NOT NULL DEFAULT 0,
  credit_id     TEXT,
  hold_id       TEXT,
  operation_id  TEXT,
  charge_id     INTEGER,
  description   TEXT NOT NULL,
  created_at_ms INTEGER NOT NULL,
  due           INTEGER CHECK (due >= 0),
  balance_after INTEGER,
  owed_after    INTEGER,
  details       TEXT,
  key_id        TEXT,
  period        INTEGER
) STRICT;
INSERT INTO signalbox_journal (id, account_id, kind, amount, owed, credit_id, hold_id, description, created_at_ms)
  SELECT id, account_id, CASE WHEN owed > 0 THEN 'owed' WHEN owed < 0 THEN 'repayment' ELSE kind END,
    amount, owed, credit_id, hold_id, description, created_at_ms FROM signalbox_entries ORDER BY id;
DROP TABLE signalbox_entries;
ALTER TABLE signalbox_journal RENAME TO signalbox_entries;
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
`

/**
 * The schema, step by step: the first step creates version 1. A released step is never changed; a change is a new step. Every
 * name begins with `signalbox_`, because the database may contain tables of the host. Times are Unix milliseconds, amounts
 * nano-dollars.
 */
export const MIGRATIONS: readonly string[] = [
  `
CREATE TABLE signalbox_accounts (
  id            TEXT PRIMARY KEY,
  balance       INTEGER NOT NULL DEFAULT 0 CHECK (balance >= 0),
  held          INTEGER NOT NULL DEFAULT 0 CHECK (held >= 0),
  tier          TEXT NOT NULL CHECK (tier IN ('free', 'paid')),
  cap_amount    INTEGER CHECK (cap_amount >= 0),
  cap_period    TEXT CHECK (cap_period IN ('day', 'month')),
  created_at_ms INTEGER NOT NULL,
  CHECK ((cap_amount IS NULL) = (cap_period IS NULL))
) STRICT, WITHOUT ROWID;

CREATE TABLE signalbox_holds (
  id                TEXT PRIMARY KEY,
  account_id        TEXT NOT NULL REFERENCES signalbox_accounts (id),
  key_id            TEXT NOT NULL,
  amount            INTEGER NOT NULL CHECK (amount >= 0),
  is_counted        INTEGER NOT NULL CHECK (is_counted IN (0, 1)),
  created_at_ms     INTEGER NOT NULL,
  expires_at_ms     INTEGER NOT NULL,
  ended_at_ms       INTEGER,
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

-- AUTOINCREMENT: the number of a forgotten counter is never given again, so an old hold cannot touch a new counter.
CREATE TABLE signalbox_counters (
  id            INTEGER PRIMARY KEY AUTOINCREMENT,
  name          TEXT NOT NULL UNIQUE,
  spent         INTEGER NOT NULL CHECK (spent >= 0),
  expires_at_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX signalbox_counters_by_expiry ON signalbox_counters (expires_at_ms);

CREATE TABLE signalbox_hold_counters (
  hold_id    TEXT NOT NULL REFERENCES signalbox_holds (id) ON DELETE CASCADE,
  counter_id INTEGER NOT NULL,
  PRIMARY KEY (hold_id, counter_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE signalbox_entries (
  id            INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id    TEXT NOT NULL REFERENCES signalbox_accounts (id),
  kind          TEXT NOT NULL CHECK (kind IN ('credit', 'charge', 'shortfall')),
  amount        INTEGER NOT NULL,
  credit_id     TEXT,
  hold_id       TEXT,
  description   TEXT NOT NULL,
  created_at_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX signalbox_entries_by_account ON signalbox_entries (account_id, id);
CREATE UNIQUE INDEX signalbox_entries_by_credit ON signalbox_entries (credit_id) WHERE credit_id IS NOT NULL;
CREATE TRIGGER signalbox_entries_stay BEFORE UPDATE ON signalbox_entries
BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;
CREATE TRIGGER signalbox_entries_last BEFORE DELETE ON signalbox_entries
BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;

CREATE TABLE signalbox_keys (
  id            TEXT NOT NULL UNIQUE,
  account_id    TEXT NOT NULL,
  hash          TEXT NOT NULL UNIQUE,
  label         TEXT NOT NULL,
  scopes        TEXT NOT NULL,
  limits        TEXT,
  cap_amount    INTEGER CHECK (cap_amount >= 0),
  cap_period    TEXT CHECK (cap_period IN ('day', 'month')),
  created_at_ms INTEGER NOT NULL,
  expires_at_ms INTEGER,
  revoked_at_ms INTEGER,
  CHECK ((cap_amount IS NULL) = (cap_period IS NULL))
) STRICT;
CREATE INDEX signalbox_keys_by_account ON signalbox_keys (account_id, created_at_ms);

CREATE TABLE signalbox_idempotency (
  account_id     TEXT NOT NULL,
  key            TEXT NOT NULL,
  fingerprint    TEXT NOT NULL,
  expires_at_ms  INTEGER NOT NULL,
  answer_status  INTEGER,
  answer_headers TEXT,
  answer_body    BLOB,
  PRIMARY KEY (account_id, key)
) STRICT;
CREATE INDEX signalbox_idempotency_by_expiry ON signalbox_idempotency (expires_at_ms);
`,
  TASK_MIGRATION,
  RETENTION_MIGRATION,
  ARREARS_MIGRATION,
  SPENDING_MIGRATION,
  RESPONSE_MIGRATION + CONVERSATION_MIGRATION,
  JOURNAL_MIGRATION,
  USAGE_MIGRATION + NEWEST_MIGRATION,
  MODEL_DAYS_MIGRATION,
  LATER_METERS_MIGRATION,
  FILE_MIGRATION,
  CLAIMANT_MIGRATION,
  ACCOUNT_PAGES_MIGRATION,
  STORED_MIGRATION,
  AUDIT_MIGRATION,
  SETTINGS_MIGRATION,
  FILE_TYPE_MIGRATION,
]

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
