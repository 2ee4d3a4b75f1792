import type { MaybePromise } from '../../core/maybe-promise.ts'
import type { KeyRecord } from '../../stores/api-keys.ts'
import type { GatewayStore } from '../../stores/gateway-store.ts'
import type { IdempotencyClaim, StoredAnswer } from '../../stores/idempotency-store.ts'
import type { Reservation, Settlement } from '../../stores/ledger.ts'
import type { TaskRecord } from '../../stores/task-store.ts'
import type { NewDelivery } from '../../stores/webhook-store.ts'
import type { UsageDraft } from '../../usage/usage-record.ts'

/**
 * The functions of a test runner that a contract suite needs. Vitest's and Jest's own fit; for `node:test` pass
 * `{ describe, it, expect: (actual) => ({ toEqual: (expected) => assert.deepStrictEqual(actual, expected) }) }`.
 */
export interface ContractRunner {
  describe(name: string, body: () => void): unknown
  it(name: string, body: () => Promise<void>): unknown
  expect(actual: unknown): { toEqual(expected: unknown): unknown }
}

/** How a suite gets a fresh, empty driver for each case. */
export interface ContractSubject<Driver> {
  /** Called once for each case; returns a started, empty driver. */
  create(): MaybePromise<Driver>
  /** Called with the driver when its case is over, whatever its outcome. */
  dispose?(driver: Driver): MaybePromise<void>
}

/** Clock of a suite. Drivers that use the given `nowMs` need none; those with their own clock pass it here. */
export interface ContractClock {
  /** Unix milliseconds. */
  now(): number
  advance(milliseconds: number): MaybePromise<void>
}

/** A clock that moves only when `advance` is called. */
export function standingClock(startMs = 1_750_000_000_000): ContractClock {
  let nowMs = startMs
  return {
    now: () => nowMs,
    advance(milliseconds) {
      nowMs += milliseconds
    },
  }
}

/** Returns the functions of a runner, and `check`, which runs a case with a driver of its own. */
export function contractCases<Driver>({ describe, it, expect }: ContractRunner, subject: ContractSubject<Driver>) {
  const check = (name: string, body: (driver: Driver) => Promise<void>): unknown =>
    it(name, async () => {
      const driver = await subject.create()
      try {
        await body(driver)
      } finally {
        await subject.dispose?.(driver)
      }
    })
  return { describe, check, expect }
}

/** Name of the error that a call ends with, thrown or rejected; `'no error'` when it succeeds. */
export async function failureName(call: () => MaybePromise<unknown>): Promise<string> {
  try {
    await call()
  } catch (error) {
    return error instanceof Error ? error.name : String(error)
  }
  return 'no error'
}

/** Parts of a driver that the suite of the ledger needs. */
export type LedgerStore = Pick<GatewayStore, 'ledger' | 'idempotency' | 'keys'>

/** Parts of a driver that the suite of the tasks needs. */
export type TaskContractStore = LedgerStore & Pick<GatewayStore, 'tasks' | 'webhooks' | 'responses'>

export const NOW_MS = 1_750_000_000_000
export const ACCOUNT_ID = 'account_1'

/** Returns a key of the example account. */
export function exampleKey(overrides: Partial<KeyRecord> = {}): KeyRecord {
  return {
    id: 'key_1',
    accountId: ACCOUNT_ID,
    hash: '1'.repeat(64),
    label: '',
    scopes: {},
    limits: undefined,
    spendingCap: undefined,
    createdAtMs: NOW_MS,
    expiresAtMs: undefined,
    revokedAtMs: undefined,
    ...overrides,
  }
}

/** Creates the example account and credits it. */
export async function fundedLedger({ ledger }: LedgerStore, amount: bigint): Promise<void> {
  await ledger.createAccount({ id: ACCOUNT_ID }, NOW_MS)
  await ledger.credit({ creditId: 'credit_1', accountId: ACCOUNT_ID, amount, description: 'start' }, NOW_MS)
}

export function exampleReservation(overrides: Partial<Reservation> = {}): Reservation {
  return {
    holdId: 'hold_1',
    accountId: ACCOUNT_ID,
    keyId: 'key_1',
    amount: 100n,
    expiresAtMs: NOW_MS + 900_000,
    ...overrides,
  }
}

/** Reserves the example's hold. */
export async function placeHold(store: LedgerStore, overrides: Partial<Reservation> = {}, nowMs = NOW_MS) {
  return store.ledger.reserve(exampleReservation(overrides), nowMs)
}

/** Settles the example's hold, or the given one. */
export async function settleHold(store: LedgerStore, amount: bigint, others: Partial<Settlement> = {}, nowMs = NOW_MS) {
  return store.ledger.settle({ holdId: 'hold_1', description: 'chat', ...others, amount }, nowMs)
}

/** Returns the balance and the held money of the example account. */
export async function balanceOf({ ledger }: LedgerStore) {
  const account = await ledger.account(ACCOUNT_ID)
  return { balance: account?.balance, held: account?.held }
}

export function exampleClaim(overrides: Partial<IdempotencyClaim> = {}): IdempotencyClaim {
  return {
    accountId: ACCOUNT_ID,
    key: 'order-17',
    fingerprint: 'a'.repeat(64),
    expiresAtMs: NOW_MS + 86_400_000,
    ...overrides,
  }
}

export function exampleAnswer(text: string): StoredAnswer {
  return {
    status: 200,
    headers: ['content-type', 'application/json'],
    body: new Uint8Array([0, 255, ...new TextEncoder().encode(text)]),
  }
}

/** Returns a task that the vendor has accepted. */
export function exampleTask(overrides: Partial<TaskRecord> = {}): TaskRecord {
  return {
    id: 'task_1',
    accountId: ACCOUNT_ID,
    keyId: 'key_1',
    state: 'queued',
    upstreamId: undefined,
    credentialId: 'dashscope:1',
    holdId: undefined,
    createdAtMs: NOW_MS,
    updatedAtMs: NOW_MS,
    nextPollAtMs: NOW_MS + 15_000,
    deadlineAtMs: NOW_MS + 86_400_000,
    details: {
      requestId: 'request_1',
      model: 'wv2.7-t2v',
      vendor: 'dashscope',
      prices: { '720p': [{ meter: 'video_second', amount: '0.10', per: 1 }], '': [] },
      heldUsage: { videoSeconds: 5.5 },
      endpoint: 'videos',
      variant: '720p',
      facts: {},
      polls: 0,
      unknownReports: 0,
    },
    ...overrides,
  }
}

/** Returns the usage record of a chat. */
export function exampleDraft(overrides: Partial<UsageDraft> = {}): UsageDraft {
  return {
    id: 'request_1',
    accountId: ACCOUNT_ID,
    keyId: 'key_1',
    endUser: 'user_1',
    tags: ['team:a', 'beta'],
    endpoint: 'chat',
    model: 'gp-5.4',
    requestedModel: 'gp-latest',
    vendor: 'openai',
    credentialId: 'openai:1',
    vendorRequestId: 'req_9',
    ending: 'completed',
    status: 200,
    code: undefined,
    isStream: true,
    usage: { inputTokens: 100, cachedInputTokens: 0, outputTokens: 20, videoSeconds: 1.5 },
    isEstimated: false,
    durationMs: 1_200,
    firstByteMs: 300,
    attempts: undefined,
    ...overrides,
  }
}

export function exampleDelivery(overrides: Partial<NewDelivery> = {}): NewDelivery {
  return {
    id: 'msg_1',
    accountId: ACCOUNT_ID,
    taskId: 'task_1',
    url: 'https://receiver.example/hook',
    body: '{"type":"video.completed","text":"\u00e9 \u{1F600}"}',
    createdAtMs: NOW_MS,
    nextAttemptAtMs: NOW_MS,
    ...overrides,
  }
}

/** Converts an answer to plain arrays, whatever kind of byte array a driver returns. */
export function readableAnswer(answer: StoredAnswer): unknown {
  return { status: answer.status, headers: [...answer.headers], body: [...answer.body] }
}
