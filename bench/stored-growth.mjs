// Growth of each table of a store with the number of calls.
//
//   node bench/stored-growth.mjs [calls]
//
// Run it after a build. Small chats of 1,000 accounts with 2 keys each run through a gateway with 500 models, 20,000 by default, and are
// charged and recorded. Prints for each store and table as JSON the rows and the bytes that each call added, and the bytes of a row, indexes
// included. Tables with a row for each account, key or group of calls have no bytes a call. PostgreSQL is included if it is installed.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { importBuilt } from './built.mjs'
import { CHAT, openChatGateway } from './in-process-chat.mjs'
import { sendOnce } from './in-process-rounds.mjs'
import { postgresProgram, startPostgresServer } from './postgres-server.mjs'

const CALLS = Number(process.argv[2] ?? 20_000)
/** Calls before the first measurement: one of each key, so that later calls add no rows of keys, accounts and sums. */
const FIRST_CALLS = 2_000
const PARALLEL = 32
const ACCOUNTS = Array.from({ length: FIRST_CALLS / 2 }, (_, index) => `acct_growth_${index}`)
const KEYS = ACCOUNTS.flatMap((account, index) =>
  [0, 1].map((second) => ({ key: `sk-growth-0123456789-${index}-${second}`, account })),
)
const MODELS = Array.from({ length: 500 }, (_, index) => `bench-chat-${index}`)
const BODY = Buffer.concat(CHAT.chunks).toString()
const BODIES = MODELS.map((model) => Buffer.from(JSON.stringify({ ...JSON.parse(BODY), model })))
const MODEL = { kind: 'chat', vendor: 'openai', upstream: 'gpt-4.1-mini', limits: { maxOutputTokens: 1000 } }
const METERS = [
  { meter: 'input_token', amount: '1.00', per: 1_000_000 },
  { meter: 'output_token', amount: '4.00', per: 1_000_000 },
]
/** Fewest rows of which the bytes of a row are printed. */
const MIN_ROWS = 100

await measureSqlite()
if (postgresProgram('postgres') === undefined) console.log('PostgreSQL is not installed')
else await measurePostgres()

async function measureSqlite() {
  const { sqliteStore } = await importBuilt('sqlite')
  const { DatabaseSync } = await import('@photostructure/sqlite')
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-growth-'))
  const database = new DatabaseSync(join(folder, 'growth.db'))
  const sizes = database.prepare(`SELECT s.tbl_name AS name, sum(d.pgsize) AS bytes
    FROM dbstat('main', 1) d JOIN sqlite_schema s ON s.name = d.name WHERE s.tbl_name LIKE 'signalbox%' GROUP BY s.tbl_name`)
  await measure('sqlite', sqliteStore({ database }), () =>
    sizes.all().map(({ name, bytes }) => {
      const { count } = database.prepare(`SELECT count(*) AS count FROM ${name}`).get()
      return { name, rows: Number(count), bytes: Number(bytes) }
    }),
  )
  database.close()
  rmSync(folder, { recursive: true })
}

async function measurePostgres() {
  const { postgresStore } = await importBuilt('postgres')
  const { Pool } = (await import('pg')).default
  const server = await startPostgresServer()
  const pool = new Pool({ connectionString: server.url })
  const store = postgresStore({ pool })
  await store.start()
  // Dead rows are reused as on a server that runs for days, although these calls take a minute only.
  await pool.query("ALTER SYSTEM SET autovacuum_naptime = '1s'")
  await pool.query('SELECT pg_reload_conf()')
  await measure('postgres', store, async () => {
    const { rows: tables } = await pool.query(
      `SELECT c.relname AS name, pg_total_relation_size(c.oid)::float8 AS bytes FROM pg_class c
       WHERE c.relnamespace = 'signalbox'::regnamespace AND c.relkind = 'r' ORDER BY 1`,
    )
    const counted = tables.map(async ({ name, bytes }) => {
      const { rows } = await pool.query(`SELECT count(*)::float8 AS count FROM signalbox.${name}`)
      return { name, rows: rows[0].count, bytes }
    })
    return await Promise.all(counted)
  })
  await pool.end()
  await server.stop()
}

/** Runs the calls through a gateway on a store, and prints how `tablesOf` differs before and after them. */
async function measure(name, store, tablesOf) {
  const gateway = await openChatGateway({
    store,
    keys: [...KEYS, { key: 'sk-growth-unused-0123456789', account: 'bench' }],
    models: MODELS.map((id) => ({ ...MODEL, id })),
    prices: { currency: 'USD', prices: MODELS.flatMap((model) => METERS.map((row) => ({ ...row, model }))) },
  })
  for (const account of ACCOUNTS) await gateway.accounts.credit(account, '1000')
  await chats(gateway, FIRST_CALLS)
  const before = new Map((await tablesOf()).map((table) => [table.name, table]))
  await chats(gateway, CALLS)
  const now = await tablesOf()
  const tables = now
    .map((table) => {
      const { rows, bytes } = before.get(table.name) ?? { rows: 0, bytes: 0 }
      const [moreRows, moreBytes] = [table.rows - rows, table.bytes - bytes]
      return {
        table: table.name,
        rowsPerCall: round(moreRows / CALLS),
        bytesPerCall: moreRows < CALLS ? undefined : Math.round(moreBytes / CALLS),
        bytesPerRow: table.rows < MIN_ROWS ? undefined : Math.round(table.bytes / table.rows),
      }
    })
    .filter(({ bytesPerRow }) => bytesPerRow !== undefined)
  for (const table of tables) console.log(JSON.stringify({ store: name, ...table }))
  const total = tables.reduce((sum, { bytesPerCall = 0 }) => sum + bytesPerCall, 0)
  console.log(JSON.stringify({ store: name, table: 'all', calls: CALLS, bytesPerCall: total }))
  await gateway.close({ drainMs: 0 })
}

/** Sends chats of all keys in turn, and adds them to the sums of usage. */
async function chats(gateway, count) {
  let next = 0
  const lane = async () => {
    while (next < count) {
      const { key } = KEYS[next % KEYS.length]
      const chunks = [BODIES[next % BODIES.length]]
      next += 1
      await sendOnce(gateway, { ...CHAT, chunks, headers: { authorization: `Bearer ${key}` } })
    }
  }
  await Promise.all(Array.from({ length: PARALLEL }, lane))
  await gateway.usage.query({ from: Date.now() - 3_600_000 })
}

function round(value) {
  return Math.round(value * 100) / 100
}
