// Time of the PostgreSQL store at volume.
//
//   node bench/postgres-volume.mjs [rows] [url] [step|measure]
//
// Run it after a build. The server creates 2,000,000 lines of the journal and as many records of usage by default, as 90 days of 1,000 accounts
// would have, a few of which make most calls. Takes 1 kB of disk a row. Then the store reserves and settles, and answers the queries of
// callers, operators and the console. Prints each result as JSON: the time of a call and the pages of 8 kB that the server read. With a URL
// of a server on this machine, the rows stay in that database, and the next run adds only those that are missing; `step` adds half a million.
import { readFileSync } from 'node:fs'
import { performance } from 'node:perf_hooks'
import pg from 'pg'
import { importBuilt } from './built.mjs'
import { startPostgresServer } from './postgres-server.mjs'
import { processTreeUsage } from './process-tree.mjs'
import { quantile } from './statistics.mjs'

const ROWS = Number(process.argv[2] ?? 2_000_000)
const URL_OF_DATABASE = process.argv[3]
const PART = process.argv[4]
const ROWS_PER_STEP = 500_000
const DAY_MS = 86_400_000
const DAYS = 90
/** A fixed day, so that a later run continues with the same rows. */
const END_MS = Date.UTC(2026, 10, 1)
const START_MS = END_MS - DAYS * DAY_MS
/** Pairs of a reservation and a settlement with its record. */
const PAIRS = 4_000
const PARALLEL = 32
const REPEATS = 3
const SETTINGS = ['shared_buffers=512MB', 'max_wal_size=4GB', 'checkpoint_timeout=15min']

const { postgresStore } = await importBuilt('postgres')
const server = URL_OF_DATABASE === undefined ? await startPostgresServer(SETTINGS) : undefined
const pool = new pg.Pool({ connectionString: URL_OF_DATABASE ?? server.url, max: 40 })
/** Statements of the current query, each with its values. */
const sent = []
const store = storeOn('signalbox')
await store.start()
if (PART !== 'measure') await fill()
if (PART === undefined || PART === 'measure') await measure()
await store.close()
await pool.end()
await server?.stop()

function storeOn(schema) {
  const database = {
    query(text, values) {
      sent.push([text, values])
      return pool.query(text, values)
    },
    async transaction(run) {
      const client = await pool.connect()
      try {
        await client.query('BEGIN')
        const value = await run(client)
        await client.query('COMMIT')
        return value
      } finally {
        client.release()
      }
    },
  }
  return postgresStore({ pool: database, schema, statementTimeoutMs: 3_600_000, clock: 'caller' })
}

/** Adds calls: each has a line of the journal and a record. The server adds the records to the sums, as after real calls. */
async function fill() {
  await pool.query(`INSERT INTO signalbox.accounts (id, tier, billing, balance, created_at_ms)
    SELECT 'acct_' || n, 'paid', 'prepaid', 1000000000000000, ${START_MS} FROM generate_series(0, 999) n ON CONFLICT DO NOTHING`)
  await pool.query(`INSERT INTO signalbox.key_spending (key_id) SELECT 'key_' || n || '_' || k
    FROM generate_series(0, 999) n, generate_series(0, 2) k ON CONFLICT DO NOTHING`)
  const { rows } = await pool.query('SELECT count(*)::float8 AS count FROM signalbox.usage_records')
  for (let first = rows[0].count; first < ROWS; first += ROWS_PER_STEP) {
    const beganAt = performance.now()
    await addCalls(first, Math.min(ROWS, first + ROWS_PER_STEP) - 1)
    const addedAt = performance.now()
    await store.usage.rollUp(500, END_MS)
    const [insertMs, rollUpMs] = [addedAt - beganAt, performance.now() - addedAt].map(Math.round)
    print({ filled: Math.min(ROWS, first + ROWS_PER_STEP), insertMs, rollUpMs })
    if (PART === 'step') return
  }
}

/** Adds the calls with these numbers in one transaction, as the functions of the store would. */
async function addCalls(first, last) {
  // The cube of a number below 1 is mostly small, so account 0 makes a tenth of all calls.
  // Without the checks of foreign keys, which would take a fifth of the time.
  await pool.query(`BEGIN; SET LOCAL session_replication_role = replica; WITH drawn AS MATERIALIZED (
      SELECT n, floor(1000 * power((hashint8(n)::float8 + 2147483648) / 4294967296, 3))::int AS account,
        abs(hashint8(n * 31 + 7)::bigint) AS dice, ${START_MS} + (n * (${DAYS * DAY_MS}::float8 / ${ROWS}))::bigint AS at_ms
      FROM generate_series(${first}::bigint, ${last}::bigint) n
    ), call AS MATERIALIZED (
      SELECT n, 'chat_' || lpad(to_hex(at_ms), 12, '0') || substr(md5(n::text), 1, 20) AS id, at_ms,
        'acct_' || account AS account, 'key_' || account || '_' || dice % 3 AS key, 'model-' || dice % 20 AS model,
        'vendor-' || dice % 4 AS vendor, 100 + dice % 3000 AS input, 20 + dice % 800 AS output,
        1000000 + dice % 9999000 AS due, dice
      FROM drawn
    ), written AS (
      INSERT INTO signalbox.usage_records (id, account_id, key_id, end_user, tags, endpoint, model, requested_model, vendor,
        credential_id, vendor_request_id, ending, status, is_stream, is_estimated, duration_ms, first_byte_ms, ended_at_ms, due,
        charged, input_tokens, output_tokens)
      SELECT id, account, key, 'user-' || dice % 5000, 'team:' || dice % 7 || ',beta', 'chat', model, model, vendor,
        vendor || ':0123456789ab', 'req_' || md5(id), 'completed', 200, dice % 2, 0, 200 + dice % 5000, 100 + dice % 900, at_ms,
        due, due, input, output
      FROM call ORDER BY n
    )
    INSERT INTO signalbox.entries (account_id, kind, amount, hold_id, description, created_at_ms, due, balance_after, owed_after,
      details, key_id, period)
    SELECT account, 'charge', -due, id, 'chat ' || model, at_ms, due, 1000000000000000 - n * 1000, 0,
      json_build_object('keyId', key, 'endpoint', 'chat', 'model', model, 'vendor', vendor,
        'usage', json_build_object('inputTokens', input, 'outputTokens', output))::text,
      key, signalbox.period_of(at_ms)
    FROM call ORDER BY n; COMMIT`)
}

async function measure() {
  await timed('vacuum and analyze after the filling', () => pool.query('VACUUM ANALYZE'))
  const { rows } =
    await pool.query(`SELECT relname AS table, pg_table_size(oid)::float8 AS heap, pg_indexes_size(oid)::float8 AS indexes
    FROM pg_class WHERE relnamespace = 'signalbox'::regnamespace AND relname IN ('entries', 'usage_records', 'usage_days')`)
  for (const { table, heap, indexes } of rows)
    print({ table, heapMegabytes: round(heap / 1e6), indexMegabytes: round(indexes / 1e6) })
  const empty = storeOn('signalbox_empty')
  await empty.start()
  await pool.query(`INSERT INTO signalbox_empty.accounts (id, tier, billing, balance, created_at_ms)
    SELECT id, tier, billing, balance, created_at_ms FROM signalbox.accounts ON CONFLICT DO NOTHING`)
  // The first run of each loads its functions and pages.
  const stores = [
    ['empty', empty],
    ['filled', store],
  ]
  for (const isMeasured of [false, true, true])
    for (const [name, filled] of stores) await measurePairs(isMeasured ? name : undefined, filled)
  await empty.close()
  await measureQueries()
  await measureRetention()
}

/** Reserves and settles with records, on accounts drawn as in the filling. Prints nothing without a name. */
async function measurePairs(name, { ledger }) {
  let next = 0
  const run = `${Date.now().toString(16)}_`
  const nowMs = await lastMs()
  const lane = async () => {
    while (next < PAIRS) {
      const index = next++
      const number = Math.floor(1_000 * ((index * 0.618_033_988) % 1) ** 3)
      const [holdId, accountId, keyId] = [`chat_${run}${index}`, `acct_${number}`, `key_${number}_${index % 3}`]
      const usage = { inputTokens: 500 + (index % 100), outputTokens: 100 }
      const record = {
        ...{
          id: holdId,
          accountId,
          keyId,
          endUser: `user-${index % 5_000}`,
          tags: ['team:a', 'beta'],
          endpoint: 'chat',
        },
        ...{ model: 'model-1', requestedModel: 'model-1', vendor: 'vendor-1', credentialId: 'vendor-1:0123456789ab' },
        ...{ vendorRequestId: `req_${run}${index}`, ending: 'completed', status: 200, code: undefined, isStream: true },
        ...{ usage, isEstimated: false, durationMs: 900, firstByteMs: 200, attempts: undefined },
      }
      const details = { keyId, endpoint: 'chat', model: 'model-1', vendor: 'vendor-1', usage }
      await ledger.reserve({ holdId, accountId, keyId, amount: 2_000_000n, expiresAtMs: nowMs + 900_000 }, nowMs)
      await ledger.settle({ holdId, amount: 1_000_000n, description: 'chat model-1', details, record }, nowMs)
    }
  }
  await pool.query('CHECKPOINT')
  const cpuBefore = await cpuMicroseconds()
  const beganAt = performance.now()
  await Promise.all(Array.from({ length: PARALLEL }, lane))
  const tookMs = performance.now() - beganAt
  const cpuOfServerUs = Math.round(((await cpuMicroseconds()) - cpuBefore) / PAIRS)
  if (name !== undefined) print({ pairs: name, perSecond: Math.round((PAIRS / tookMs) * 1_000), cpuOfServerUs })
}

/** CPU time of all processes of the server so far. */
async function cpuMicroseconds() {
  const { rows } = await pool.query("SELECT split_part(pg_read_file('postmaster.pid'), chr(10), 1)::int AS pid")
  return processTreeUsage(rows[0].pid).cpuMicroseconds
}

/** Time of the newest record of the filling. */
async function lastMs() {
  const { rows } = await pool.query('SELECT max(ended_at_ms)::float8 AS last FROM signalbox.usage_records')
  return rows[0].last ?? END_MS
}

async function measureQueries() {
  const { ledger, usage } = store
  const endMs = Math.ceil((await lastMs()) / DAY_MS) * DAY_MS
  const month = { fromMs: endMs - 30 * DAY_MS, untilMs: endMs }
  const newest = { fromMs: 0, untilMs: endMs, order: 'newest', after: undefined }
  const records = { fromMs: 0, untilMs: endMs, accountId: undefined, after: undefined, limit: 50 }
  const series = { ...month, groupBy: [], filter: {}, limit: 100_000 }
  const [BUSY, QUIET] = ['acct_0', 'acct_900']
  const middle = { createdAtMs: endMs - 15 * DAY_MS, number: 0n }
  const { rows } = await pool.query(
    `SELECT id::text, hold_id FROM signalbox.entries WHERE account_id = $1 AND created_at_ms >= $2 AND kind = 'charge'
    ORDER BY created_at_ms LIMIT 1`,
    [BUSY, endMs - 3 * DAY_MS],
  )
  const [{ id: chargeId, hold_id: holdId }] = rows
  // A call of three days ago whose settlement is repeated.
  await pool.query(
    `INSERT INTO signalbox.holds (id, account_id, key_id, amount, status, expires_at_ms, is_metered, period, created_at_ms)
    VALUES ($1, $2, 'key_0_0', 0, 'settled', $3, false, 0, 0) ON CONFLICT DO NOTHING`,
    [holdId, BUSY, endMs],
  )
  const thresholds = { caps: [0.8], balance: [0.2] }
  const queries = {
    'newest 100 lines of the busiest account': () => ledger.entries(BUSY, 100),
    'page of 1,000 lines, from the middle of a month': () =>
      ledger.lines({ ...month, accountId: BUSY, order: 'oldest', after: middle, limit: 1_000 }),
    'newest 50 lines of a quiet account': () => ledger.lines({ ...newest, accountId: QUIET, limit: 50 }),
    'sums of a month of the busiest account': () => ledger.sums({ ...month, accountId: BUSY }),
    'sums of a month of a quiet account': () => ledger.sums({ ...month, accountId: QUIET }),
    'look-up of a refund': () =>
      ledger.refund({ refundId: `refund_${holdId}`, chargeId, amount: 1n, description: 'refund' }, endMs),
    'repeated settlement, three days later, busiest account': () =>
      ledger.settle({ holdId, amount: 1n, description: 'chat', thresholds }, endMs),
    'open holds, first page': () => ledger.openHolds({ accountId: undefined, after: undefined, limit: 101 }),
    'accounts by a part of their id': () => ledger.listAccounts({ search: '_99', limit: 51 }),
    'spending of an account': () => ledger.spending(BUSY, ['key_0_0', 'key_0_1']),
    'newest 50 records': () => usage.records(records),
    'newest 50 records of a quiet account': () => usage.records({ ...records, accountId: QUIET }),
    '50 records from the middle': () =>
      usage.records({ ...records, after: { endedAtMs: endMs - 15 * DAY_MS, number: 1n } }),
    '1,000 records of the busiest account': () => usage.records({ ...records, accountId: BUSY, limit: 1_000 }),
    'month by day and model': () => usage.series({ ...series, source: 'hours', step: 'day', groupBy: ['model'] }),
    'month by account': () => usage.series({ ...series, source: 'days', groupBy: ['account'] }),
    'month of an account by day and key': () =>
      usage.series({ ...series, source: 'days', step: 'day', groupBy: ['key'], filter: { account: BUSY } }),
    'month of a quiet account by end user, from records': () =>
      usage.series({ ...series, source: 'records', groupBy: ['endUser'], filter: { account: QUIET } }),
    'month of the busiest account by end user, from records': () =>
      usage.series({ ...series, source: 'records', groupBy: ['endUser'], filter: { account: BUSY } }),
    'day of all accounts by end user, from records': () =>
      usage.series({ ...series, fromMs: endMs - DAY_MS, source: 'records', groupBy: ['endUser'] }),
    'addition of the newest records to the sums': () => usage.rollUp(500, endMs),
    'verification of a day': () => usage.verify({ fromMs: endMs - 2 * DAY_MS, untilMs: endMs - DAY_MS }),
  }
  for (const [query, ask] of Object.entries(queries)) print({ query, ...(await measureQuery(ask)) })
}

/** Returns the best time of a query, and what the server says about its slowest statement. */
async function measureQuery(ask) {
  const times = []
  for (let repeat = 0; repeat < REPEATS; repeat++) {
    sent.length = 0
    const beganAt = performance.now()
    await ask()
    times.push(performance.now() - beganAt)
  }
  let [pages, nodes] = [0, new Set()]
  const client = await pool.connect()
  for (const [text, values] of sent.slice()) {
    await client.query('BEGIN')
    const { rows } = await client.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${text}`, values)
    await client.query('ROLLBACK')
    const [{ Plan: plan }] = rows[0]['QUERY PLAN']
    pages += plan['Shared Hit Blocks'] + plan['Shared Read Blocks']
    for (const name of scansOf(plan)) nodes.add(name)
  }
  client.release()
  return { firstMs: round(times[0]), bestMs: round(Math.min(...times)), pages, scans: [...nodes].join(', ') }
}

/** Tables and indexes that a plan scans. */
function scansOf({ 'Node Type': type, 'Relation Name': table, 'Index Name': index, Plans: plans = [] }) {
  const own = type.includes('Scan') && (index ?? table) !== undefined ? [`${type} ${index ?? table}`] : []
  return [...own, ...plans.flatMap(scansOf)]
}

/** Deletes a day of records as a gateway does, and vacuums the table. */
async function measureRetention() {
  const { rows } = await pool.query('SELECT min(ended_at_ms)::float8 AS first FROM signalbox.usage_records')
  const recordsUntilMs = (Math.floor(rows[0].first / DAY_MS) + 1) * DAY_MS
  const [beganAt, steps] = [performance.now(), []]
  let deleted = 0
  for (let count = 500; count === 500; deleted += count) {
    const stepBeganAt = performance.now()
    count = await store.usage.forget({ recordsUntilMs, hoursUntilMs: undefined, daysUntilMs: undefined, limit: 500 })
    steps.push(performance.now() - stepBeganAt)
  }
  const tookMs = performance.now() - beganAt
  steps.sort((one, other) => one - other)
  const rowsPerSecond = Math.round((deleted / tookMs) * 1_000)
  print({ retention: 'a day of records', deleted, rowsPerSecond, stepP99Ms: round(quantile(steps, 0.99)) })
  await timed('vacuum of the records', () => pool.query('VACUUM signalbox.usage_records'))

  // The statement of the page, for the charges before the middle of the rows.
  const day = new Date(recordsUntilMs + ((await lastMs()) - recordsUntilMs) / 2).toISOString().slice(0, 10)
  const statement = /```sql\n(DO [\s\S]*?)```/.exec(
    readFileSync(new URL('../docs/scaling.md', import.meta.url), 'utf8'),
  )[1]
  const count = async () => (await pool.query('SELECT count(*)::float8 AS count FROM signalbox.entries')).rows[0].count
  const before = await count()
  const statementBeganAt = performance.now()
  await pool.query(statement.replace('2026-01-01', day))
  const seconds = (performance.now() - statementBeganAt) / 1_000
  const lines = before - (await count())
  print({ retention: `charges before ${day}`, deleted: lines, rowsPerSecond: Math.round(lines / seconds) })
  await timed('vacuum of the journal', () => pool.query('VACUUM signalbox.entries'))
}

async function timed(work, run) {
  const beganAt = performance.now()
  await run()
  print({ work, seconds: round((performance.now() - beganAt) / 1_000) })
}

function round(value) {
  return Math.round(value * 10) / 10
}

function print(result) {
  console.log(JSON.stringify(result))
}
