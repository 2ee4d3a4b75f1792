import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { temporaryPaths } from '../stores/sqlite/support/temporary-folder.ts'
import { batchVendor, LINE_USAGE } from '../support/batch-vendor.ts'
import type { BatchServerSettings } from './support/batch-kills-drill.ts'
import { drillPrograms } from './support/drill-process.ts'
import { openDrillStore } from './support/open-drill-store.ts'

const REQUESTS = process.env['DRILL'] === 'long' ? 50_000 : 3_000
const MODEL = 'chat-relayed'
const MAX_MEBIBYTES = 300

const newPath = temporaryPaths()
const start = drillPrograms(['batch-server'])

test(`a batch of ${REQUESTS} requests at its vendor takes less than ${MAX_MEBIBYTES} MiB`, {
  timeout: 300_000,
}, async () => {
  const vendor = await batchVendor()
  vendor.isInstant = true
  const store = { kind: 'sqlite', path: newPath() } as const
  const key = `sk-${randomBytes(12).toString('hex')}`
  const account = 'acct_drill'
  const opened = openDrillStore(store)
  await opened.store.start()
  await opened.store.ledger.createAccount({ id: account }, Date.now())
  const credit = { creditId: 'c', accountId: account, amount: 1_000_000_000_000n, description: 'c' }
  await opened.store.ledger.credit(credit, Date.now())
  const settings: BatchServerSettings = {
    ...{ store, vendorOrigin: vendor.origin, vendorKey: 'vendor-key', key, account },
    ...{ dies: 'never', offsetMs: 0, native: true },
  }
  const server = await start<{ url: string }, { peakMebibytes: number }>('batch-server', settings)
  const { url } = server.ready
  const headers = { authorization: `Bearer ${key}` }
  const form = new FormData()
  form.set('purpose', 'batch')
  form.set('file', new Blob([Array.from({ length: REQUESTS }, requestLine).join('\n')]), 'requests.jsonl')
  const file = await fetch(`${url}/v1/files`, { method: 'POST', headers, body: form })
  const { id } = (await file.json()) as { id: string }
  const created = await fetch(`${url}/v1/batches`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({ input_file_id: id, endpoint: '/v1/chat/completions', completion_window: '24h' }),
  })
  const batch = (await created.json()) as { id: string; errors: unknown }
  expect([created.status, batch.errors]).toEqual([200, null])
  const before = await server.ask('peak')
  const read = async (): Promise<{ status: string }> =>
    (await (await fetch(`${url}/v1/batches/${batch.id}`, { headers })).json()) as { status: string }
  await expect.poll(read, { timeout: 280_000, interval: 250 }).toMatchObject({
    status: 'completed',
    request_counts: { total: REQUESTS, completed: REQUESTS, failed: 0 },
    usage: { input_tokens: REQUESTS * LINE_USAGE.prompt_tokens },
  })

  const { peakMebibytes } = await server.ask('peak')
  expect(peakMebibytes, `${before.peakMebibytes} MiB when it was submitted`).toBeLessThan(MAX_MEBIBYTES)
  expect(vendor.calls.filter((call) => call.endsWith('/chat/completions'))).toEqual([])
  await server.end('SIGKILL')
  await opened.store.close()
  await opened.release()
  await vendor.close()
})

function requestLine(_: unknown, index: number): string {
  const messages = [{ role: 'user', content: `answer ${index} ${'word '.repeat(200)}` }]
  const body = { model: MODEL, max_tokens: 50, messages }
  return JSON.stringify({ custom_id: `r${index}`, method: 'POST', url: '/v1/chat/completions', body })
}
