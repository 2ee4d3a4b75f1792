import { addToSums, RECORD_COLUMNS, ROLL_UP_TABLES, ROLL_UPS } from '../../usage-columns.ts'

/** Columns of every table of sums in version 1. */
const SUMS = `
    requests bigint NOT NULL, failed bigint NOT NULL, abandoned bigint NOT NULL, estimated bigint NOT NULL,
    duration_ms bigint NOT NULL, due bigint NOT NULL, charged bigint NOT NULL,
    input_tokens bigint NOT NULL, cached_input_tokens bigint NOT NULL, cache_write_tokens bigint NOT NULL,
    cache_write_1h_tokens bigint NOT NULL, output_tokens bigint NOT NULL, reasoning_tokens bigint NOT NULL,
    input_image_tokens bigint NOT NULL, input_audio_tokens bigint NOT NULL, output_image_tokens bigint NOT NULL,
    images bigint NOT NULL, video_milliseconds bigint NOT NULL, characters bigint NOT NULL, web_searches bigint NOT NULL,
    audio_milliseconds bigint NOT NULL, search_units bigint NOT NULL, hook_units bigint NOT NULL`

/** Columns of the tables of sums that count latencies, in version 1. */
const LATENCIES = `
    d0 bigint NOT NULL, d1 bigint NOT NULL, d2 bigint NOT NULL, d3 bigint NOT NULL, d4 bigint NOT NULL,
    d5 bigint NOT NULL, d6 bigint NOT NULL, d7 bigint NOT NULL, d8 bigint NOT NULL, d9 bigint NOT NULL,
    d10 bigint NOT NULL, d11 bigint NOT NULL, d12 bigint NOT NULL, d13 bigint NOT NULL, d14 bigint NOT NULL,
    f0 bigint NOT NULL, f1 bigint NOT NULL, f2 bigint NOT NULL, f3 bigint NOT NULL, f4 bigint NOT NULL,
    f5 bigint NOT NULL, f6 bigint NOT NULL, f7 bigint NOT NULL, f8 bigint NOT NULL, f9 bigint NOT NULL,
    f10 bigint NOT NULL, f11 bigint NOT NULL, f12 bigint NOT NULL, f13 bigint NOT NULL, f14 bigint NOT NULL`

/** Key columns of the sums of all accounts together, after their time. */
const MODEL_KEY =
  'endpoint text COLLATE "C" NOT NULL, model text COLLATE "C" NOT NULL, vendor text COLLATE "C" NOT NULL'

/**
 * Statements that create version 1. The constraints are the last line of defense: whatever a program does, no balance falls below
 * zero, no hold is charged twice and no line of the journal changes. Times are Unix milliseconds, amounts nano-dollars.
 */
export const VERSION_1: readonly string[] = [
  // Spending of an account or a key: charges and open holds of a day (20261122) and of its month.
  `CREATE TYPE spending AS (
    period integer, charged_day bigint, charged_month bigint, held_day bigint, held_month bigint
  )`,
  // Room for the next version of a row in its page: balances change in place, without an index update. `funded`: balance and held
  // money after the latest credit. `journal_at_ms` and `first_expiry_ms`: newest line, and first expiry of a credit.
  `CREATE TABLE accounts (
    id text PRIMARY KEY,
    balance bigint NOT NULL DEFAULT 0 CHECK (balance >= 0),
    held bigint NOT NULL DEFAULT 0 CHECK (held >= 0),
    owed bigint NOT NULL DEFAULT 0 CHECK (owed >= 0),
    credit_held bigint NOT NULL DEFAULT 0 CHECK (credit_held >= 0),
    funded bigint NOT NULL DEFAULT 0,
    spending spending NOT NULL DEFAULT ROW(0, 0, 0, 0, 0),
    tier text NOT NULL CHECK (tier IN ('free', 'paid')),
    cap_amount bigint CHECK (cap_amount >= 0),
    cap_period text CHECK (cap_period IN ('day', 'month')),
    name text,
    plan text,
    billing text CHECK (billing IN ('prepaid', 'metered')),
    credit_limit bigint CHECK (credit_limit >= 0),
    frozen_at_ms bigint,
    frozen_reason text,
    created_at_ms bigint NOT NULL,
    journal_at_ms bigint NOT NULL DEFAULT 0,
    first_expiry_ms bigint,
    CHECK ((cap_amount IS NULL) = (cap_period IS NULL)),
    CHECK ((frozen_at_ms IS NULL) = (frozen_reason IS NULL))
  ) WITH (fillfactor = 50)`,
  `CREATE INDEX accounts_by_first_expiry ON accounts (first_expiry_ms) WHERE first_expiry_ms IS NOT NULL`,
  // Orders ids by their bytes, as in the other drivers, whatever the collation of the database.
  `CREATE INDEX accounts_in_order ON accounts (id COLLATE "C")`,

  // Includes keys that the host authenticates itself.
  `CREATE TABLE key_spending (
    key_id text PRIMARY KEY,
    period integer NOT NULL DEFAULT 0,
    spending spending NOT NULL DEFAULT ROW(0, 0, 0, 0, 0)
  ) WITH (fillfactor = 50)`,
  `CREATE INDEX key_spending_by_period ON key_spending (period)`,

  // A rejected reservation is a row too, so that the same id gets the same answer again.
  `CREATE TABLE holds (
    id text PRIMARY KEY,
    account_id text NOT NULL,
    key_id text NOT NULL,
    amount bigint NOT NULL CHECK (amount >= 0),
    status text NOT NULL CHECK (status IN ('held', 'settled', 'voided', 'expired', 'refused')),
    refusal text CHECK ((refusal IS NOT NULL) = (status = 'refused')),
    refused_by text,
    claim_account_id text,
    claim_key text,
    claim_fingerprint text,
    expires_at_ms bigint NOT NULL,
    is_metered boolean NOT NULL,
    period integer NOT NULL,
    created_at_ms bigint NOT NULL
  )`,
  `CREATE INDEX holds_open_by_expiry ON holds (expires_at_ms) WHERE status = 'held'`,
  `CREATE INDEX holds_refused_by_expiry ON holds (expires_at_ms) WHERE status = 'refused'`,
  `CREATE INDEX holds_ended_by_expiry ON holds (expires_at_ms) WHERE status IN ('settled', 'voided', 'expired')`,

  `CREATE TABLE claims (
    account_id text NOT NULL,
    key text NOT NULL,
    fingerprint text NOT NULL,
    expires_at_ms bigint NOT NULL,
    claimed_by text,
    answer_status integer,
    answer_headers text,
    answer_body bytea,
    PRIMARY KEY (account_id, key),
    CHECK ((answer_status IS NULL) = (answer_headers IS NULL) AND (answer_status IS NULL) = (answer_body IS NULL))
  )`,
  `CREATE INDEX claims_by_expiry ON claims (expires_at_ms)`,

  // The key and the period of a charge say where it counts.
  `CREATE TABLE entries (
    id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    account_id text NOT NULL REFERENCES accounts,
    kind text NOT NULL,
    amount bigint NOT NULL,
    owed bigint NOT NULL DEFAULT 0,
    hold_id text,
    credit_id text UNIQUE,
    operation_id text,
    charge_id bigint,
    description text NOT NULL,
    created_at_ms bigint NOT NULL,
    due bigint CHECK (due >= 0),
    balance_after bigint NOT NULL,
    owed_after bigint NOT NULL,
    details text,
    key_id text,
    period integer,
    CONSTRAINT entries_kinds CHECK ((kind = 'credit') = (credit_id IS NOT NULL) AND CASE kind
      WHEN 'credit' THEN amount > 0 AND owed = 0 AND hold_id IS NULL
      WHEN 'charge' THEN amount <= 0 AND owed = 0 AND hold_id IS NOT NULL
      WHEN 'owed' THEN amount = 0 AND owed > 0 AND hold_id IS NOT NULL
      WHEN 'repayment' THEN amount < 0 AND owed = amount AND hold_id IS NULL
      WHEN 'refund' THEN amount > 0 AND owed = 0 AND hold_id IS NOT NULL
      WHEN 'adjustment' THEN (owed = 0 AND amount <> 0 OR owed > 0 AND amount <= 0) AND hold_id IS NULL
      WHEN 'expiry' THEN amount < 0 AND owed = 0 AND hold_id IS NULL
      ELSE false
    END)
  )`,
  `CREATE INDEX entries_by_account ON entries (account_id, created_at_ms, id)`,
  `CREATE UNIQUE INDEX entries_charged_once ON entries (hold_id) WHERE kind = 'charge'`,
  `CREATE UNIQUE INDEX entries_by_operation ON entries (kind, operation_id) WHERE kind IN ('adjustment', 'refund')`,
  `CREATE INDEX entries_by_charge ON entries (charge_id) WHERE charge_id IS NOT NULL`,
  `CREATE FUNCTION refuse_change_of_journal() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    RAISE EXCEPTION 'the journal is append-only' USING ERRCODE = 'restrict_violation';
  END $$`,
  `CREATE TRIGGER entries_stay BEFORE UPDATE OR DELETE ON entries
    FOR EACH ROW EXECUTE FUNCTION refuse_change_of_journal()`,
  `CREATE TRIGGER entries_stay_all BEFORE TRUNCATE ON entries
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_of_journal()`,

  `CREATE TABLE expiring_credits (
    number bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    account_id text NOT NULL REFERENCES accounts,
    credit_id text NOT NULL,
    remaining bigint NOT NULL CHECK (remaining > 0),
    expires_at_ms bigint NOT NULL
  ) WITH (fillfactor = 50)`,
  `CREATE INDEX expiring_credits_by_account ON expiring_credits (account_id, expires_at_ms, number)`,

  // Result of claiming or reserving: a status, the replayed answer, the exceeded counter.
  `CREATE TYPE outcome AS (
    status text,
    counter text,
    answer_status integer,
    answer_headers text,
    answer_body bytea
  )`,

  `CREATE TABLE keys (
    hash text PRIMARY KEY,
    id text NOT NULL UNIQUE,
    account_id text NOT NULL,
    label text NOT NULL,
    scopes text NOT NULL,
    limits text,
    cap_amount bigint CHECK (cap_amount >= 0),
    cap_period text CHECK (cap_period IN ('day', 'month')),
    names_end_users smallint NOT NULL,
    tags text,
    replaces text,
    created_at_ms bigint NOT NULL,
    expires_at_ms bigint,
    revoked_at_ms bigint,
    CHECK ((cap_amount IS NULL) = (cap_period IS NULL))
  )`,
  `CREATE INDEX keys_by_account ON keys (account_id, created_at_ms, id COLLATE "C")`,
  `CREATE INDEX keys_by_time ON keys (created_at_ms, id COLLATE "C")`,

  // A lease of 0 means none. The collation orders ids by their bytes, as in the other drivers, whatever the database's own.
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
  `CREATE INDEX tasks_by_time ON tasks (created_at_ms, id)`,
  `CREATE INDEX tasks_by_state ON tasks (state, created_at_ms, id)`,
  `CREATE INDEX tasks_by_upstream ON tasks (account_id, upstream_id) WHERE upstream_id IS NOT NULL`,
  `CREATE INDEX tasks_due ON tasks (vendor_account, next_poll_at_ms) WHERE state IN ('queued', 'in_progress')`,
  `CREATE INDEX tasks_open_by_deadline ON tasks (deadline_at_ms)
    WHERE state IN ('submitting', 'unknown', 'queued', 'in_progress')`,
  `CREATE INDEX tasks_open_by_hold ON tasks (hold_id)
    WHERE state IN ('submitting', 'unknown', 'queued', 'in_progress')`,
  `CREATE INDEX tasks_ended ON tasks (updated_at_ms) WHERE state IN ('completed', 'failed', 'cancelled')`,

  // Number of tasks that all processes together leased in the window that begins then.
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
    lease_until_ms bigint NOT NULL DEFAULT 0,
    resent_at_ms bigint NOT NULL DEFAULT 0
  )`,
  `CREATE INDEX deliveries_by_task ON deliveries (task_id)`,
  `CREATE INDEX deliveries_by_account ON deliveries (account_id, created_at_ms, id)`,
  `CREATE INDEX deliveries_by_time ON deliveries (created_at_ms, id)`,
  `CREATE INDEX deliveries_by_state ON deliveries (state, created_at_ms, id)`,
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

  `CREATE TABLE files (
    id text NOT NULL,
    account_id text NOT NULL,
    purpose text NOT NULL,
    filename text NOT NULL,
    mime_type text,
    byte_length bigint NOT NULL,
    created_at_ms bigint NOT NULL,
    expires_at_ms bigint NOT NULL,
    PRIMARY KEY (account_id, id)
  )`,
  `CREATE INDEX files_by_time ON files (account_id, created_at_ms, id)`,
  `CREATE INDEX files_by_expiry ON files (expires_at_ms)`,
  `CREATE TABLE blobs (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text NOT NULL,
    is_whole boolean NOT NULL DEFAULT false,
    byte_length bigint NOT NULL DEFAULT 0,
    expires_at_ms bigint NOT NULL
  )`,
  `CREATE UNIQUE INDEX blobs_by_id ON blobs (id) WHERE is_whole`,
  `CREATE INDEX blobs_by_expiry ON blobs (expires_at_ms)`,
  `CREATE TABLE blob_rows (
    blob bigint NOT NULL REFERENCES blobs (number) ON DELETE CASCADE,
    place integer NOT NULL,
    bytes bytea NOT NULL,
    PRIMARY KEY (blob, place)
  )`,
  `CREATE TABLE batch_outcomes (
    batch_id text NOT NULL,
    line integer NOT NULL,
    is_answered integer NOT NULL,
    text text NOT NULL,
    usage text,
    amount text NOT NULL,
    expires_at_ms bigint NOT NULL,
    PRIMARY KEY (batch_id, line)
  )`,
  `CREATE INDEX batch_outcomes_by_expiry ON batch_outcomes (expires_at_ms)`,

  `CREATE TABLE audit (
    id text PRIMARY KEY,
    created_at_ms bigint NOT NULL,
    subject text,
    details text NOT NULL
  )`,
  `CREATE INDEX audit_by_time ON audit (created_at_ms, id COLLATE "C")`,
  `CREATE INDEX audit_by_subject ON audit (subject, created_at_ms, id COLLATE "C") WHERE subject IS NOT NULL`,
  `CREATE TABLE settings (
    name text PRIMARY KEY,
    value float8 NOT NULL
  )`,

  // Records of calls. Rows of different transactions do not become visible in the order of their numbers or times, so the mark of
  // the sums is a transaction id: a step counts the rows of transactions that ended before every running one began. Wide columns
  // come first, so that rows need little padding.
  `CREATE TABLE usage_records (
    number bigint GENERATED ALWAYS AS IDENTITY,
    tx bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint,
    ended_at_ms bigint NOT NULL, due bigint NOT NULL, charged bigint NOT NULL,
    status integer NOT NULL, duration_ms integer NOT NULL, first_byte_ms integer,
    input_tokens integer, cached_input_tokens integer, cache_write_tokens integer, cache_write_1h_tokens integer,
    output_tokens integer, reasoning_tokens integer, input_image_tokens integer, input_audio_tokens integer,
    output_image_tokens integer, images integer, video_milliseconds integer, characters integer, web_searches integer,
    audio_milliseconds integer, search_units integer, hook_units integer,
    is_stream smallint NOT NULL, is_estimated smallint NOT NULL,
    id text COLLATE "C" NOT NULL, account_id text COLLATE "C" NOT NULL, key_id text COLLATE "C" NOT NULL,
    end_user text COLLATE "C", tags text COLLATE "C", endpoint text COLLATE "C" NOT NULL, model text COLLATE "C" NOT NULL,
    requested_model text COLLATE "C" NOT NULL, vendor text COLLATE "C", credential_id text COLLATE "C",
    vendor_request_id text COLLATE "C", ending text COLLATE "C" NOT NULL, code text COLLATE "C", attempts text COLLATE "C"
  )`,
  `CREATE INDEX usage_records_by_time ON usage_records (ended_at_ms, number)`,
  `CREATE INDEX usage_records_by_account ON usage_records (account_id, ended_at_ms, number)`,
  `CREATE INDEX usage_records_by_tx ON usage_records (tx)`,
  `CREATE TABLE usage_hours (
    hour bigint NOT NULL, ${MODEL_KEY},${SUMS},${LATENCIES}, PRIMARY KEY (hour, endpoint, model, vendor)
  ) WITH (fillfactor = 70)`,
  `CREATE TABLE usage_model_days (
    day bigint NOT NULL, ${MODEL_KEY},${SUMS},${LATENCIES}, PRIMARY KEY (day, endpoint, model, vendor)
  ) WITH (fillfactor = 70)`,
  `CREATE TABLE usage_days (
    day bigint NOT NULL, account_id text COLLATE "C" NOT NULL, key_id text COLLATE "C" NOT NULL, ${MODEL_KEY},${SUMS},
    PRIMARY KEY (day, account_id, key_id, model, endpoint, vendor)
  ) WITH (fillfactor = 70)`,
  `CREATE TABLE usage_mark (mark bigint NOT NULL, as_of_ms bigint NOT NULL)`,
  `INSERT INTO usage_mark VALUES (0, 0)`,
]

/**
 * Statements of version 2: cheaper charges, because the index of credits leaves out the other lines, and sums of statements that
 * read only an index. Running processes of version 1 still call the functions `reserve` and `reserve_with_tasks`.
 */
export const VERSION_2: readonly string[] = [
  'ALTER TABLE entries DROP CONSTRAINT entries_credit_id_key',
  'CREATE UNIQUE INDEX entries_by_credit ON entries (credit_id) WHERE credit_id IS NOT NULL',
  'DROP INDEX entries_by_account',
  'CREATE INDEX entries_by_account ON entries (account_id, created_at_ms, id) INCLUDE (kind, amount, owed)',
]

/** Columns selected from a record. For a charged record, time and amounts are those of the charge. */
const CHOSEN = RECORD_COLUMNS.map((column) => {
  if (column === 'ended_at_ms') return 'coalesce(p_now, r.ended_at_ms)'
  if (column === 'due') return 'coalesce(p_due, r.due)'
  if (column === 'charged') return 'coalesce(p_charged, r.charged)'
  return `r.${column}`
}).join(', ')

/** Returns statements that add records to all sums. `condition` chooses the records. */
function addToAll(condition: string): string {
  return ROLL_UP_TABLES.map((table) => `${addToSums(table, 'usage_records', `usage_${table}`, condition)};`).join('\n')
}

const DELETE_SUMS = ROLL_UP_TABLES.map((table) => {
  const { keys, length } = ROLL_UPS[table]
  return `DELETE FROM usage_${table} WHERE ${keys[0]} >= p_from / ${length} AND ${keys[0]} < p_until / ${length};`
}).join('\n')

/** Functions of records and sums. */
export const USAGE_FUNCTIONS: readonly string[] = [
  `CREATE FUNCTION write_usage(p_records jsonb, p_now bigint, p_due bigint, p_charged bigint) RETURNS void
  LANGUAGE sql SET search_path FROM CURRENT AS $$
    INSERT INTO usage_records (${RECORD_COLUMNS.join(', ')})
    SELECT ${CHOSEN} FROM jsonb_populate_recordset(NULL::usage_records, p_records) AS r
  $$`,

  // One process counts at a time; the others find the mark locked, and have nothing to do.
  `CREATE FUNCTION roll_up_usage(p_limit integer, p_now bigint, OUT added bigint, OUT as_of bigint)
  LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
  DECLARE
    v_mark bigint;
    v_settled bigint;
    v_end bigint;
  BEGIN
    added := 0;
    SELECT m.mark, m.as_of_ms INTO v_mark, as_of FROM usage_mark m FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
      SELECT m.as_of_ms INTO as_of FROM usage_mark m;
      RETURN;
    END IF;
    v_settled := pg_snapshot_xmin(pg_current_snapshot())::text::bigint;
    -- The rows of one transaction are counted together, however many they are.
    SELECT u.tx + 1 INTO v_end FROM usage_records u WHERE u.tx >= v_mark AND u.tx < v_settled
    ORDER BY u.tx LIMIT 1 OFFSET p_limit - 1;
    v_end := coalesce(v_end, v_settled);
    SELECT count(*) INTO added FROM usage_records u WHERE u.tx >= v_mark AND u.tx < v_end;
    IF added > 0 THEN
      ${addToAll('tx >= v_mark AND tx < v_end')}
    END IF;
    -- What is not counted yet began after the mark; its first row tells up to when the sums are complete.
    as_of := greatest(as_of, coalesce(
      (SELECT u.ended_at_ms FROM usage_records u WHERE u.tx >= v_end ORDER BY u.tx LIMIT 1), p_now));
    UPDATE usage_mark m SET mark = v_end, as_of_ms = as_of;
  END $$`,

  // Counting is blocked meanwhile, so that no record is counted twice or lost.
  `CREATE FUNCTION rebuild_usage(p_from bigint, p_until bigint) RETURNS void
  LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
  DECLARE
    v_mark bigint;
  BEGIN
    SELECT m.mark INTO v_mark FROM usage_mark m FOR UPDATE;
    ${DELETE_SUMS}
    ${addToAll('ended_at_ms >= p_from AND ended_at_ms < p_until AND tx < v_mark')}
  END $$`,
]
