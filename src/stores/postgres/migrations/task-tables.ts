/** Long jobs, the messages about them, and who owns which conversation. Times are Unix milliseconds; a lease of 0 is none. */
export const TASK_TABLES: readonly string[] = [
  // The collation orders ids by their bytes, as the other drivers do, whatever the database's own.
  `CREATE TABLE tasks (
    id text COLLATE "C" PRIMARY KEY,
    account_id text NOT NULL,
    key_id text NOT NULL,
    state text NOT NULL
      CHECK (state IN ('submitting', 'unknown', 'queued', 'in_progress', 'completed', 'failed', 'cancelled')),
    upstream_id text,
    vendor_account text NOT NULL,
    hold_id text,
    created_at_ms bigint NOT NULL,
    updated_at_ms bigint NOT NULL,
    next_poll_at_ms bigint NOT NULL,
    deadline_at_ms bigint NOT NULL,
    lease_until_ms bigint NOT NULL DEFAULT 0,
    details text NOT NULL
  )`,
  `CREATE INDEX tasks_by_account ON tasks (account_id, created_at_ms, id)`,
  `CREATE INDEX tasks_by_upstream ON tasks (account_id, upstream_id) WHERE upstream_id IS NOT NULL`,
  `CREATE INDEX tasks_due ON tasks (vendor_account, next_poll_at_ms) WHERE state IN ('queued', 'in_progress')`,
  `CREATE INDEX tasks_open_by_deadline ON tasks (deadline_at_ms)
    WHERE state IN ('submitting', 'unknown', 'queued', 'in_progress')`,
  `CREATE INDEX tasks_open_by_hold ON tasks (hold_id)
    WHERE state IN ('submitting', 'unknown', 'queued', 'in_progress')`,

  // How many tasks all processes together took in the window that begins then.
  `CREATE TABLE poll_budgets (
    vendor_account text PRIMARY KEY,
    window_start_ms bigint NOT NULL,
    taken integer NOT NULL
  ) WITH (fillfactor = 50)`,

  `CREATE TABLE deliveries (
    id text COLLATE "C" PRIMARY KEY,
    account_id text NOT NULL,
    task_id text NOT NULL,
    url text NOT NULL,
    body text NOT NULL,
    state text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'delivered', 'failed', 'disabled')),
    attempts text[] NOT NULL DEFAULT '{}',
    created_at_ms bigint NOT NULL,
    next_attempt_at_ms bigint NOT NULL,
    lease_until_ms bigint NOT NULL DEFAULT 0
  )`,
  `CREATE INDEX deliveries_by_task ON deliveries (task_id)`,
  `CREATE INDEX deliveries_due ON deliveries (next_attempt_at_ms) WHERE state = 'pending'`,

  `CREATE TABLE webhook_secrets (
    number bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    account_id text NOT NULL,
    secret text NOT NULL,
    expires_at_ms bigint,
    UNIQUE (account_id, secret)
  )`,

  `CREATE TABLE interactions (
    account_id text NOT NULL,
    id text NOT NULL,
    vendor text NOT NULL,
    vendor_key text NOT NULL,
    upstream_id text NOT NULL,
    model text NOT NULL,
    created_at_ms bigint NOT NULL,
    expires_at_ms bigint NOT NULL,
    PRIMARY KEY (account_id, id)
  )`,
  `CREATE INDEX interactions_by_expiry ON interactions (expires_at_ms)`,
]
