/**
 * Measures queries of usage. Usage: node bench/usage.mjs [records; default 1,000,000] [sqlite|postgres; default both] [file].
 * A SQLite file is kept, and can be queried again without filling it.
 * The records are of the last 30 days, 200 accounts, 1,000 keys and 20 models, created by the database itself, and added up day by
 * day like `signalbox usage rebuild`. For each query it prints the median of 9 times, the processor time of this process, and the longest
 * time for which the event loop of this process did nothing else.
 */
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { postgresStore } from '../dist/postgres.js'
import { sqliteStore } from '../dist/sqlite.js'
import { postgresProgram, startPostgresServer } from './postgres-server.mjs'
import { quantile } from './statistics.mjs'

const RECORDS = Number(process.argv[2] ?? 1_000_000)
const WANTED = process.argv[3] ?? 'both'
const FILE = process.argv[4]
const DAY_MS = 86_400_000
const DAYS = 30
const END_MS = Math.floor(Date.now() / DAY_MS) * DAY_MS
const START_MS = END_MS - DAYS * DAY_MS
const REPEATS = 9

/** Each key calls each model. */
const KEY = 'n * 7919 + n / 1000'

/** The columns of a record of which `n` counts from 0; `hash` and `mod` are the database's. */
const recordColumns = (text, mod) => ({
  id: `'req_' || ${text('n')}`,
  account_id: `'acct_' || ${text(mod(KEY, 200))}`,
  key_id: `'key_' || ${text(mod(KEY, 1000))}`,
  end_user: `'user_' || ${text(mod('n', 5000))}`,
  tags: `'team:' || ${text(mod('n', 7))} || ',beta'`,
  endpoint: `'chat'`,
  model: `'model_' || ${text(mod('n * 104729', 20))}`,
  requested_model: `'model_' || ${text(mod('n * 104729', 20))}`,
  vendor: `'vendor_' || ${text(mod('n * 104729', 4))}`,
  credential_id: `'vendor:0123456789ab'`,
  ending: `CASE WHEN ${mod('n', 50)} = 0 THEN 'failed' ELSE 'completed' END`,
  status: `CASE WHEN ${mod('n', 50)} = 0 THEN 503 ELSE 200 END`,
  is_stream: mod('n', 2),
  is_estimated: '0',
  duration_ms: `200 + ${mod('n', 5000)}`,
  first_byte_ms: `100 + ${mod('n', 900)}`,
  due: `1000000 + ${mod('n', 9999)}`,
  charged: `1000000 + ${mod('n', 9999)}`,
  input_tokens: `100 + ${mod('n', 3000)}`,
  output_tokens: `20 + ${mod('n', 800)}`,
})
const spaced = (type) => `${START_MS} + n * CAST(${DAYS * DAY_MS} AS ${type}) / ${RECORDS}`

function fillSqlite(database) {
  const columns = recordColumns(
    (value) => `(${value})`,
    (value, count) => `(${value}) % ${count}`,
  )
  const names = Object.keys(columns).join(', ')
  database.exec(`INSERT INTO signalbox_usage (${names}, ended_at_ms)
    WITH RECURSIVE counted(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM counted WHERE n < ${RECORDS - 1})
    SELECT ${Object.values(columns).join(', ')}, ${spaced('INTEGER')} FROM counted`)
  database.exec('UPDATE signalbox_usage_mark SET mark = (SELECT max(number) FROM signalbox_usage)')
}

async function openSqlite() {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-bench-'))
  const path = FILE ?? join(folder, 'usage.db')
  const isFilled = existsSync(path)
  const store = sqliteStore({ path, clock: 'caller' })
  await store.start()
  const { DatabaseSync } = await import('@photostructure/sqlite')
  const database = new DatabaseSync(path)
  if (!isFilled) fillSqlite(database)
  const statement = database.prepare('PRAGMA page_count')
  return {
    store,
    isAddedUp: isFilled,
    bytes: () => statement.get().page_count * 4096,
    async close() {
      database.close()
      await store.close()
      rmSync(folder, { recursive: true })
    },
  }
}

async function openPostgres() {
  const server = await startPostgresServer()
  const { default: pg } = await import('pg')
  const pool = new pg.Pool({ connectionString: server.url, max: 4 })
  const store = postgresStore({ pool, statementTimeoutMs: 600_000 })
  await store.start()
  const columns = recordColumns(
    (value) => `(${value})::text`,
    (value, count) => `((${value}) % ${count})`,
  )
  const names = Object.keys(columns).join(', ')
  await pool.query(`INSERT INTO signalbox.usage_records (${names}, ended_at_ms)
    SELECT ${Object.values(columns).join(', ')}, ${spaced('bigint')}
    FROM generate_series(0::bigint, ${RECORDS - 1}) AS counted(n)`)
  await pool.query('UPDATE signalbox.usage_mark SET mark = (SELECT max(tx) + 1 FROM signalbox.usage_records)')
  return {
    store,
    tidy: () => pool.query('VACUUM ANALYZE'),
    async bytes() {
      const { rows } = await pool.query("SELECT pg_total_relation_size('signalbox.usage_records')::float8 AS bytes")
      return rows[0].bytes
    },
    async close() {
      await store.close()
      await pool.end()
      await server.stop()
    },
  }
}

const whole = { fromMs: START_MS, untilMs: END_MS, groupBy: [], filter: {}, limit: 100_000 }
const page = { fromMs: 0, untilMs: END_MS * 2, after: undefined, limit: 50 }
const middle = { endedAtMs: START_MS + 15 * DAY_MS, number: 1n }

/** The queries of an operator's overview, and those of an account. */
const QUESTIONS = {
  'month by day and model': (usage) => usage.series({ ...whole, source: 'hours', step: 'day', groupBy: ['model'] }),
  'the same, from sums by day and account': (usage) =>
    usage.series({ ...whole, source: 'days', step: 'day', groupBy: ['model'] }),
  'month by hour': (usage) => usage.series({ ...whole, source: 'hours', step: 'hour' }),
  'month by account': (usage) => usage.series({ ...whole, source: 'days', groupBy: ['account'] }),
  'month of one account by day and key': (usage) =>
    usage.series({ ...whole, source: 'days', step: 'day', groupBy: ['key'], filter: { account: 'acct_7' } }),
  'month of one account by end user, from records': (usage) =>
    usage.series({ ...whole, source: 'records', groupBy: ['endUser'], filter: { account: 'acct_7' } }),
  'month of one account by day and tag, from records': (usage) =>
    usage.series({ ...whole, source: 'records', step: 'day', groupBy: ['tag'], filter: { account: 'acct_7' } }),
  'newest 50': (usage) => usage.records({ ...page, accountId: undefined }),
  'newest 50 of an account': (usage) => usage.records({ ...page, accountId: 'acct_7' }),
  'page in the middle': (usage) => usage.records({ ...page, accountId: undefined, after: middle }),
}

async function measure(name, open) {
  let began = performance.now()
  const { store, isAddedUp = false, bytes, tidy, close } = await open()
  const made = performance.now() - began
  began = performance.now()
  for (let atMs = START_MS; atMs < END_MS && !isAddedUp; atMs += DAY_MS)
    await store.usage.rebuild({ fromMs: atMs, untilMs: atMs + DAY_MS })
  const addedUp = performance.now() - began
  await tidy?.()
  console.log(
    `${name}: ${RECORDS} records in ${(made / 1000).toFixed(1)} s, added up in ${(addedUp / 1000).toFixed(1)} s`,
  )
  console.log(`  ${Math.round((await bytes()) / RECORDS)} bytes a record, indexes included`)
  for (const [question, ask] of Object.entries(QUESTIONS)) {
    const times = []
    let rows = 0
    const delay = monitorEventLoopDelay({ resolution: 1 })
    await ask(store.usage)
    delay.enable()
    const cpuBefore = process.cpuUsage()
    for (let repeat = 0; repeat < REPEATS; repeat++) {
      const askedAt = performance.now()
      const answer = await ask(store.usage)
      times.push(performance.now() - askedAt)
      rows = (answer.records ?? answer).length
      await new Promise((resolve) => setImmediate(resolve))
    }
    const { user, system } = process.cpuUsage(cpuBefore)
    const cpu = (user + system) / 1000 / REPEATS
    delay.disable()
    const median = quantile(
      times.sort((one, other) => one - other),
      0.5,
    )
    console.log(
      `  ${question}: ${median.toFixed(1)} ms (${cpu.toFixed(1)} ms of this process), ${rows} rows, event loop ${(delay.max / 1e6).toFixed(1)} ms at most`,
    )
  }
  await close()
}

if (WANTED !== 'postgres') await measure('SQLite', openSqlite)
if (WANTED !== 'sqlite' && postgresProgram('postgres') !== undefined) await measure('PostgreSQL', openPostgres)
