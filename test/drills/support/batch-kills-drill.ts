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

/** Settings of a gateway for batches. */
export interface BatchServerSettings {
  readonly store: DrillStore
  readonly vendorOrigin: string
  readonly vendorKey: string
  readonly key: string
  readonly account: string
  /** Step at which it kills itself. */
  readonly dies: 'under-way' | 'before-settlement' | 'after-settlement' | 'never' | `${'before' | 'after'} ${string}`
  /** Whether batches are submitted to the vendor's batch API. */
  readonly native?: boolean
  /** By how much its clock is ahead. */
  readonly offsetMs: number
}

type Server = DrillProcess<{ readonly url: string }, never>
type Json = Record<string, unknown>

let sandbox: Sandbox
let vendorOrigin: string

/** One way to submit a batch and to read how it went. */
interface Shape {
  submit(url: string, headers: Record<string, string>): Promise<Json>
  readonly path: string
  /** Counts of the requests of a finished batch. */
  readonly ended: Json
  resultsPath(ended: Json): string
  /** Id and usage of a line of results. */
  answer(line: Json): { readonly id: unknown; readonly input: number; readonly output: number }
}

async function posted(url: string, headers: Record<string, string>, body: unknown): Promise<Json> {
  const all = { ...headers, 'content-type': 'application/json' }
  const answer = await fetch(url, { method: 'POST', headers: all, body: JSON.stringify(body) })
  expect(answer.status).toBe(200)
  return (await answer.json()) as Json
}

const SHAPES: Readonly<Record<'files' | 'messages', Shape>> = {
  files: {
    path: '/v1/batches',
    async submit(url, headers) {
      const form = new FormData()
      form.set('purpose', 'batch')
      form.set('file', new Blob([Array.from({ length: REQUESTS }, requestLine).join('\n')]), 'requests.jsonl')
      const file = (await (await fetch(`${url}/v1/files`, { method: 'POST', headers, body: form })).json()) as Json
      const body = { input_file_id: file['id'], endpoint: '/v1/chat/completions', completion_window: '24h' }
      const batch = await posted(`${url}/v1/batches`, headers, body)
      expect(batch['status']).toBe('in_progress')
      return batch
    },
    ended: { status: 'completed', request_counts: { total: REQUESTS, completed: REQUESTS, failed: 0 } },
    resultsPath: (ended) => `/v1/files/${String(ended['output_file_id'])}/content`,
    answer(line) {
      const { usage } = (line['response'] as { body: { usage: Json } }).body
      return {
        id: line['custom_id'],
        input: Number(usage['prompt_tokens']),
        output: Number(usage['completion_tokens']),
      }
    },
  },
  messages: {
    path: '/v1/messages/batches',
    async submit(url, headers) {
      const requests = Array.from({ length: REQUESTS }, (_, index) => ({ custom_id: `r${index}`, params: body(index) }))
      const batch = await posted(`${url}/v1/messages/batches`, headers, { requests })
      expect(batch['processing_status']).toBe('in_progress')
      return batch
    },
    ended: { processing_status: 'ended', request_counts: { processing: 0, succeeded: REQUESTS } },
    resultsPath: (ended) => new URL(String(ended['results_url'])).pathname,
    answer(line) {
      const { usage } = (line['result'] as { message: { usage: Json } }).message
      const input = Number(usage['input_tokens']) + Number(usage['cache_read_input_tokens'] ?? 0)
      return { id: line['custom_id'], input, output: Number(usage['output_tokens']) }
    },
  },
}

async function batchKills(store: DrillStore, shape: Shape, start: ReturnType<typeof drillPrograms>): Promise<void> {
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
  const batch = await shape.submit(first.ready.url, headers)
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
  const ended = JSON.parse(await read(`${shape.path}/${String(batch['id'])}`)) as Json
  expect(ended).toMatchObject(shape.ended)
  const lines = (await read(shape.resultsPath(ended))).trim().split('\n')
  const answers = lines.map((text) => shape.answer(JSON.parse(text) as Json))
  expect(answers.map(({ id }) => id)).toEqual(Array.from({ length: REQUESTS }, (_, index) => `r${index}`))
  const due = answers.reduce((sum, { input, output }) => sum + BigInt(input) * 500n + BigInt(output) * 2_000n, 0n)
  const charges = (await opened.store.ledger.entries(account, 100)).filter(({ kind }) => kind === 'charge')
  expect(charges.map(({ amount }) => amount)).toEqual([-due])
  expect(await opened.store.ledger.account(account)).toMatchObject({ balance: CREDIT - due, held: 0n })
  await expectBooksAgree(opened.store, account)
  // Requests with an outcome were not sent again: only those in flight at a kill.
  expect(sandbox.requests.length).toBe(sentBefore)
  expect(sandbox.requests.length).toBeLessThanOrEqual(REQUESTS + KILLS_UNDER_WAY * 8)
  await last.end('SIGKILL')
  await opened.store.close()
  await opened.release()
}

function body(index: number): Json {
  return { model: MODEL, max_tokens: 50, messages: [{ role: 'user', content: `answer ${index}` }] }
}

function requestLine(_: unknown, index: number): string {
  return JSON.stringify({ custom_id: `r${index}`, method: 'POST', url: '/v1/chat/completions', body: body(index) })
}

/** A vendor for each test of the file that calls this. */
export function batchKillsDrill(by: keyof typeof SHAPES = 'files'): (store: DrillStore) => Promise<void> {
  const start = drillPrograms(['batch-server'])
  beforeEach(async () => {
    sandbox = sandboxVendors({ maxRequests: 100_000 })
    vendorOrigin = (await sandbox.listen()).origin
  })
  afterEach(() => sandbox.close())
  return (store) => batchKills(store, SHAPES[by], start)
}
