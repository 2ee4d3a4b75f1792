// A process that reserves and settles in PostgreSQL, without HTTP. Its argument is JSON: `url`; `schema`.
import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { importBuilt } from './built.mjs'
import { answerQuestions } from './child-process.mjs'

const HOLD = 1_000n
const HOLD_LIFE_MS = 900_000
const USAGE = { inputTokens: 220, outputTokens: 180 }

const { url, schema } = JSON.parse(process.argv[2])
const { postgresStore } = await importBuilt('postgres')
const pool = new pg.Pool({ connectionString: url })
const store = postgresStore({ pool, schema })

answerQuestions(
  {},
  {
    createAccounts: ({ accounts }) => createAccounts(accounts),
    run,
    close: async () => {
      await store.close()
      await pool.end()
    },
  },
)

async function createAccounts(accounts) {
  await store.start()
  await inParallel(32, accounts, async (id) => {
    const credit = { creditId: `credit_${id}`, accountId: id, amount: 10n ** 15n, description: 'bench' }
    await store.ledger.createAccount({ id }, Date.now())
    await store.ledger.credit(credit, Date.now())
  })
}

async function inParallel(width, items, run) {
  const left = items.values()
  const lane = async () => {
    for (const item of left) await run(item)
  }
  await Promise.all(Array.from({ length: width }, lane))
}

/** Reserves and settles for a time, `inFlight` calls at once. The accounts take turns. */
async function run({ accounts, inFlight, isRecording, charge, durationMs }) {
  const reserveTimes = []
  const pairTimes = []
  const charged = new Map()
  let next = Math.floor(Math.random() * accounts.length)
  const cpuBefore = process.cpuUsage()
  const startedAtMs = performance.now()
  const deadline = startedAtMs + durationMs
  const lane = async () => {
    while (performance.now() < deadline) {
      const accountId = accounts[next % accounts.length]
      next += 1
      const { reserveMs, pairMs } = await reserveAndSettle({ accountId, isRecording, charge })
      reserveTimes.push(reserveMs)
      pairTimes.push(pairMs)
      charged.set(accountId, (charged.get(accountId) ?? 0n) + charge)
    }
  }
  await Promise.all(Array.from({ length: inFlight }, lane))
  const { user, system } = process.cpuUsage(cpuBefore)
  return {
    reserveTimes,
    pairTimes,
    charged,
    elapsedMs: performance.now() - startedAtMs,
    cpuMicroseconds: user + system,
  }
}

/** The ids are random, like those of the gateway. */
async function reserveAndSettle({ accountId, isRecording, charge }) {
  const holdId = `req_${randomUUID().replaceAll('-', '')}`
  const keyId = `key_${accountId}`
  const startedAtMs = performance.now()
  const expiresAtMs = Date.now() + HOLD_LIFE_MS
  const reserved = await store.ledger.reserve({ holdId, accountId, keyId, amount: HOLD, expiresAtMs }, Date.now())
  if (reserved.status !== 'held') throw new Error(`a reservation is ${reserved.status}`)
  const reserveMs = performance.now() - startedAtMs
  const details = { keyId, endpoint: 'chat', model: 'bench-chat', vendor: 'openai', usage: USAGE }
  const record = isRecording ? recordOf({ id: holdId, accountId, keyId }) : undefined
  const settlement = { holdId, amount: charge, description: 'chat bench-chat', details, record }
  const settled = await store.ledger.settle(settlement, Date.now())
  if (!settled.resolved || settled.charged !== charge) throw new Error(`a settlement charged ${settled.charged}`)
  if (settled.recordFault !== undefined) throw new Error('a record was rejected', { cause: settled.recordFault })
  return { reserveMs, pairMs: performance.now() - startedAtMs }
}

function recordOf(caller) {
  return {
    ...caller,
    endUser: undefined,
    tags: [],
    endpoint: 'chat',
    model: 'bench-chat',
    requestedModel: 'bench-chat',
    vendor: 'openai',
    credentialId: 'openai:0123456789ab',
    vendorRequestId: undefined,
    ending: 'completed',
    status: 200,
    code: undefined,
    isStream: false,
    usage: USAGE,
    isEstimated: false,
    durationMs: 812,
    firstByteMs: 640,
    attempts: undefined,
  }
}
