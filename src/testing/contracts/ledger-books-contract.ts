import { entryNumber, type LedgerEntry } from '../../stores/journal.ts'
import {
  ACCOUNT_ID,
  type ContractRunner,
  type ContractSubject,
  contractCases,
  exampleReservation,
  failureName,
  fundedLedger,
  type LedgerStore,
  NOW_MS,
  placeHold,
  settleHold,
} from './contract-runner.ts'

/** Tests what a ledger guarantees about its books: manual changes, pages and sums of the journal, and credits that expire. */
export function describeLedgerBooks(runner: ContractRunner, subject: ContractSubject<LedgerStore>): void {
  describeLedgerByHand(runner, subject)
  describeLedgerPages(runner, subject)
  describeExpiringCredits(runner, subject)
}

/** Tests what a ledger guarantees about corrections, refunds and open holds. */
function describeLedgerByHand(runner: ContractRunner, subject: ContractSubject<LedgerStore>): void {
  const { describe, check, expect } = contractCases(runner, subject)
  const adjustment = { adjustmentId: 'adjustment_1', accountId: ACCOUNT_ID, amount: -300n, description: 'by mistake' }

  describe('ledger contract: changes by hand', () => {
    check('adjusts a balance in both directions, once for each id', async (store) => {
      await fundedLedger(store, 1_000n)
      expect(await store.ledger.adjust(adjustment, NOW)).toEqual('adjusted')
      expect(await store.ledger.adjust(adjustment, NOW)).toEqual('repeated')
      expect(await store.ledger.adjust({ ...adjustment, adjustmentId: 'a2', amount: 50n }, NOW)).toEqual('adjusted')
      expect(await moneyOf(store)).toEqual({ balance: 750n, held: 0n, owed: 0n })
      const [line] = await store.ledger.entries(ACCOUNT_ID, 1)
      expect([line?.kind, line?.amount, line?.operationId, line?.description, line?.balanceAfter]).toEqual([
        'adjustment',
        50n,
        'a2',
        'by mistake',
        750n,
      ])
    })

    check('refuses a debit above the balance, held money not counted, and changes nothing', async (store) => {
      await fundedLedger(store, 1_000n)
      await placeHold(store, { amount: 800n })
      expect(await store.ledger.adjust(adjustment, NOW)).toEqual('insufficient_balance')
      expect(await moneyOf(store)).toEqual({ balance: 200n, held: 800n, owed: 0n })
      expect(await store.ledger.adjust({ ...adjustment, amount: -200n }, NOW)).toEqual('adjusted')
    })

    check('has a metered account owe what its balance lacks for a debit, once for each id', async (store) => {
      await fundedLedger(store, 100n)
      await store.ledger.updateAccount(ACCOUNT_ID, { billing: 'metered', creditLimit: 50n })
      expect(await store.ledger.adjust(adjustment, NOW)).toEqual('adjusted')
      expect(await store.ledger.adjust(adjustment, NOW)).toEqual('repeated')
      expect(await moneyOf(store)).toEqual({ balance: 0n, held: 0n, owed: 200n })
      const [line] = await store.ledger.entries(ACCOUNT_ID, 1)
      expect([line?.kind, line?.amount, line?.owed, line?.balanceAfter]).toEqual(['adjustment', -100n, 200n, 0n])
      expect(await store.ledger.adjust({ ...adjustment, adjustmentId: 'a2', amount: 250n }, NOW)).toEqual('adjusted')
      expect(await moneyOf(store)).toEqual({ balance: 50n, held: 0n, owed: 0n })
      const tooMuch = { ...adjustment, adjustmentId: 'a3', amount: -(2n ** 63n - 1n) }
      expect(await store.ledger.adjust(tooMuch, NOW)).toEqual('adjusted')
      expect(await failureName(() => store.ledger.adjust({ ...tooMuch, adjustmentId: 'a4' }, NOW))).toEqual(
        'RangeError',
      )
      expect(await moneyOf(store)).toEqual({ balance: 0n, held: 0n, owed: 2n ** 63n - 51n })
    })

    check(
      'debits an account that says nothing as the caller bills, one that says it is prepaid never',
      async (store) => {
        await fundedLedger(store, 100n)
        const metered = { ...adjustment, billing: 'metered' as const }
        expect(await store.ledger.adjust(metered, NOW)).toEqual('adjusted')
        expect(await moneyOf(store)).toEqual({ balance: 0n, held: 0n, owed: 200n })
        await store.ledger.updateAccount(ACCOUNT_ID, { billing: 'prepaid' })
        expect(await store.ledger.adjust({ ...metered, adjustmentId: 'a2' }, NOW)).toEqual('insufficient_balance')
      },
    )

    check('tells thresholds of the balance that a refund or an adjustment has left', async (store) => {
      await fundedLedger(store, 1_000n)
      const { id: chargeId } = await charged(store, 'hold_1', 900n)
      await store.ledger.refund({ refundId: 'r1', chargeId, amount: 100n, description: 'x' }, NOW)
      await store.ledger.adjust({ ...adjustment, amount: 200n }, NOW)
      await placeHold(store, { holdId: 'hold_2', amount: 200n })
      const thresholds = { caps: [], balance: [50] }
      const settlement = { holdId: 'hold_2', amount: 200n, description: 'chat', thresholds }
      const { crossings } = await store.ledger.settle(settlement, NOW)
      expect(crossings).toEqual([{ of: 'balance', period: undefined, percent: 50, bound: 400n, used: 200n }])
    })

    check('refuses an adjustment of nothing, for nobody, or of a used id', async (store) => {
      await fundedLedger(store, 1_000n)
      await store.ledger.createAccount({ id: 'account_2' }, NOW)
      await store.ledger.adjust(adjustment, NOW)
      for (const wrong of [
        { adjustmentId: 'a2', amount: 0n },
        { adjustmentId: 'a2', amount: 2n ** 63n - 1n },
        { adjustmentId: 'a2', amount: 2n ** 64n },
        { adjustmentId: 'a2', accountId: 'nobody' },
        { amount: -299n },
        { accountId: 'account_2' },
      ]) {
        const call = () => store.ledger.adjust({ ...adjustment, ...wrong }, NOW)
        expect(await failureName(call)).toEqual('RangeError')
      }
      expect(await moneyOf(store)).toEqual({ balance: 700n, held: 0n, owed: 0n })
    })

    check('pays what is owed from an adjustment first', async (store) => {
      await fundedLedger(store, 100n)
      await charged(store, 'hold_1', 400n)
      await store.ledger.adjust({ ...adjustment, amount: 500n }, NOW)
      expect(await moneyOf(store)).toEqual({ balance: 200n, held: 0n, owed: 0n })
      expect(await newestKinds(store, 2)).toEqual([
        ['repayment', -300n],
        ['adjustment', 500n],
      ])
    })

    check('refunds a charge in parts, never more than it was, once for each id', async (store) => {
      await fundedLedger(store, 1_000n)
      const { id: chargeId } = await charged(store, 'hold_1', 400n)
      const refund = { refundId: 'refund_1', chargeId, amount: 150n, description: 'bad answer' }
      const made = { status: 'refunded', accountId: ACCOUNT_ID, amount: 150n }
      expect(await store.ledger.refund(refund, NOW)).toEqual(made)
      expect(await store.ledger.refund(refund, NOW)).toEqual({ ...made, status: 'repeated' })
      const more = { ...refund, refundId: 'refund_2' }
      expect(await store.ledger.refund({ ...more, amount: 251n }, NOW)).toEqual({ status: 'above_charge', left: 250n })
      expect(await store.ledger.refund({ ...more, amount: undefined }, NOW)).toEqual({ ...made, amount: 250n })
      expect(await store.ledger.refund({ ...more, refundId: 'refund_3', amount: undefined }, NOW)).toEqual({
        status: 'above_charge',
        left: 0n,
      })
      expect(await moneyOf(store)).toEqual({ balance: 1_000n, held: 0n, owed: 0n })
      const [line] = await store.ledger.entries(ACCOUNT_ID, 1)
      expect([line?.kind, line?.amount, line?.operationId, line?.chargeId, line?.holdId, line?.balanceAfter]).toEqual([
        'refund',
        250n,
        'refund_2',
        chargeId,
        'hold_1',
        1_000n,
      ])
    })

    check('rejects a refund of zero, of a line that is not a charge, or with a used id', async (store) => {
      await fundedLedger(store, 1_000n)
      const [credit] = await store.ledger.entries(ACCOUNT_ID, 1)
      const { id: chargeId } = await charged(store, 'hold_1', 400n)
      const { id: otherId } = await charged(store, 'hold_2', 100n)
      const refund = { refundId: 'refund_1', chargeId, amount: 150n, description: 'bad answer' }
      for (const unknown of [credit?.id ?? '', 'entry_999999999', 'hold_1', ''])
        expect(await store.ledger.refund({ ...refund, chargeId: unknown }, NOW)).toEqual({ status: 'unknown_charge' })
      await store.ledger.refund(refund, NOW)
      for (const wrong of [
        { refundId: 'r2', amount: 0n },
        { refundId: 'r2', amount: -1n },
        { amount: 149n },
        { chargeId: otherId },
      ]) {
        const call = () => store.ledger.refund({ ...refund, ...wrong }, NOW)
        expect(await failureName(call)).toEqual('RangeError')
      }
      expect((await moneyOf(store))['balance']).toEqual(650n)
    })

    check('refunds the owed part of a charge too, and pays the debt from it', async (store) => {
      await fundedLedger(store, 100n)
      const charge = await charged(store, 'hold_1', 400n)
      expect([charge.amount, charge.due]).toEqual([-100n, 400n])
      const refund = { refundId: 'refund_1', chargeId: charge.id, amount: undefined, description: 'bad answer' }
      await store.ledger.refund(refund, NOW)
      expect(await moneyOf(store)).toEqual({ balance: 100n, held: 0n, owed: 0n })
    })

    check('gives a refund back to the spending caps that the charge counts in', async (store) => {
      await fundedLedger(store, 10_000n)
      const cap = { amount: 1_000n, period: 'month' } as const
      const reserve = async (holdId: string, amount: bigint, owner: 'account' | 'key' = 'key') =>
        (await placeHold(store, { holdId, amount, caps: { [owner]: cap } })).status
      await reserve('hold_1', 900n)
      await settleHold(store, 800n)
      const [charge] = await store.ledger.entries(ACCOUNT_ID, 1)
      expect(await reserve('hold_2', 201n)).toEqual('spending_limit')
      expect(await reserve('hold_2a', 201n, 'account')).toEqual('spending_limit')
      await store.ledger.refund({ refundId: 'r1', chargeId: charge?.id ?? '', amount: 500n, description: 'x' }, NOW)
      expect(await reserve('hold_3', 701n)).toEqual('spending_limit')
      expect(await reserve('hold_3a', 701n, 'account')).toEqual('spending_limit')
      expect(await reserve('hold_4', 700n)).toEqual('held')
    })

    check('makes as many of 40 refunds at once as the charge has room for', async (store) => {
      await fundedLedger(store, 1_000n)
      const { id: chargeId } = await charged(store, 'hold_1', 100n)
      const results = await Promise.all(
        Array.from({ length: 40 }, async (_, index) =>
          store.ledger.refund({ refundId: `refund_${index % 20}`, chargeId, amount: 30n, description: 'x' }, NOW),
        ),
      )
      expect(results.filter(({ status }) => status === 'refunded').length).toEqual(3)
      expect((await moneyOf(store))['balance']).toEqual(990n)
    })

    check('lists open holds, oldest first, of one account or of all', async (store) => {
      await fundedLedger(store, 1_000n)
      await store.ledger.createAccount({ id: 'account_2' }, NOW)
      const hold = { keyId: 'key_1', expiresAtMs: NOW + 900_000 }
      const place = (holdId: string, accountId: string, amount: bigint, nowMs: number) =>
        placeHold(store, { holdId, accountId, amount }, nowMs)
      await place('hold_2', ACCOUNT_ID, 20n, NOW)
      await place('hold_1', ACCOUNT_ID, 10n, NOW)
      await place('hold_3', 'account_2', 0n, NOW + 1)
      await place('hold_4', ACCOUNT_ID, 40n, NOW + 2)
      await place('hold_5', ACCOUNT_ID, 50n, NOW + 3)
      await store.ledger.void('hold_5', NOW + 3)
      const list = async (accountId: string | undefined, limit = 10, after?: { createdAtMs: number; id: string }) =>
        store.ledger.openHolds({ accountId, after, limit })
      const all = await list(undefined)
      expect(all.map(({ id }) => id)).toEqual(['hold_1', 'hold_2', 'hold_3', 'hold_4'])
      expect(all[0]).toEqual({ id: 'hold_1', accountId: ACCOUNT_ID, amount: 10n, createdAtMs: NOW, ...hold })
      expect((await list(ACCOUNT_ID)).map(({ id }) => id)).toEqual(['hold_1', 'hold_2', 'hold_4'])
      expect((await list(undefined, 2, all[1])).map(({ id }) => id)).toEqual(['hold_3', 'hold_4'])
      expect(await list('nobody')).toEqual([])
    })

    check('lists accounts by id in pages, and those whose id contains a text', async ({ ledger }) => {
      for (const id of ['b_2', 'a_1', 'B_3', 'a%_4', 'c\u00e9']) await ledger.createAccount({ id }, NOW)
      const list = async (query: { search?: string; after?: string; limit: number }) =>
        (await ledger.listAccounts(query)).map(({ id }) => id)
      expect(await list({ limit: 10 })).toEqual(['B_3', 'a%_4', 'a_1', 'b_2', 'c\u00e9'])
      expect(await list({ limit: 2, after: 'a%_4' })).toEqual(['a_1', 'b_2'])
      expect(await list({ limit: 10, search: '_' })).toEqual(['B_3', 'a%_4', 'a_1', 'b_2'])
      expect(await list({ limit: 10, search: '%' })).toEqual(['a%_4'])
    })
  })
}

/** Tests what a ledger guarantees about the pages and sums of its journal. */
function describeLedgerPages(runner: ContractRunner, subject: ContractSubject<LedgerStore>): void {
  const { describe, check, expect } = contractCases(runner, subject)

  describe('ledger contract: pages of the journal', () => {
    check('says of a charge what it was for, what was due, and what was left', async (store) => {
      await fundedLedger(store, 100n)
      const line = await charged(store, 'hold_1', 400n)
      expect([line.details, line.due, line.amount, line.balanceAfter]).toEqual([DETAILS, 400n, -100n, 0n])
    })

    check('gives lines of a range in both orders, page by page', async (store) => {
      await fundedLedger(store, 1_000n)
      for (const [index, time] of [1, 1, 2, 5, 5, 9].entries()) await charged(store, `hold_${index}`, 10n, NOW + time)
      const range = { ...EVERYTHING, fromMs: NOW + 1, untilMs: NOW + 9 }
      const ids = async (order: 'newest' | 'oldest'): Promise<string[]> => {
        const found: LedgerEntry[] = []
        for (;;) {
          const last = found.at(-1)
          const after = last && { createdAtMs: last.createdAtMs, number: entryNumber(last.id) ?? 0n }
          const page = await store.ledger.lines({ ...range, order, after, limit: 2 })
          if (page.length === 0) return found.map(({ holdId }) => holdId ?? '')
          found.push(...page)
        }
      }
      expect(await ids('oldest')).toEqual(['hold_0', 'hold_1', 'hold_2', 'hold_3', 'hold_4'])
      expect(await ids('newest')).toEqual(['hold_4', 'hold_3', 'hold_2', 'hold_1', 'hold_0'])
    })

    check('never writes a line before another of its account, whatever the clocks say', async (store) => {
      await fundedLedger(store, 1_000n)
      await charged(store, 'hold_1', 10n, NOW + 50)
      await charged(store, 'hold_2', 10n, NOW + 20)
      const lines = await store.ledger.lines({ ...EVERYTHING, order: 'newest' })
      expect(lines.map(({ holdId, createdAtMs }) => [holdId, createdAtMs])).toEqual([
        ['hold_2', NOW + 50],
        ['hold_1', NOW + 50],
        [undefined, NOW],
      ])
    })

    check('sums a range by kind, beginning with what was there before', async (store) => {
      await fundedLedger(store, 1_000n)
      await charged(store, 'hold_1', 100n, NOW + 1)
      await charged(store, 'hold_2', 950n, NOW + 2)
      await store.ledger.adjust({ adjustmentId: 'a', accountId: ACCOUNT_ID, amount: 20n, description: 'x' }, NOW + 3)
      const sums = async (fromMs: number, untilMs: number) =>
        store.ledger.sums({ accountId: ACCOUNT_ID, fromMs, untilMs })
      expect(await sums(NOW + 2, NOW + 4)).toEqual({
        openingBalance: 900n,
        openingOwed: 0n,
        sums: [
          { kind: 'charge', lines: 1, amount: -900n, owed: 0n },
          { kind: 'owed', lines: 1, amount: 0n, owed: 50n },
          { kind: 'repayment', lines: 1, amount: -20n, owed: -20n },
          { kind: 'adjustment', lines: 1, amount: 20n, owed: 0n },
        ],
      })
      expect(await sums(NOW + 3, NOW + 3)).toEqual({ openingBalance: 0n, openingOwed: 50n, sums: [] })
      expect(await sums(0, NOW)).toEqual({ openingBalance: 0n, openingOwed: 0n, sums: [] })
    })
  })
}

/** Tests what a ledger guarantees about credits that expire. */
function describeExpiringCredits(runner: ContractRunner, subject: ContractSubject<LedgerStore>): void {
  const { describe, check, expect } = contractCases(runner, subject)
  const give = async ({ ledger }: LedgerStore, creditId: string, amount: bigint, expiresAtMs?: number) =>
    ledger.credit({ creditId, accountId: ACCOUNT_ID, amount, description: 'gift', expiresAtMs }, NOW)
  const hold = async ({ ledger }: LedgerStore, holdId: string, amount: bigint, nowMs: number) =>
    (await ledger.reserve(exampleReservation({ holdId, amount, expiresAtMs: nowMs + 900_000 }), nowMs)).status
  const settle = async ({ ledger }: LedgerStore, holdId: string, amount: bigint, nowMs: number) =>
    ledger.settle({ holdId, amount, description: 'chat' }, nowMs)

  describe('ledger contract: credits that expire', () => {
    check('takes what was not spent of a credit when it expires, once', async (store) => {
      await fundedLedger(store, 1_000n)
      await give(store, 'gift_1', 300n, NOW + 10)
      await charged(store, 'hold_1', 120n)
      expect(await store.ledger.expireCredits(NOW + 9, 10)).toEqual(0)
      expect(await store.ledger.expireCredits(NOW + 10, 10)).toEqual(1)
      expect(await store.ledger.expireCredits(NOW + 10, 10)).toEqual(0)
      const [line] = await store.ledger.entries(ACCOUNT_ID, 1)
      expect([line?.kind, line?.amount, line?.operationId, line?.balanceAfter]).toEqual([
        'expiry',
        -180n,
        'gift_1',
        1_000n,
      ])
      expect(await moneyOf(store)).toEqual({ balance: 1_000n, held: 0n, owed: 0n })
    })

    check('spends what expires first first, and money that does not expire last', async (store) => {
      await fundedLedger(store, 1_000n)
      await give(store, 'gift_late', 200n, NOW + 20)
      await give(store, 'gift_soon', 100n, NOW + 10)
      await charged(store, 'hold_1', 150n)
      expect(await store.ledger.expireCredits(NOW + 30, 10)).toEqual(1)
      expect(await newestKinds(store, 2)).toEqual([
        ['expiry', -150n],
        ['charge', -150n],
      ])
      expect((await moneyOf(store))['balance']).toEqual(1_000n)
    })

    check('is spent by no call that begins after the expiry, swept or not', async (store) => {
      await store.ledger.createAccount({ id: ACCOUNT_ID }, NOW)
      await give(store, 'gift_1', 300n, NOW + 10)
      expect(await hold(store, 'hold_1', 100n, NOW + 9)).toEqual('held')
      expect(await hold(store, 'hold_2', 1n, NOW + 10)).toEqual('insufficient_balance')
      expect(await moneyOf(store)).toEqual({ balance: 0n, held: 100n, owed: 0n })
    })

    check('expires at once for a metered account, whose calls hold no balance', async (store) => {
      await fundedLedger(store, 50n)
      await store.ledger.updateAccount(ACCOUNT_ID, { billing: 'metered' })
      await give(store, 'gift_1', 300n, NOW + 10)
      await hold(store, 'hold_1', 250n, NOW)
      await hold(store, 'hold_2', 250n, NOW)
      await settle(store, 'hold_1', 200n, NOW + 9)
      await settle(store, 'hold_2', 80n, NOW + 10)
      expect(await moneyOf(store)).toEqual({ balance: 0n, held: 0n, owed: 30n })
      expect(await newestKinds(store, 4)).toEqual([
        ['owed', 0n],
        ['charge', -50n],
        ['expiry', -100n],
        ['charge', -200n],
      ])
      expect(await store.ledger.expireCredits(NOW + 10, 10)).toEqual(0)
    })

    check('pays for calls that began before the expiry; what they give back expires then', async (store) => {
      await fundedLedger(store, 1_000n)
      await give(store, 'gift_1', 300n, NOW + 10)
      await hold(store, 'hold_1', 250n, NOW)
      await store.ledger.expireCredits(NOW + 10, 10)
      expect(await moneyOf(store)).toEqual({ balance: 1_000n, held: 250n, owed: 0n })
      await hold(store, 'hold_2', 70n, NOW + 11)
      await settle(store, 'hold_2', 60n, NOW + 12)
      expect(await moneyOf(store)).toEqual({ balance: 940n, held: 250n, owed: 0n })
      await settle(store, 'hold_1', 200n, NOW + 13)
      expect(await newestKinds(store, 4)).toEqual([
        ['expiry', -50n],
        ['charge', -200n],
        ['charge', -60n],
        ['expiry', -50n],
      ])
      expect(await moneyOf(store)).toEqual({ balance: 940n, held: 0n, owed: 0n })
    })

    check('expires with the hold that is voided or expires after it', async (store) => {
      await store.ledger.createAccount({ id: ACCOUNT_ID }, NOW)
      await give(store, 'gift_1', 300n, NOW + 10)
      await hold(store, 'hold_1', 100n, NOW)
      await hold(store, 'hold_2', 200n, NOW)
      await store.ledger.void('hold_1', NOW + 20)
      expect(await moneyOf(store)).toEqual({ balance: 0n, held: 200n, owed: 0n })
      expect(await store.ledger.expire(NOW + 900_000, 10)).toEqual(1)
      expect(await moneyOf(store)).toEqual({ balance: 0n, held: 0n, owed: 0n })
    })

    check('is not charged beyond a hold once it has expired: the account owes', async (store) => {
      await store.ledger.createAccount({ id: ACCOUNT_ID }, NOW)
      await give(store, 'gift_1', 300n, NOW + 10)
      await hold(store, 'hold_1', 100n, NOW)
      expect(await settle(store, 'hold_1', 250n, NOW + 10)).toEqual({ resolved: true, charged: 100n, shortfall: 150n })
      expect(await moneyOf(store)).toEqual({ balance: 0n, held: 0n, owed: 150n })
    })

    check('pays what is owed, and only its rest expires', async (store) => {
      await fundedLedger(store, 100n)
      await charged(store, 'hold_1', 250n)
      await give(store, 'gift_1', 200n, NOW + 10)
      expect(await moneyOf(store)).toEqual({ balance: 50n, held: 0n, owed: 0n })
      await store.ledger.expireCredits(NOW + 10, 10)
      expect(await moneyOf(store)).toEqual({ balance: 0n, held: 0n, owed: 0n })
      expect(await newestKinds(store, 1)).toEqual([['expiry', -50n]])
    })

    check('is spent by debits before other money', async (store) => {
      await fundedLedger(store, 100n)
      await give(store, 'gift_1', 200n, NOW + 10)
      await store.ledger.adjust({ adjustmentId: 'a', accountId: ACCOUNT_ID, amount: -150n, description: 'x' }, NOW)
      await store.ledger.expireCredits(NOW + 10, 10)
      expect(await moneyOf(store)).toEqual({ balance: 100n, held: 0n, owed: 0n })
    })

    check('expires once when many sweep and settle at the same time', async (store) => {
      await fundedLedger(store, 1_000n)
      await give(store, 'gift_1', 500n, NOW + 10)
      for (let index = 0; index < 10; index++) await hold(store, `hold_${index}`, 40n, NOW)
      await Promise.all([
        ...Array.from({ length: 10 }, async (_, index) => settle(store, `hold_${index}`, 30n, NOW + 10)),
        ...Array.from({ length: 10 }, async () => store.ledger.expireCredits(NOW + 10, 10)),
      ])
      expect(await moneyOf(store)).toEqual({ balance: 1_000n, held: 0n, owed: 0n })
    })
  })
}

const NOW = NOW_MS
const DETAILS = {
  keyId: 'key_1',
  endpoint: 'chat',
  model: 'gp-5.4',
  vendor: 'openai',
  usage: { inputTokens: 7 },
} as const
const EVERYTHING = { accountId: ACCOUNT_ID, fromMs: 0, untilMs: NOW * 2, after: undefined, limit: 100 } as const

/** Returns balance, held money and debt of the example account. */
async function moneyOf({ ledger }: LedgerStore): Promise<Readonly<Record<string, bigint | undefined>>> {
  const account = await ledger.account(ACCOUNT_ID)
  return { balance: account?.balance, held: account?.held, owed: account?.owed }
}

/** Returns kinds and amounts of its newest lines. */
async function newestKinds({ ledger }: LedgerStore, limit: number): Promise<unknown[]> {
  return (await ledger.entries(ACCOUNT_ID, limit)).map(({ kind, amount }) => [kind, amount])
}

/** Reserves and settles. Returns the line of the charge. */
async function charged(store: LedgerStore, holdId: string, amount: bigint, nowMs = NOW): Promise<LedgerEntry> {
  await placeHold(store, { holdId, amount: 1n, expiresAtMs: nowMs + 900_000 }, nowMs)
  await settleHold(store, amount, { holdId, description: 'chat gp-5.4', details: DETAILS }, nowMs)
  const lines = await store.ledger.lines({ ...EVERYTHING, order: 'newest' })
  const line = lines.find((found) => found.holdId === holdId && found.kind === 'charge')
  if (line === undefined) throw new Error(`the hold ${holdId} was not charged`)
  return line
}
