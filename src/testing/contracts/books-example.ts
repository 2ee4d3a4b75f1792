import type { LedgerEntry } from '../../stores/journal.ts'
import { ACCOUNT_ID, EXAMPLE_NOW_MS, exampleReservation, type LedgerStore } from './store-example.ts'

export const NOW = EXAMPLE_NOW_MS
export const DETAILS = {
  keyId: 'key_1',
  endpoint: 'chat',
  model: 'gp-5.4',
  vendor: 'openai',
  usage: { inputTokens: 7 },
} as const
export const EVERYTHING = { accountId: ACCOUNT_ID, fromMs: 0, untilMs: NOW * 2, after: undefined, limit: 100 } as const

/** Returns balance, held money and debt of the example account. */
export async function moneyOf({ ledger }: LedgerStore): Promise<Readonly<Record<string, bigint | undefined>>> {
  const account = await ledger.account(ACCOUNT_ID)
  return { balance: account?.balance, held: account?.held, owed: account?.owed }
}

/** Returns kinds and amounts of its newest lines. */
export async function newestKinds({ ledger }: LedgerStore, limit: number): Promise<unknown[]> {
  return (await ledger.entries(ACCOUNT_ID, limit)).map(({ kind, amount }) => [kind, amount])
}

/** Reserves and settles. Returns the line of the charge. */
export async function charged(store: LedgerStore, holdId: string, amount: bigint, nowMs = NOW): Promise<LedgerEntry> {
  await store.ledger.reserve(exampleReservation({ holdId, amount: 1n, expiresAtMs: nowMs + 900_000 }), nowMs)
  await store.ledger.settle({ holdId, amount, description: 'chat gp-5.4', details: DETAILS }, nowMs)
  const lines = await store.ledger.lines({ ...EVERYTHING, order: 'newest' })
  const line = lines.find((found) => found.holdId === holdId && found.kind === 'charge')
  if (line === undefined) throw new Error(`the hold ${holdId} was not charged`)
  return line
}
