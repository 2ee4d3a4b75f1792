import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, expect } from 'vitest'
import { type BatchVendor, batchVendor, LINE_USAGE } from '../../support/batch-vendor.ts'
import { expectBooksAgree } from '../../support/books-agree.ts'
import type { BatchServerSettings } from './batch-kills-drill.ts'
import { type DrillProcess, drillPrograms } from './drill-process.ts'
import { type DrillStore, openDrillStore } from './open-drill-store.ts'

const REQUESTS = 30
const MODEL = 'chat-relayed'
const CREDIT = 1_000_000_000_000n
const LINE_COST = BigInt(LINE_USAGE.prompt_tokens) * 500n + BigInt(LINE_USAGE.completion_tokens) * 2_000n
/** Longer than a lease, and than a creation is looked for. */
const STEP_MS = 120_000

/** Where the processes die, one after another. The vendor's calls lie between the steps. */
const ALL_DEATHS: readonly BatchServerSettings['dies'][] = [
  'after begun',
  'before captured',
  'after captured',
  // Uploaded, and not known to be.
  'before uploaded',
  'after uploaded',
  // About to be created.
  'after creating',
  'after refused',
  // Created, and not known to be.
  'before created',
  'after created',
  'under-way',
  'before collected',
  'after collected',
  'before-settlement',
  'before-settlement',
  'after-settlement',
]

/** Those around what must not be done twice. */
const WORST_DEATHS: readonly BatchServerSettings['dies'][] = [
  'after creating',
  'after refused',
  'before created',
  'under-way',
  'before-settlement',
  'after-settlement',
]
const isLong = process.env['DRILL'] === 'long'
const DEATHS = isLong ? ALL_DEATHS : WORST_DEATHS

/** Title of the drill, and how long it may take. */
export const NATIVE_BATCH_KILLS = `a batch at its vendor whose gateway is killed ${DEATHS.length} times, between its steps: created once, settled once`
export const NATIVE_BATCH_KILLS_TIMEOUT = { timeout: 180_000 }

type Server = DrillProcess<{ readonly url: string }, never>
type Json = Record<string, unknown>

let vendor: BatchVendor
let start: ReturnType<typeof drillPrograms>

async function nativeBatchKills(store: DrillStore): Promise<void> {
  const key = `sk-${randomBytes(12).toString('hex')}`
  const account = 'acct_drill'
  let offsetMs = 0
  const serve = (dies: BatchServerSettings['dies']): Promise<Server> => {
    offsetMs += STEP_MS
    const settings: BatchServerSettings = {
      ...{ store, vendorOrigin: vendor.origin, vendorKey: 'vendor-key', key, account },
      ...{ dies, offsetMs, native: true },
    }
    return start('batch-server', settings)
  }
  const opened = openDrillStore(store)
  await opened.store.start()
  await opened.store.ledger.createAccount({ id: account }, Date.now())
  await opened.store.ledger.credit({ creditId: 'c', accountId: account, amount: CREDIT, description: 'c' }, Date.now())

  const first = await serve(DEATHS[0]!)
  const headers = { authorization: `Bearer ${key}` }
  const form = new FormData()
  form.set('purpose', 'batch')
  form.set('file', new Blob([Array.from({ length: REQUESTS }, requestLine).join('\n')]), 'requests.jsonl')
  const file = await fetch(`${first.ready.url}/v1/files`, { method: 'POST', headers, body: form })
  const { id: inputFileId } = (await file.json()) as Json
  const created = await fetch(`${first.ready.url}/v1/batches`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({
      ...{ input_file_id: inputFileId, endpoint: '/v1/chat/completions', completion_window: '24h' },
    }),
  })
  const batch = (await created.json()) as Json
  expect([created.status, batch['status']]).toEqual([200, 'in_progress'])
  await expect(first.ask('go on')).rejects.toThrow('SIGKILL')
  vendor.isInstant = true
  for (const dies of DEATHS.slice(1)) {
    await expect((await serve(dies)).ask('go on'), dies).rejects.toThrow('SIGKILL')
    const charges = (await opened.store.ledger.entries(account, 100)).filter(({ kind }) => kind === 'charge')
    expect(charges.length, dies).toBe(dies === 'after-settlement' ? 1 : 0)
  }

  const last = await serve('never')
  const read = async (path: string): Promise<string> => (await fetch(`${last.ready.url}${path}`, { headers })).text()
  const ended = JSON.parse(await read(`/v1/batches/${String(batch['id'])}`)) as Json
  expect(ended).toMatchObject({
    status: 'completed',
    request_counts: { total: REQUESTS, completed: REQUESTS, failed: 0 },
  })
  const lines = (await read(`/v1/files/${String(ended['output_file_id'])}/content`)).trim().split('\n')
  expect(lines.map((text) => (JSON.parse(text) as Json)['custom_id'])).toEqual(
    Array.from({ length: REQUESTS }, (_, index) => `r${index}`),
  )
  const charges = (await opened.store.ledger.entries(account, 100)).filter(({ kind }) => kind === 'charge')
  expect(charges.map(({ amount }) => amount)).toEqual([-LINE_COST * BigInt(REQUESTS)])
  expect(await opened.store.ledger.account(account)).toMatchObject({
    balance: CREDIT - LINE_COST * BigInt(REQUESTS),
    held: 0n,
  })
  await expectBooksAgree(opened.store, account)
  expect(vendor.calls.filter((call) => call === 'POST /v1/batches').length).toBe(1)
  expect(vendor.calls.filter((call) => call === 'POST /v1/chat/completions').length).toBe(0)
  // The vendor's own clock deletes unused uploads.
  expect(vendor.files.size).toBe(isLong ? 1 : 0)
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
export function nativeBatchKillsDrill(): (store: DrillStore) => Promise<void> {
  start = drillPrograms(['batch-server'])
  beforeEach(async () => {
    vendor = await batchVendor()
  })
  afterEach(() => vendor.close())
  return nativeBatchKills
}
