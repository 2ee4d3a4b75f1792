import { RETENTION_MIGRATION } from './sqlite-retention-migration.ts'
import { TASK_MIGRATION } from './sqlite-task-migration.ts'

/**
 * The schema, step by step: the first step makes version 1. A released step is never changed; a change is a new step.
 * Every name begins with `signalbox_`, since the database may hold the host's own tables too. Times are Unix milliseconds,
 * amounts nano-dollars.
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
]
