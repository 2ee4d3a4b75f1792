import { describe, expect, test } from 'vitest'
import { GatewayError } from '../../src/core/errors.ts'
import type { GatewayEvent } from '../../src/core/events.ts'
import { contextOf } from '../../src/gateway/context.ts'
import { VendorKey } from '../../src/routing/candidate.ts'
import type { Reservation } from '../../src/stores/ledger.ts'
import { memoryStore } from '../../src/stores/memory/memory-store.ts'
import type { TaskRecord } from '../../src/stores/task-store.ts'
import { cancelTask } from '../../src/tasks/task-requests.ts'
import { commit, endTask, refreshTask } from '../../src/tasks/update-task.ts'
import { fakeClock } from '../../src/testing/index.ts'
import type { Transport } from '../../src/transport/transport.ts'
import { dashscope } from '../../src/vendors/dashscope/dashscope.ts'
import { testPrices } from '../support/test-prices.ts'

const RACERS = 2_000
const ACCOUNT = 'acct_race'
const VENDOR_KEY = 'vendor-key'
const HELD = 400_000_000n
const CREDIT = 10_000_000_000n

/** How the vendor sees the task; it consents to every cancellation. */
const RECORDS = {
  completed: { task_status: 'SUCCEEDED', video_url: 'https://cdn.example.net/v.mp4' },
  failed: { task_status: 'FAILED', code: 'InternalError', message: 'no' },
  cancelled: { task_status: 'CANCELED' },
} as const

/** A vendor that answers each question in a turn of its own, the later ones not always after the earlier ones. */
function racingVendor(output: object): Transport {
  let count = 0
  return {
    send(request, handler) {
      const body = request.method === 'GET' ? { output, usage: { duration: 7, SR: 720 } } : { request_id: 'r' }
      const answer = (): void => {
        handler.onHead(200, { 'content-type': 'application/json' })
        handler.onData(Buffer.from(JSON.stringify(body)))
        handler.onEnd()
      }
      if (count++ % 3 === 0) setImmediate(answer)
      else setImmediate(() => setImmediate(answer))
      return { abort() {}, pause() {}, resume() {} }
    },
    close: async () => undefined,
  }
}

function taskOf(nowMs: number): TaskRecord {
  return {
    id: 'task_race',
    accountId: ACCOUNT,
    keyId: 'key_race',
    state: 'queued',
    upstreamId: 'upstream-race',
    credentialId: new VendorKey('dashscope', VENDOR_KEY, 1).credentialId,
    holdId: 'req_race',
    createdAtMs: nowMs,
    updatedAtMs: nowMs,
    nextPollAtMs: nowMs,
    deadlineAtMs: nowMs,
    details: {
      requestId: 'req_race',
      model: 'wv2.7-t2v',
      vendor: 'dashscope',
      prices: { '': [{ meter: 'video_second', amount: '0.10', per: 1 }] },
      heldUsage: { videoSeconds: 4 },
      endpoint: 'videos',
      variant: '720p',
      facts: {},
      webhookUrl: 'https://hooks.example.net/',
      polls: 0,
      unknownReports: 0,
    },
  }
}

describe(`${RACERS} who poll, cancel and give up one task at once`, () => {
  test.each(Object.entries(RECORDS))('end it once when the vendor says %s', async (_status, output) => {
    const clock = fakeClock()
    const store = memoryStore()
    const events: GatewayEvent[] = []
    const context = contextOf({
      vendors: [dashscope({ apiKey: VENDOR_KEY, baseURL: 'https://vendor.example' })],
      prices: testPrices,
      store,
      clock,
      transport: racingVendor({ task_id: 'upstream-race', ...output }),
      onEvent: (event) => events.push(event),
    })
    const nowMs = clock.now()
    const task = taskOf(nowMs)
    const hold: Reservation = {
      holdId: 'req_race',
      accountId: ACCOUNT,
      keyId: 'key_race',
      amount: HELD,
      expiresAtMs: nowMs + 3_600_000,
      task,
    }
    await store.ledger.createAccount({ id: ACCOUNT }, nowMs)
    await store.ledger.credit({ creditId: 'c', accountId: ACCOUNT, amount: CREDIT, description: 'credit' }, nowMs)
    await store.ledger.reserve(hold, nowMs)
    let wakes = 0
    const wake = (): void => void wakes++
    const giveUp = async (): Promise<TaskRecord> => {
      await new Promise((resolve) => setImmediate(resolve))
      return await commit(context, task, endTask(task, task.details, { state: 'failed', nowMs }), wake)
    }
    const racers = [
      () => refreshTask(context, task, wake),
      () => cancelTask(context, task, wake),
      () => refreshTask(context, task, wake),
      giveUp,
    ]

    const outcomes = await Promise.allSettled(Array.from({ length: RACERS }, (_, index) => racers[index % 4]!()))
    const swept = await store.ledger.expire(nowMs + 86_400_000, 100)
    const final = await store.tasks.find(ACCOUNT, 'task_race')
    const account = await store.ledger.account(ACCOUNT)
    const entries = await store.ledger.entries(ACCOUNT, 100)
    await context.publicTransport.close()

    // A cancellation that comes too late is refused; all other calls get the task as it ended.
    const faults = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason as unknown] : []))
    expect(faults.every((fault) => GatewayError.isInstance(fault) && fault.code === 'task_not_cancellable')).toBe(true)
    const seen = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value.state] : []))
    expect(new Set(seen)).toEqual(new Set([final?.state]))
    const isCharged = final?.state === 'completed'
    expect(entries.filter(({ kind }) => kind === 'charge')).toHaveLength(isCharged ? 1 : 0)
    expect(account).toMatchObject({ balance: isCharged ? CREDIT - 700_000_000n : CREDIT, held: 0n })
    expect(entries.reduce((sum, { amount }) => sum + amount, 0n)).toBe(account?.balance)
    expect(events.filter(({ type }) => type === 'task-ended')).toHaveLength(1)
    expect(await store.webhooks.list(ACCOUNT, 'task_race')).toHaveLength(1)
    expect(wakes).toBe(1)
    expect(swept).toBe(0)
  })
})
