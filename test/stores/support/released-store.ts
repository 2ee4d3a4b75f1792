import { expect } from 'vitest'
import type { GatewayStore } from '../../../src/stores/gateway-store.ts'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
import {
  ACCOUNT_ID,
  exampleAnswer,
  exampleClaim,
  exampleDelivery,
  exampleDraft,
  exampleKey,
  exampleReservation,
  exampleTask,
  NOW_MS,
} from '../../../src/testing/contracts/contract-runner.ts'

const DAY_MS = 86_400_000
const RANGE = { fromMs: NOW_MS - DAY_MS, untilMs: NOW_MS + DAY_MS }
const EXPIRES = { createdAtMs: NOW_MS, expiresAtMs: NOW_MS + 30 * DAY_MS }
const DEBTOR_ID = 'account_2'
const DETAILS = {
  keyId: 'key_1',
  endpoint: 'chat',
  model: 'gp-5.4',
  vendor: 'openai',
  usage: { inputTokens: 100, outputTokens: 20 },
}

async function* bytesOf(text: string): AsyncIterable<Uint8Array> {
  yield new TextEncoder().encode(text)
}

async function textOf(content: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = []
  for await (const chunk of content) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

/** Writes rows to every table, for the database of a released version. */
export async function fillStore(store: GatewayStore): Promise<void> {
  const { ledger, keys, webhooks, tasks } = store
  const description = 'chat gp-5.4'
  const hold = exampleReservation()
  await ledger.createAccount({ id: ACCOUNT_ID, name: 'Acme', spendingCap: { amount: 900n, period: 'month' } }, NOW_MS)
  await ledger.createAccount({ id: DEBTOR_ID, billing: 'metered', creditLimit: 500n }, NOW_MS)
  const gift = { creditId: 'credit_2', amount: 300n, expiresAtMs: NOW_MS + DAY_MS }
  await ledger.credit({ creditId: 'credit_1', accountId: ACCOUNT_ID, amount: 1_000n, description: 'start' }, NOW_MS)
  await ledger.credit({ ...gift, accountId: ACCOUNT_ID, description: 'gift' }, NOW_MS)
  await keys.insert(exampleKey({ tags: ['team:a'], namesEndUsers: true, spendingCap: { amount: 800n, period: 'day' } }))
  await keys.insert(
    exampleKey({ id: 'key_2', hash: '2'.repeat(64), replaces: 'key_1', limits: { requestsPerMinute: 5 } }),
  )
  await ledger.reserve({ ...hold, claim: exampleClaim() }, NOW_MS)
  const settlement = { holdId: hold.holdId, amount: 40n, description, details: DETAILS }
  await ledger.settle({ ...settlement, answer: exampleAnswer('hello'), record: exampleDraft() }, NOW_MS)
  await ledger.reserve({ ...hold, holdId: 'hold_2' }, NOW_MS)
  await ledger.reserve({ ...hold, holdId: 'hold_3', amount: 10n ** 12n }, NOW_MS)
  await ledger.reserve({ ...hold, holdId: 'hold_4', task: exampleTask({ id: 'task_4', holdId: 'hold_4' }) }, NOW_MS)
  await ledger.reserve({ ...hold, holdId: 'hold_5', accountId: DEBTOR_ID, keyId: 'key_9' }, NOW_MS)
  await ledger.settle({ holdId: 'hold_5', amount: 70n, description }, NOW_MS)
  const correction = { adjustmentId: 'fix_1', accountId: DEBTOR_ID, amount: -20n, description: 'correction' }
  await ledger.adjust(correction, NOW_MS)
  await store.usage?.rollUp(10, NOW_MS)
  await tasks.insert(exampleTask())
  await webhooks.replaceSecret(ACCOUNT_ID, 'whsec_1', NOW_MS, NOW_MS)
  await tasks.change(
    { id: 'task_1', from: ['queued'], set: { state: 'completed' }, delivery: exampleDelivery() },
    NOW_MS,
  )
  await store.interactions.save({
    ...{ id: 'v1_1', accountId: ACCOUNT_ID, vendor: 'gemini', credentialId: 'gemini:1', upstreamId: 'up_1' },
    ...{ model: 'gemini', ...EXPIRES },
  })
  const conversation = { id: 'conv_1', accountId: ACCOUNT_ID, metadata: { topic: 'a' }, ...EXPIRES }
  await store.conversations.create(conversation, [{ id: 'msg_0', type: 'message' }])
  await store.responses.save({
    ...{ id: 'resp_1', accountId: ACCOUNT_ID, previousId: undefined, vendor: 'openai', credentialId: 'openai:1' },
    ...{ upstreamId: 'resp_up', model: 'gp-5.4', input: [{ id: 'msg_1', type: 'message' }], ...EXPIRES },
    response: { id: 'resp_1', output: [{ id: 'msg_2', type: 'message' }] },
  })
  const file = { id: 'file_1', accountId: ACCOUNT_ID, purpose: 'batch', filename: 'a.jsonl', mimeType: 'text/plain' }
  await store.files?.save({ ...file, byteLength: 5, ...EXPIRES })
  await store.blobs?.put({ id: 'file_1', expiresAtMs: EXPIRES.expiresAtMs }, bytesOf('bytes'))
  const outcome = { line: 0, isAnswered: true, text: '{}', usage: { outputTokens: 3 }, amount: 7n }
  await store.batches?.add('batch_1', outcome, EXPIRES.expiresAtMs)
  await store.settings?.write({ records: 30 })
  await store.audit?.add({
    ...{ id: 'audit_1', createdAtMs: NOW_MS, operator: 'ann', action: 'credit_account', subject: ACCOUNT_ID },
    ...{ source: 'command_line', address: undefined, requestId: undefined, code: undefined },
    ...{ input: { amount: '1' }, before: undefined, after: { balance: '1' } },
  })
}

/** Goes on with the open holds of a filled store, then reads everything that it stores. */
async function continueAndRead(store: GatewayStore): Promise<unknown> {
  const { ledger, keys, webhooks, tasks } = store
  const laterMs = NOW_MS + 60_000
  const [charge] = (await ledger.entries(ACCOUNT_ID, 10)).filter(({ kind }) => kind === 'charge')
  const blob = await store.blobs?.get('file_1')
  const accounts = [ACCOUNT_ID, DEBTOR_ID]
  const query = { source: 'hours', step: 'day', groupBy: ['model'], filter: {}, limit: 10, withLatency: true } as const
  const again = (holdId: string) => ledger.reserve(exampleReservation({ holdId, claim: undefined }), laterMs)
  return {
    repeated: [await again('hold_1'), await again('hold_2'), await again('hold_3')],
    replay: await ledger.reserve(exampleReservation({ holdId: 'hold_6', claim: exampleClaim() }), laterMs),
    settled: await ledger.settle({ holdId: 'hold_2', amount: 130n, description: 'chat gp-5.4' }, laterMs),
    refunded: await ledger.refund(
      { refundId: 'r_1', chargeId: charge!.id, amount: undefined, description: 'refund' },
      laterMs,
    ),
    credited: await ledger.credit(
      { creditId: 'credit_3', accountId: DEBTOR_ID, amount: 100n, description: 'payment' },
      laterMs,
    ),
    expired: [await ledger.expire(NOW_MS + 2 * DAY_MS, 10), await ledger.expireCredits(NOW_MS + 2 * DAY_MS, 10)],
    accounts: await Promise.all(accounts.map((id) => ledger.account(id))),
    lines: await Promise.all(accounts.map((id) => ledger.entries(id, 20))),
    spending: await ledger.spending(ACCOUNT_ID, ['key_1', 'key_2']),
    holds: await ledger.openHolds({ accountId: undefined, after: undefined, limit: 10 }),
    keys: await keys.list(),
    tasks: await tasks.list(ACCOUNT_ID, { limit: 10 }),
    deliveries: await webhooks.list(ACCOUNT_ID, 'task_1'),
    secrets: await webhooks.secrets(ACCOUNT_ID, laterMs),
    interaction: await store.interactions.find(ACCOUNT_ID, 'v1_1', laterMs),
    history: await store.conversations.history(ACCOUNT_ID, 'conv_1', laterMs),
    response: await store.responses.find(ACCOUNT_ID, 'resp_1', laterMs),
    turns: await store.responses.findByItems(ACCOUNT_ID, ['msg_2'], laterMs),
    file: await store.files?.find(ACCOUNT_ID, 'file_1', laterMs),
    bytes: blob && (await textOf(blob.content)),
    outcomes: await store.batches?.page('batch_1', -1, 10),
    settings: await store.settings?.read(),
    audit: await store.audit?.list({ limit: 10 }),
    records: (await store.usage?.records({ ...RANGE, accountId: ACCOUNT_ID, after: undefined, limit: 10 }))?.records,
    series: await store.usage?.series({ ...query, ...RANGE }),
  }
}

/** Checks that the database of a released version, filled by {@link fillStore}, goes on like a memory store of today. */
export async function expectLikeToday(store: GatewayStore): Promise<void> {
  const today = memoryStore()
  await today.start()
  await fillStore(today)
  expect(plain(await continueAndRead(store))).toEqual(plain(await continueAndRead(today)))
}

/** Whether to write the database of the newest version instead of reading it. */
export const isFixtureWritten = process.env['WRITE_STORE_FIXTURE'] === '1'

/** Returns values as JSON, without the differences between drivers: the kind of byte arrays, and absent members. */
function plain(value: unknown): unknown {
  const text = JSON.stringify(value, (_, member: unknown) => {
    if (typeof member === 'bigint') return `${member} nano-dollars`
    if (member instanceof Uint8Array) return Buffer.from(member).toJSON()
    return member
  })
  return JSON.parse(text)
}
