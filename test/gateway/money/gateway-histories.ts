import fc from 'fast-check'
import { expect } from 'vitest'
import { GatewayError } from '../../../src/core/errors.ts'
import { formatDollars } from '../../../src/core/money.ts'
import type { GatewayStore } from '../../../src/stores/gateway-store.ts'
import type { EntryKind } from '../../../src/stores/journal.ts'
import type { BillingMode } from '../../../src/stores/principal.ts'
import { dashscope } from '../../../src/vendors/dashscope/dashscope.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { expectBooksAgree } from '../../support/books-agree.ts'
import { chatBody, TEST_MODELS } from '../../support/start-gateway.ts'
import { type TaskBench, taskBench, VENDOR_KEY } from '../../tasks/support/task-bench.ts'

/** One step of what callers and an operator do with an account. */
export type GatewayOperation =
  | {
      readonly kind: 'chat'
      readonly text: string
      readonly isStream: boolean
      readonly leavesAfter: number | undefined
    }
  | { readonly kind: 'video'; readonly seconds: number; readonly isCancelled: boolean }
  | { readonly kind: 'credit'; readonly dollars: string; readonly livesMs: number | undefined }
  | { readonly kind: 'adjust'; readonly dollars: string }
  | { readonly kind: 'refund'; readonly charge: number; readonly part: number }
  | { readonly kind: 'bill'; readonly billing: BillingMode }
  | { readonly kind: 'wait'; readonly ms: number }

const ACCOUNT = 'acct_history'
const HOUR_MS = 3_600_000
/** Turns of a call until it is over; a database takes some. */
const MAX_TURNS = 5_000

/** Kinds of lines that some of the histories of a test must have led to. */
export const MOVED: EntryKind[] = ['credit', 'charge', 'owed', 'repayment', 'refund', 'adjustment', 'expiry']

/** Vendors' reactions to a chat. Without a mark they answer. */
const MARKS = [
  ...['', '', '[[fault:no-usage]]', '[[fault:reset-mid-stream=2]]', '[[fault:end-early=3]]', '[[fault:error-event=2]]'],
  ...['[[fault:status=503]]', '[[fault:usage=-1]]', '[[fault:no-done]]'],
]

/** Random histories of at most `maxLength` steps. */
export function gatewayHistories(maxLength: number): fc.Arbitrary<GatewayOperation[]> {
  const chat = fc.record({
    kind: fc.constant('chat' as const),
    text: fc.constantFrom(...MARKS),
    isStream: fc.boolean(),
    leavesAfter: fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined }),
  })
  // Four seconds are held for, so that ten cost more than was held.
  const video = fc.record({
    kind: fc.constant('video' as const),
    seconds: fc.constantFrom(2, 4, 10),
    isCancelled: fc.boolean(),
  })
  const dollars = fc.constantFrom('0.000001', '0.30', '0.55', '2.00')
  return fc.array(
    fc.oneof<fc.Arbitrary<GatewayOperation>[]>(
      chat,
      chat,
      chat,
      video,
      video,
      fc.record({
        kind: fc.constant('credit' as const),
        dollars,
        livesMs: fc.option(fc.integer({ min: 1, max: 60 * HOUR_MS }), { nil: undefined }),
      }),
      fc.record({ kind: fc.constant('adjust' as const), dollars: fc.constantFrom('-0.10', '-1.00', '0.05') }),
      fc.record({
        kind: fc.constant('refund' as const),
        charge: fc.nat({ max: 5 }),
        part: fc.integer({ min: 1, max: 3 }),
      }),
      fc.record({
        kind: fc.constant('bill' as const),
        billing: fc.constantFrom<BillingMode[]>('prepaid', 'metered'),
      }),
      fc.record({ kind: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 30 * HOUR_MS }) }),
    ),
    { minLength: 5, maxLength },
  )
}

/** A history that moves money in every way. */
export const FULL_HISTORY: GatewayOperation[] = [
  { kind: 'chat', text: '', isStream: true, leavesAfter: undefined },
  { kind: 'video', seconds: 10, isCancelled: false },
  { kind: 'wait', ms: 30 * HOUR_MS },
  { kind: 'credit', dollars: '2.00', livesMs: HOUR_MS },
  { kind: 'refund', charge: 0, part: 2 },
  { kind: 'adjust', dollars: '-0.10' },
  { kind: 'chat', text: '[[fault:reset-mid-stream=2]]', isStream: true, leavesAfter: undefined },
  { kind: 'wait', ms: 2 * HOUR_MS },
]

/**
 * Plays a history on a gateway from the last day of a month, and checks that all books of the account agree. Returns the kinds of its
 * lines.
 */
export async function expectAgreeingBooks(
  store: GatewayStore,
  history: readonly GatewayOperation[],
): Promise<readonly EntryKind[]> {
  const vendor = { apiKey: VENDOR_KEY, baseURL: 'https://vendor.example' }
  // Read once the gateway is gone, so that nothing moves meanwhile.
  const { kept, wait } = notedStore({ ...store, close: async () => undefined })
  const options = { vendors: [dashscope(vendor), openai(vendor)], models: TEST_MODELS, store: kept }
  const started = await taskBench({ ...options, usage: {} }, {}, Date.UTC(2026, 0, 31, 2))
  const bench = inStep(started, wait)
  try {
    await bench.gateway.accounts.create({ id: ACCOUNT })
    const { key } = await bench.gateway.keys.create({ accountId: ACCOUNT })
    await bench.gateway.accounts.credit(ACCOUNT, '0.50')
    for (const operation of history) await play(bench, key, operation)
    // Every video ends, or is given up; every hold ends.
    for (let hour = 0; hour < 27; hour++) await bench.pass(HOUR_MS)
    const held = async (): Promise<bigint> => {
      await bench.pass(HOUR_MS)
      const account = await store.ledger.account(ACCOUNT)
      return account!.held + account!.creditHeld
    }
    await expect.poll(held, { timeout: 20_000, interval: 5 }).toBe(0n)
  } finally {
    await bench.close()
  }
  await expectBooksAgree(store, ACCOUNT)
  return (await store.ledger.entries(ACCOUNT, 1_000)).map(({ kind }) => kind)
}

interface NotedStore {
  readonly kept: GatewayStore
  /** Waits for the current calls of the store. Returns `false` if there are none. */
  wait(): Promise<boolean>
}

/** A store whose calls can be waited for. */
function notedStore(store: GatewayStore): NotedStore {
  const underWay = new Set<Promise<unknown>>()
  const noted = (result: unknown): unknown => {
    if (!(result instanceof Promise)) return result
    underWay.add(result)
    const end = (): void => void underWay.delete(result)
    result.then(end, end)
    return result
  }
  const partOf = (part: object): object =>
    new Proxy(part, {
      get(target, name) {
        const member: unknown = Reflect.get(target, name)
        return typeof member === 'function' ? (...values: unknown[]) => noted(member.apply(target, values)) : member
      },
    })
  const parts = Object.entries(store).map(([name, part]) => [name, typeof part === 'object' ? partOf(part) : part])
  return {
    kept: Object.fromEntries(parts) as GatewayStore,
    async wait() {
      const isBusy = underWay.size > 0
      await Promise.allSettled(underWay)
      return isBusy
    },
  }
}

/** Stops the clock while the store works: due work must not be missed because a database is slow. */
function inStep(bench: TaskBench, wait: () => Promise<boolean>): TaskBench {
  const settle = async (): Promise<void> => {
    // The store's answer may lead to its next call.
    do await bench.settle()
    while (await wait())
  }
  return {
    ...bench,
    settle,
    async pass(durationMs, stepMs = durationMs) {
      for (let passedMs = 0; passedMs < durationMs; passedMs += stepMs) {
        await bench.pass(Math.min(stepMs, durationMs - passedMs))
        await settle()
      }
    },
  }
}

async function play(bench: TaskBench, key: string, operation: GatewayOperation): Promise<void> {
  const { accounts } = bench.gateway
  switch (operation.kind) {
    case 'chat':
      return chat(bench, key, operation)
    case 'video':
      return video(bench, key, operation)
    case 'credit': {
      const { dollars, livesMs } = operation
      const expiresAtMs = livesMs === undefined ? undefined : bench.clock.now() + livesMs
      await accounts.credit(ACCOUNT, dollars, { expiresAtMs })
      return
    }
    case 'adjust':
      // More than there is cannot be taken.
      return unlessRefused(accounts.adjust(ACCOUNT, { amount: operation.dollars, reason: 'correction' }))
    case 'refund': {
      const lines = await accounts.ledger(ACCOUNT)
      const charge = lines.filter(({ kind, due = 0n }) => kind === 'charge' && due > 0n)[operation.charge]
      if (charge === undefined) return
      const amount = charge.due! / BigInt(operation.part)
      if (amount === 0n) return
      return unlessRefused(accounts.refund(charge.id, { amount: formatDollars(amount), reason: 'bad answer' }))
    }
    case 'bill':
      await accounts.update(ACCOUNT, { billing: operation.billing })
      return
    case 'wait':
      // Videos that render meanwhile are asked for, in steps small enough for a store that answers late.
      await bench.pass(120_000, 2_000)
      await bench.pass(operation.ms)
  }
}

async function unlessRefused(change: Promise<unknown>): Promise<void> {
  await change.catch((error: unknown) => {
    if (!GatewayError.isInstance(error) || error.status >= 500) throw error
  })
}

async function chat(
  bench: TaskBench,
  key: string,
  { text, isStream, leavesAfter }: Extract<GatewayOperation, { kind: 'chat' }>,
): Promise<void> {
  const leaving = new AbortController()
  const body = chatBody('chat-relayed', `${text} tell me of the sea`, { stream: isStream, max_tokens: 300 })
  const answer = bench.gateway
    .fetch(
      new Request('http://gateway.example/v1/chat/completions', {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
        signal: leaving.signal,
      }),
    )
    .then(async (response) => {
      const reader = response.body!.getReader()
      for (let count = 0; count !== leavesAfter; count++) if ((await reader.read()).done) return
      await reader.cancel()
    })
  let isOver = false
  // A broken body rejects, as it must.
  const over = answer
    .catch(() => undefined)
    .then(() => {
      isOver = true
    })
  for (let turn = 0; turn < MAX_TURNS && !isOver; turn++) {
    if (leavesAfter !== undefined && turn === leavesAfter) leaving.abort()
    await bench.settle()
    if (turn % 20 === 19) await bench.pass(100)
  }
  await over
}

async function video(
  bench: TaskBench,
  key: string,
  { seconds, isCancelled }: Extract<GatewayOperation, { kind: 'video' }>,
): Promise<void> {
  const answer = await bench.post(`[[video:seconds=${seconds}]] a boat`, { apiKey: key })
  const { task_id: id } = (await answer.json()) as { readonly task_id?: string }
  if (!isCancelled || id === undefined) return
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const request = new Request(`http://gateway.example/v1/videos/generations/${id}/cancel`, { method: 'POST', headers })
  const cancelled = bench.gateway.fetch(request)
  await bench.settle()
  await (await cancelled).text()
}
