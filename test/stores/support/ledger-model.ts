import fc from 'fast-check'
import { expect } from 'vitest'
import { type Ledger, lesserOf } from '../../../src/stores/ledger.ts'

const ACCOUNT_ID = 'account_1'
const START_MS = 1_000
/** Cap of the keys that a limited reservation uses: `key_2`. */
export const CAP = { amount: 4n * 10n ** 12n, period: 'month' } as const

/** One step of a random history. */
export type LedgerOperation =
  | { readonly kind: 'credit'; readonly id: number; readonly amount: bigint }
  | {
      readonly kind: 'reserve'
      readonly id: number
      readonly amount: bigint
      readonly ttlMs: number
      readonly isLimited: boolean
    }
  | { readonly kind: 'settle'; readonly id: number; readonly amount: bigint }
  | { readonly kind: 'void'; readonly id: number }
  | { readonly kind: 'expire'; readonly limit: number }
  | { readonly kind: 'wait'; readonly ms: number }

const ids = fc.integer({ min: 1, max: 12 })
const amounts = fc.bigInt({ min: 0n, max: 10n ** 12n })

/** Random histories of an exact or a maximum number of steps. */
export function ledgerHistories(length: { readonly maxLength: number; readonly minLength?: number }) {
  return fc.array(
    fc.oneof<fc.Arbitrary<LedgerOperation>[]>(
      fc.record({ kind: fc.constant('credit' as const), id: ids, amount: fc.bigInt({ min: 1n, max: 10n ** 13n }) }),
      fc.record({
        kind: fc.constant('reserve' as const),
        id: ids,
        amount: amounts,
        ttlMs: fc.integer({ min: 1, max: 50 }),
        isLimited: fc.boolean(),
      }),
      fc.record({ kind: fc.constant('settle' as const), id: ids, amount: amounts }),
      fc.record({ kind: fc.constant('void' as const), id: ids }),
      fc.record({ kind: fc.constant('expire' as const), limit: fc.integer({ min: 0, max: 5 }) }),
      fc.record({ kind: fc.constant('wait' as const), ms: fc.integer({ min: 0, max: 40 }) }),
    ),
    length,
  )
}

interface ModelHold {
  readonly amount: bigint
  readonly expiresAtMs: number
  readonly isLimited: boolean
  /** Larger amount, held instead if it is free. */
  readonly larger?: bigint | undefined
  /** UTC day that counts it, as in the store. Default 0. */
  readonly period?: number
}

/** The ledger as a list of facts, with no thought for speed. */
export class LedgerModel {
  credited = 0n
  charged = 0n
  readonly charges: { readonly hold: ModelHold; readonly amount: bigint }[] = []
  readonly creditIds = new Set<number>()
  readonly open = new Map<number, ModelHold>()
  readonly outcomes = new Map<number, string>()
  /** Holds that have expired and were not charged since. */
  readonly expired = new Map<number, ModelHold>()
  readonly ends = new Map<number, 'settled' | 'voided'>()
  owed = 0n

  get held(): bigint {
    return [...this.open.values()].reduce((sum, hold) => sum + hold.amount, 0n)
  }

  get balance(): bigint {
    return this.credited - this.charged - this.held
  }

  get counted(): bigint {
    const limited = [...this.open.values(), ...this.charges.map(({ hold, amount }) => ({ ...hold, amount }))]
    return limited.filter((hold) => hold.isLimited).reduce((sum, hold) => sum + hold.amount, 0n)
  }

  copy(): LedgerModel {
    const copy = new LedgerModel()
    copy.credited = this.credited
    copy.charged = this.charged
    copy.owed = this.owed
    copy.charges.push(...this.charges)
    for (const id of this.creditIds) copy.creditIds.add(id)
    for (const [id, hold] of this.open) copy.open.set(id, hold)
    for (const [id, outcome] of this.outcomes) copy.outcomes.set(id, outcome)
    for (const [id, hold] of this.expired) copy.expired.set(id, hold)
    for (const [id, end] of this.ends) copy.ends.set(id, end)
    return copy
  }

  credit(id: number, amount: bigint): boolean {
    if (this.creditIds.has(id)) return false
    this.creditIds.add(id)
    this.credited += amount
    this.repay()
    return true
  }

  reserve(id: number, hold: ModelHold): string {
    const known = this.outcomes.get(id)
    if (known !== undefined) return known
    const { larger } = hold
    const isLarger = larger !== undefined && this.#outcome({ ...hold, amount: larger }) === 'held'
    const outcome = isLarger ? 'held larger' : this.#outcome(hold)
    if (isLarger) this.open.set(id, { ...hold, amount: larger })
    else if (outcome === 'held') this.open.set(id, hold)
    this.outcomes.set(id, outcome)
    return outcome
  }

  #outcome({ amount, isLimited }: ModelHold): string {
    if (this.owed > 0n) return 'in_arrears'
    if (amount > this.balance) return 'insufficient_balance'
    const isOver = isLimited && amount > 0n && this.counted + amount > CAP.amount
    return isOver ? 'spending_limit' : 'held'
  }

  settle(id: number, amount: bigint): bigint | undefined {
    const hold = this.open.get(id) ?? this.expired.get(id)
    if (hold === undefined) return undefined
    this.open.delete(id)
    this.expired.delete(id)
    this.ends.set(id, 'settled')
    const charged = lesserOf(amount, this.balance)
    this.charged += charged
    this.owed += amount - charged
    this.charges.push({ hold, amount })
    this.repay()
    return charged
  }

  void(id: number): boolean {
    if (!this.open.delete(id)) return false
    this.ends.set(id, 'voided')
    this.repay()
    return true
  }

  expire(id: number): void {
    this.expired.set(id, this.open.get(id)!)
    this.open.delete(id)
    this.repay()
  }

  /** Charges owed money as soon as there is a balance. */
  repay(): void {
    const paid = lesserOf(this.owed, this.balance)
    this.owed -= paid
    this.charged += paid
  }

  /** The order of overdue holds is not guaranteed, but their number is. */
  overdue(nowMs: number): number[] {
    return [...this.open].filter(([, hold]) => hold.expiresAtMs <= nowMs).map(([id]) => id)
  }
}

async function apply(operation: LedgerOperation, ledger: Ledger, model: LedgerModel, nowMs: number): Promise<void> {
  switch (operation.kind) {
    case 'credit': {
      const { id, amount } = operation
      const credit = { creditId: `credit_${id}`, accountId: ACCOUNT_ID, amount, description: 'x' }
      expect(await ledger.credit(credit, nowMs)).toBe(model.credit(id, amount))
      return
    }
    case 'reserve': {
      const { id, amount, ttlMs, isLimited } = operation
      const expiresAtMs = nowMs + ttlMs
      const keyId = isLimited ? 'key_2' : 'key_1'
      const reservation = { holdId: `${id}`, accountId: ACCOUNT_ID, keyId, amount, expiresAtMs }
      const outcome = await ledger.reserve({ ...reservation, caps: isLimited ? { key: CAP } : undefined }, nowMs)
      expect(outcome.status).toBe(model.reserve(id, { amount, expiresAtMs, isLimited }))
      return
    }
    case 'settle': {
      const { id, amount } = operation
      const end = await ledger.settle({ holdId: `${id}`, amount, description: 'chat' }, nowMs)
      const endedBy = model.ends.get(id)
      const charged = model.settle(id, amount)
      const expected = charged === undefined ? undefined : { resolved: true, charged, shortfall: amount - charged }
      expect(end).toEqual(expected ?? { resolved: false, charged: 0n, shortfall: 0n, endedBy })
      return
    }
    case 'void':
      expect((await ledger.void(`${operation.id}`, nowMs)).resolved).toBe(model.void(operation.id))
      return
    case 'expire': {
      const overdue = model.overdue(nowMs)
      expect(await ledger.expire(nowMs, operation.limit)).toBe(Math.min(overdue.length, operation.limit))
      // The rest too, so that the model need not know which ones were taken.
      expect(await ledger.expire(nowMs, overdue.length)).toBe(Math.max(0, overdue.length - operation.limit))
      for (const id of overdue) model.expire(id)
    }
  }
}

/** Plays a history on an empty ledger and on the model, and compares them after every step, to the nano-dollar. */
export async function expectLikeModel(ledger: Ledger, history: readonly LedgerOperation[]): Promise<void> {
  const model = new LedgerModel()
  let nowMs = START_MS
  await ledger.createAccount({ id: ACCOUNT_ID }, nowMs)
  for (const operation of history) {
    if (operation.kind === 'wait') nowMs += operation.ms
    else await apply(operation, ledger, model, nowMs)

    const account = await ledger.account(ACCOUNT_ID)
    const lines = await ledger.entries(ACCOUNT_ID, 1_000)
    expect(account).toMatchObject({ balance: model.balance, held: model.held, owed: model.owed })
    expect(lines.reduce((sum, line) => sum + line.owed, 0n)).toBe(model.owed)
    expect(model.balance >= 0n).toBe(true)
    expect(lines.reduce((sum, line) => sum + line.amount, 0n)).toBe(model.balance + model.held)
  }
}
