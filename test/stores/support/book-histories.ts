import fc from 'fast-check'
import { expect } from 'vitest'
import { ENTRY_KINDS, type LedgerEntry } from '../../../src/stores/journal.ts'
import type { Ledger } from '../../../src/stores/ledger.ts'
import { memoryLedger } from '../../../src/stores/memory/memory-ledger.ts'
import type { BillingMode } from '../../../src/stores/principal.ts'

const ACCOUNT_ID = 'account_1'
const START_MS = 1_000
const CAPS = { account: { amount: 4_000n, period: 'month' }, key: { amount: 2_500n, period: 'day' } } as const

/** One step of a random history of everything that moves money. */
export type BookOperation =
  | { readonly kind: 'credit'; readonly id: number; readonly amount: bigint; readonly livesMs: number | undefined }
  | { readonly kind: 'adjust'; readonly id: number; readonly amount: bigint }
  | {
      readonly kind: 'reserve'
      readonly id: number
      readonly amount: bigint
      readonly larger: bigint
      readonly ttlMs: number
    }
  | { readonly kind: 'enlarge'; readonly id: number; readonly amount: bigint }
  | { readonly kind: 'settle'; readonly id: number; readonly amount: bigint }
  | { readonly kind: 'void'; readonly id: number }
  | { readonly kind: 'refund'; readonly id: number; readonly charge: number; readonly amount: bigint | undefined }
  | { readonly kind: 'bill'; readonly billing: BillingMode; readonly creditLimit: bigint | null }
  | { readonly kind: 'expireHolds' }
  | { readonly kind: 'expireCredits' }
  | { readonly kind: 'wait'; readonly ms: number }

const ids = fc.integer({ min: 1, max: 10 })
const amount = (max: bigint) => fc.bigInt({ min: 1n, max })

/** Random histories of at most `maxLength` steps. */
export function bookHistories(maxLength: number): fc.Arbitrary<BookOperation[]> {
  const settle = fc.record({ kind: fc.constant('settle' as const), id: ids, amount: fc.bigInt({ min: 0n, max: 900n }) })
  const bill: fc.Arbitrary<BookOperation> = fc.record({
    kind: fc.constant('bill' as const),
    billing: fc.constantFrom<BillingMode[]>('prepaid', 'metered'),
    creditLimit: fc.option(fc.bigInt({ min: 0n, max: 1_000n }), { nil: null }),
  })
  const reserve = fc.record({
    kind: fc.constant('reserve' as const),
    id: ids,
    amount: fc.bigInt({ min: 0n, max: 600n }),
    larger: fc.bigInt({ min: 0n, max: 900n }),
    ttlMs: fc.integer({ min: 1, max: 60 }),
  })
  return fc.array(
    fc.oneof<fc.Arbitrary<BookOperation>[]>(
      fc.record({
        kind: fc.constant('credit' as const),
        id: ids,
        amount: amount(1_500n),
        livesMs: fc.option(fc.integer({ min: 0, max: 60 }), { nil: undefined }),
      }),
      fc.record({
        kind: fc.constant('adjust' as const),
        id: ids,
        amount: fc.bigInt({ min: -400n, max: 400n }).filter((value) => value !== 0n),
      }),
      reserve,
      reserve,
      settle,
      settle,
      fc.record({ kind: fc.constant('void' as const), id: ids }),
      fc.record({ kind: fc.constant('enlarge' as const), id: ids, amount: amount(300n) }),
      fc.record({
        kind: fc.constant('refund' as const),
        id: ids,
        charge: fc.integer({ min: 0, max: 5 }),
        amount: fc.option(amount(400n), { nil: undefined }),
      }),
      bill,
      fc.constant({ kind: 'expireHolds' as const }),
      fc.constant({ kind: 'expireCredits' as const }),
      fc.record({ kind: fc.constant('wait' as const), ms: fc.integer({ min: 0, max: 30 }) }),
    ),
    { maxLength },
  )
}

async function linesOf(ledger: Ledger): Promise<readonly LedgerEntry[]> {
  const range = { accountId: ACCOUNT_ID, fromMs: 0, untilMs: 10 ** 9, after: undefined }
  return ledger.lines({ ...range, order: 'oldest', limit: 10_000 })
}

/** Runs one step, and returns its result, or the name of its error. */
async function run(ledger: Ledger, operation: BookOperation, nowMs: number): Promise<unknown> {
  try {
    return await apply(ledger, operation, nowMs)
  } catch (error) {
    if (error instanceof RangeError) return 'RangeError'
    throw error
  }
}

async function apply(ledger: Ledger, operation: BookOperation, nowMs: number): Promise<unknown> {
  const about = { accountId: ACCOUNT_ID, description: 'x' }
  switch (operation.kind) {
    case 'credit': {
      const expiresAtMs = operation.livesMs === undefined ? undefined : nowMs + operation.livesMs
      const credit = { ...about, creditId: `c${operation.id}`, amount: operation.amount, expiresAtMs }
      return ledger.credit(credit, nowMs)
    }
    case 'adjust':
      return ledger.adjust({ ...about, adjustmentId: `a${operation.id}`, amount: operation.amount }, nowMs)
    case 'reserve': {
      const { id, amount: held, larger, ttlMs } = operation
      const more = larger > held ? { larger: { amount: larger, requiredFree: larger } } : {}
      const reservation = { holdId: `h${id}`, accountId: ACCOUNT_ID, keyId: 'k', amount: held, ...more }
      return ledger.reserve({ ...reservation, expiresAtMs: nowMs + ttlMs, caps: CAPS }, nowMs)
    }
    case 'settle':
      return ledger.settle({ holdId: `h${operation.id}`, amount: operation.amount, description: 'x' }, nowMs)
    case 'enlarge':
      return ledger.enlarge(`h${operation.id}`, operation.amount, nowMs)
    case 'void':
      return ledger.void(`h${operation.id}`, nowMs)
    case 'refund': {
      const charges = (await linesOf(ledger)).filter(({ kind }) => kind === 'charge')
      const chargeId = charges[operation.charge]?.id ?? 'entry_0'
      const refund = { refundId: `r${operation.id}`, chargeId, amount: operation.amount, description: 'x' }
      return ledger.refund(refund, nowMs)
    }
    case 'bill':
      await ledger.updateAccount(ACCOUNT_ID, { billing: operation.billing, creditLimit: operation.creditLimit })
      return undefined
    case 'expireHolds':
      return ledger.expire(nowMs, 100)
    case 'expireCredits':
      return ledger.expireCredits(nowMs, 100)
    case 'wait':
      return undefined
  }
}

/** Checks invariants that hold after any operation. */
export async function expectExactBooks(ledger: Ledger): Promise<void> {
  const account = (await ledger.account(ACCOUNT_ID))!
  const lines = await linesOf(ledger)
  expect(account.balance >= 0n && account.held >= 0n && account.owed >= 0n && account.creditHeld >= 0n).toBe(true)
  expect(account.owed === 0n || account.balance === 0n).toBe(true)
  let total = 0n
  for (const line of lines) {
    total += line.amount
    expect(line.balanceAfter).toBe(total)
  }
  expect(total).toBe(account.balance + account.held)
  expect(lines.reduce((sum, line) => sum + line.owed, 0n)).toBe(account.owed)
  expect(lines.map(({ createdAtMs }) => createdAtMs)).toEqual(
    lines.map(({ createdAtMs }) => createdAtMs).sort((one, other) => one - other),
  )

  for (const charge of lines.filter(({ kind }) => kind === 'charge')) {
    const refunds = lines.filter(({ chargeId }) => chargeId === charge.id)
    expect(refunds.reduce((sum, line) => sum + line.amount, 0n) <= charge.due!).toBe(true)
  }
  for (const middleMs of [START_MS, START_MS + 30, lines.at(-1)?.createdAtMs ?? 0]) {
    const before = await ledger.sums({ accountId: ACCOUNT_ID, fromMs: 0, untilMs: middleMs })
    const after = await ledger.sums({ accountId: ACCOUNT_ID, fromMs: middleMs, untilMs: 10 ** 9 })
    const closing = before.sums.reduce((sum, line) => sum + line.amount, before.openingBalance)
    expect(after.openingBalance).toBe(closing)
    expect(after.sums.reduce((sum, line) => sum + line.amount, closing)).toBe(total)
    expect(after.sums.reduce((sum, line) => sum + line.owed, after.openingOwed)).toBe(account.owed)
    expect(after.sums.map(({ kind }) => kind)).toEqual(
      ENTRY_KINDS.filter((kind) => after.sums.some((sum) => sum.kind === kind)),
    )
  }
}

/** Plays a history on a driver and on the memory ledger: both say the same at every step, and every book is exact. */
export async function expectLikeMemory(ledger: Ledger, history: readonly BookOperation[]): Promise<void> {
  const reference = memoryLedger()
  let nowMs = START_MS
  for (const each of [ledger, reference]) await each.createAccount({ id: ACCOUNT_ID }, nowMs)
  for (const operation of history) {
    if (operation.kind === 'wait') nowMs += operation.ms
    expect(namesOf(await run(ledger, operation, nowMs))).toEqual(namesOf(await run(reference, operation, nowMs)))
    expect(await ledger.account(ACCOUNT_ID)).toEqual(await reference.account(ACCOUNT_ID))
  }
  const [lines, expected] = [await linesOf(ledger), await linesOf(reference)]
  expect(lines.map(({ kind, amount, owed, createdAtMs }) => [kind, amount, owed, createdAtMs])).toEqual(
    expected.map(({ kind, amount, owed, createdAtMs }) => [kind, amount, owed, createdAtMs]),
  )
  await expectExactBooks(ledger)
  await expectNothingOutlivesItsExpiry(ledger, history)
}

/** Once all holds have ended and all credits have expired, only money that does not expire is left. */
async function expectNothingOutlivesItsExpiry(ledger: Ledger, history: readonly BookOperation[]): Promise<void> {
  const farMs = 10 ** 8
  for (const { id } of await ledger.openHolds({ accountId: ACCOUNT_ID, after: undefined, limit: 100 }))
    await ledger.void(id, farMs)
  await ledger.expireCredits(farMs, 10)
  expect(await ledger.expireCredits(farMs, 10)).toBe(0)
  const lines = await linesOf(ledger)
  const expiring = new Set<string>()
  const given = new Set<string>()
  for (const operation of history) {
    // The first call of an id is the one that counts; its amount is above zero, and the account has room.
    if (operation.kind !== 'credit' || given.has(`c${operation.id}`)) continue
    given.add(`c${operation.id}`)
    if (operation.livesMs !== undefined) expiring.add(`c${operation.id}`)
  }
  const sumOf = (chosen: readonly LedgerEntry[]): bigint => chosen.reduce((sum, line) => sum + line.amount, 0n)
  for (const credit of lines.filter(({ kind, operationId }) => kind === 'credit' && expiring.has(operationId!))) {
    const expiries = lines.filter(({ kind, operationId }) => kind === 'expiry' && operationId === credit.operationId)
    expect(-sumOf(expiries) <= credit.amount).toBe(true)
  }
  const lasting = lines.filter(({ kind, amount, operationId }) => {
    if (kind === 'credit') return !expiring.has(operationId!)
    return kind === 'refund' || (kind === 'adjustment' && amount > 0n)
  })
  expect((await ledger.account(ACCOUNT_ID))!.balance <= sumOf(lasting)).toBe(true)
}

/** Absent and undefined members are the same. */
function namesOf(result: unknown): unknown {
  if (typeof result !== 'object' || result === null) return result
  return Object.fromEntries(Object.entries(result).filter(([, value]) => value !== undefined))
}

/** Plays the steps of a history a few at once: in any order, every book is exact. */
export async function expectExactAtOnce(ledger: Ledger, history: readonly BookOperation[]): Promise<void> {
  let nowMs = START_MS
  await ledger.createAccount({ id: ACCOUNT_ID }, nowMs)
  for (let next = 0; next < history.length; next += 6) {
    const batch = history.slice(next, next + 6)
    for (const operation of batch) if (operation.kind === 'wait') nowMs += operation.ms
    const timeMs = nowMs
    await Promise.all(batch.map((operation) => run(ledger, operation, timeMs)))
  }
  await expectExactBooks(ledger)
}
