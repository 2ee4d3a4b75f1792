import { expect } from 'vitest'
import type { GatewayStore } from '../../../../src/stores/gateway-store.ts'
import { exampleDraft } from '../../../../src/testing/contracts/contract-runner.ts'
import { expectExactMoney } from './exact-money.ts'
import { untilAnswered } from './until-answered.ts'

const HOUR_MS = 3_600_000

/** Calls of many accounts at the same time: each reserves, and then settles or voids, repeated until the server answers. */
export interface Chats {
  /** Amounts of the chats that were charged, by hold. */
  readonly due: ReadonlyMap<string, bigint>
  /** Resolves after so many more calls were repeated. */
  moreRepeated(count: number): Promise<void>
  /** Resolves after so many more chats were settled. */
  moreSettled(count: number): Promise<void>
  /** Starts no more chats, and resolves when those in flight have ended. */
  end(): Promise<void>
}

/** Options of {@link startChats}. */
export interface ChatsOptions {
  /** Clock of the calls. Default: the machine's. */
  readonly now?: () => number
  /** Start of the ids of the holds. Default `chat`. */
  readonly name?: string
}

/** Opens accounts with money: `account_0` and so on. */
export async function openAccounts({ ledger }: GatewayStore, count: number, nowMs: number): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, number) => `account_${number}`)
  for (const accountId of ids) {
    await ledger.createAccount({ id: accountId }, nowMs)
    const amount = 1_000_000_000n
    await ledger.credit({ creditId: `start_${accountId}`, accountId, amount, description: 'start' }, nowMs)
  }
  return ids
}

/** Starts a lane of chats for each account, one chat after the other. */
export function startChats(
  { ledger }: GatewayStore,
  accountIds: readonly string[],
  { now = Date.now, name = 'chat' }: ChatsOptions = {},
): Chats {
  const due = new Map<string, bigint>()
  let isOver = false
  let repeated = 0
  let wake = (): void => {}
  const onRepeat = (): void => {
    repeated++
    wake()
  }

  async function chat(accountId: string, number: number): Promise<void> {
    const holdId = `${name}_${accountId}_${number}`
    const keyId = `key_${accountId}`
    const amount = BigInt(number % 50)
    const reservation = { holdId, accountId, keyId, amount, expiresAtMs: now() + HOUR_MS }
    const outcome = await untilAnswered(() => ledger.reserve(reservation, now()), onRepeat)
    expect(outcome).toEqual({ status: 'held' })
    if (number % 4 === 0) {
      await untilAnswered(() => ledger.void(holdId, now()), onRepeat)
      return
    }
    const details = { keyId, endpoint: 'chat', model: 'm', vendor: 'v', usage: { inputTokens: 1 } }
    const record = exampleDraft({ id: holdId, accountId, keyId })
    const settlement = {
      holdId,
      amount: amount * 2n,
      description: 'chat m',
      details,
      record,
      owner: { accountId, keyId },
    }
    const end = await untilAnswered(() => ledger.settle(settlement, now()), onRepeat)
    expect(end).toMatchObject(end.resolved ? {} : { endedBy: 'settled' })
    due.set(holdId, settlement.amount)
    wake()
  }

  const lanes = Promise.all(
    accountIds.map(async (accountId) => {
      for (let number = 0; !isOver; number++) await chat(accountId, number)
    }),
  )

  /** Rejects if a lane fails before. */
  async function until(isReached: () => boolean): Promise<void> {
    while (!isReached()) {
      const next = new Promise<void>((resolve) => {
        wake = resolve
      })
      await Promise.race([next, lanes])
    }
  }

  return {
    due,
    moreRepeated(count) {
      const enough = repeated + count
      return until(() => repeated >= enough)
    },
    moreSettled(count) {
      const enough = due.size + count
      return until(() => due.size >= enough)
    },
    async end() {
      isOver = true
      await lanes
    },
  }
}

/** Checks all books, and that the journal charges exactly the chats that were settled, once each. */
export async function expectExactChats(store: GatewayStore, ...chats: readonly Chats[]): Promise<void> {
  const lines = await expectExactMoney(store)
  const charges = lines.filter(({ kind }) => kind === 'charge')
  const due = new Map(chats.flatMap((each) => [...each.due]))
  expect(new Map(charges.map((line) => [line.holdId, line.due]))).toEqual(due)
  expect(charges.length).toBe(due.size)
}
