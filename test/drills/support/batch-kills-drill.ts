import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, expect } from 'vitest'
import type { PriceFile } from '../../../src/catalog/prices/prices.ts'
import { type Sandbox, sandboxVendors } from '../../../src/testing/index.ts'
import { expectBooksAgree } from '../../support/books-agree.ts'
import { testPrices } from '../../support/test-prices.ts'
import { type DrillProcess, drillPrograms } from './drill-process.ts'
import { type DrillStore, openDrillStore } from './open-drill-store.ts'

const isLong = process.env['DRILL'] === 'long'
const REQUESTS = 30
const KILLS_UNDER_WAY = isLong ? 4 : 2
const KILLS_AT_THE_END = isLong ? 12 : 3
const MODEL = 'chat-relayed'
const CREDIT = 1_000_000_000_000n
/** Longer than a lease. */
const STEP_MS = 120_000

/** How long the drill may take. */
export const BATCH_KILLS_TIMEOUT = { timeout: isLong ? 300_000 : 120_000 }

/** Title of the drill. */
export const BATCH_KILLS = `a batch whose gateway is killed ${KILLS_UNDER_WAY} times under way and ${KILLS_AT_THE_END + 1} times at its end: answered whole, settled once`

/** Prices with those of batches. */
export const batchPrices: PriceFile = {
  ...testPrices,
  prices: [
    ...testPrices.prices,
    { model: MODEL, meter: 'input_token', amount: '0.50', per: 1_000_000, when: { batch: 'true' } },
    { model: MODEL, meter: 'output_token', amount: '2.00', per: 1_000_000, when: { batch: 'true' } },
  ],
}

/** What a gateway for batches is told. */
export interface BatchServerSettings {
  readonly store: DrillStore
  readonly vendorOrigin: string
  readonly vendorKey: string
  readonly key: string
  readonly account: string
  /** At which step it kills itself. */
  readonly dies: 'under-way' | 'before-settlement' | 'after-settlement' | 'never' | `${'before' | 'after'} ${string}`
  /** Are batches given to the vendor's batch API? */
  readonly native?: boolean
  /** By how much its clock is ahead. */
  readonly offsetMs: number
}

type Server = DrillProcess<{ readonly url: string }, never>
type Json = Record<string, unknown>

let sandbox: Sandbox
let vendorOrigin: string
let start: ReturnType<typeof drillPrograms>

async function batchKills(store: DrillStore): Promise<void> {
  const key = `sk-${randomBytes(12).toString('hex')}`
  const account = 'acct_drill'
  let offsetMs = 0
  const serve = (dies: BatchServerSettings['dies']): Promise<Server> => {
    offsetMs += STEP_MS
    const settings: BatchServerSettings = { store, vendorOrigin, vendorKey: 'vendor-key', key, account, dies, offsetMs }
    return start('batch-server', settings)
  }
  const opened = openDrillStore(store)
  await opened.store.start()
  await opened.store.ledger.createAccount({ id: account }, Date.now())
  await opened.store.ledger.credit({ creditId: 'c', accountId: account, amount: CREDIT, description: 'c' }, Date.now())

  const first = await serve('under-way')
  const headers = { authorization: `Bearer ${key}` }
  const form = new FormData()
  form.set('purpose', 'batch')
  form.set('file', new Blob([Array.from({ length: REQUESTS }, requestLine).join('\n')]), 'requests.jsonl')
  const file = await fetch(`${first.ready.url}/v1/files`, { method: 'POST', headers, body: form })
  const { id: inputFileId } = (await file.json()) as Json
  const body = { input_file_id: inputFileId, endpoint: '/v1/chat/completions', completion_window: '24h' }
  const created = await fetch(`${first.ready.url}/v1/batches`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const batch = (await created.json()) as Json
  expect([created.status, batch['status']]).toEqual([200, 'in_progress'])
  await expect(first.ask('go on')).rejects.toThrow('SIGKILL')
  for (let kill = 1; kill < KILLS_UNDER_WAY; kill++)
    await expect((await serve('under-way')).ask('go on')).rejects.toThrow('SIGKILL')
  for (let kill = 0; kill < KILLS_AT_THE_END; kill++) {
    await expect((await serve('before-settlement')).ask('go on')).rejects.toThrow('SIGKILL')
    const charges = (await opened.store.ledger.entries(account, 100)).filter(({ kind }) => kind === 'charge')
    expect(charges).toEqual([])
  }
  const sentBefore = sandbox.requests.length
  await expect((await serve('after-settlement')).ask('go on')).rejects.toThrow('SIGKILL')

  const last = await serve('never')
  const read = async (path: string): Promise<string> => (await fetch(`${last.ready.url}${path}`, { headers })).text()
  const ended = JSON.parse(await read(`/v1/batches/${String(batch['id'])}`)) as Json
  expect(ended).toMatchObject({
    status: 'completed',
    request_counts: { total: REQUESTS, completed: REQUESTS, failed: 0 },
  })
  const lines = (await read(`/v1/files/${String(ended['output_file_id'])}/content`)).trim().split('\n')
  const answers = lines.map((text) => JSON.parse(text) as { custom_id: string; response: { body: { usage: Json } } })
  expect(answers.map(({ custom_id }) => custom_id)).toEqual(Array.from({ length: REQUESTS }, (_, index) => `r${index}`))
  const due = answers.reduce(
    (
      sum,
      {
        response: {
          body: { usage },
        },
      },
    ) => {
      return sum + BigInt(Number(usage['prompt_tokens'])) * 500n + BigInt(Number(usage['completion_tokens'])) * 2_000n
    },
    0n,
  )
  const charges = (await opened.store.ledger.entries(account, 100)).filter(({ kind }) => kind === 'charge')
  expect(charges.map(({ amount }) => amount)).toEqual([-due])
  expect(await opened.store.ledger.account(account)).toMatchObject({ balance: CREDIT - due, held: 0n })
  await expectBooksAgree(opened.store, account)
  // What had an outcome was not sent again: only what was under way at a kill.
  expect(sandbox.requests.length).toBe(sentBefore)
  expect(sandbox.requests.length).toBeLessThanOrEqual(REQUESTS + KILLS_UNDER_WAY * 8)
  await last.end('SIGKILL')
  await opened.store.close()
  await opened.release()
}

function requestLine(_: unknown, index: number): string {
  const messages = [{ role: 'user', content: `answer ${index}` }]
  const body = { model: MODEL, max_tokens: 50, messages }
  return JSON.stringify({ custom_id: `r${index}`, method: 'POST', url: '/v1/chat/completions', body })
}

/** A vendor for each test of the file that calls this. */
export function batchKillsDrill(): (store: DrillStore) => Promise<void> {
  start = drillPrograms(['batch-server'])
  beforeEach(async () => {
    sandbox = sandboxVendors({ maxRequests: 100_000 })
    vendorOrigin = (await sandbox.listen()).origin
  })
  afterEach(() => sandbox.close())
  return batchKills
}
