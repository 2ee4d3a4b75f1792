import type { GatewayStore } from '../../stores/gateway-store.ts'
import type { IdempotencyClaim, StoredAnswer } from '../../stores/idempotency-store.ts'
import type { Reservation } from '../../stores/ledger.ts'

/** The parts of a driver that the ledger's suite needs. */
export type LedgerStore = Pick<GatewayStore, 'ledger' | 'idempotency'>

export const EXAMPLE_NOW_MS = 1_750_000_000_000
export const ACCOUNT_ID = 'account_1'

/** Makes the example account and gives it money. */
export async function fundedLedger({ ledger }: LedgerStore, amount: bigint): Promise<void> {
  await ledger.createAccount({ id: ACCOUNT_ID }, EXAMPLE_NOW_MS)
  await ledger.credit({ creditId: 'credit_1', accountId: ACCOUNT_ID, amount, description: 'start' }, EXAMPLE_NOW_MS)
}

export function exampleReservation(overrides: Partial<Reservation> = {}): Reservation {
  return {
    holdId: 'hold_1',
    accountId: ACCOUNT_ID,
    keyId: 'key_1',
    amount: 100n,
    expiresAtMs: EXAMPLE_NOW_MS + 900_000,
    ...overrides,
  }
}

export function exampleClaim(overrides: Partial<IdempotencyClaim> = {}): IdempotencyClaim {
  return {
    accountId: ACCOUNT_ID,
    key: 'order-17',
    fingerprint: 'a'.repeat(64),
    expiresAtMs: EXAMPLE_NOW_MS + 86_400_000,
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

/** An answer in plain arrays, the same whatever kind of byte array a driver gives back. */
export function readableAnswer(answer: StoredAnswer): unknown {
  return { status: answer.status, headers: [...answer.headers], body: [...answer.body] }
}
