/** Long jobs, the messages about them, and who owns which conversation. A lease of 0 is none. */
export const TASK_MIGRATION = `
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
