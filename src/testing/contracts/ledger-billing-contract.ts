import type { Reservation } from '../../stores/ledger.ts'
import type { SpendingCap } from '../../stores/principal.ts'
import {
  ACCOUNT_ID,
  balanceOf,
  type ContractRunner,
  type ContractSubject,
  contractCases,
  exampleAnswer,
  exampleClaim,
  exampleKey,
  exampleReservation,
  failureName,
  fundedLedger,
  type LedgerStore,
  NOW_MS,
  placeHold,
  readableAnswer,
  settleHold,
} from './contract-runner.ts'

const HELD = { status: 'held' }
const FROZEN = { reason: 'chargeback', atMs: NOW_MS }
const THRESHOLDS = { caps: [50, 80, 100], balance: [50, 80, 100] }

/** Tests what a ledger guarantees about metered and frozen accounts, and about thresholds. */
export function describeLedgerBilling(runner: ContractRunner, subject: ContractSubject<LedgerStore>): void {
  const { describe, check, expect } = contractCases(runner, subject)
  const metered = async ({ ledger }: LedgerStore, creditLimit?: bigint) =>
    ledger.createAccount({ id: ACCOUNT_ID, ...(creditLimit === undefined ? {} : { creditLimit }) }, NOW_MS)
  const reserve = async ({ ledger }: LedgerStore, holdId: string, amount: bigint) =>
    ledger.reserve(exampleReservation({ holdId, amount, billing: 'metered' }), NOW_MS)
  const settle = async ({ ledger }: LedgerStore, holdId: string, amount: bigint) =>
    ledger.settle({ holdId, amount, description: 'chat', thresholds: THRESHOLDS }, NOW_MS)
  const charge = async ({ ledger }: LedgerStore, holdId: string, amount: bigint) => {
    await ledger.reserve(exampleReservation({ holdId, amount }), NOW_MS)
    const settlement = { holdId, amount, description: 'chat', thresholds: THRESHOLDS }
    const { crossings = [] } = await ledger.settle(settlement, NOW_MS)
    return crossings.map(({ of, percent, used, bound }) => `${of} ${percent}: ${used} of ${bound}`)
  }
  const moneyOf = async ({ ledger }: LedgerStore) => {
    const { balance, held, owed, creditHeld } = (await ledger.account(ACCOUNT_ID))!
    const lines = await ledger.entries(ACCOUNT_ID, 100)
    expect(lines.reduce((sum, line) => sum + line.amount, 0n)).toEqual(balance + held)
    expect(lines.reduce((sum, line) => sum + line.owed, 0n)).toEqual(owed)
    return { balance, held, owed, creditHeld }
  }

  describe('ledger contract: metered accounts', () => {
    check('hold and charge without a balance, and owe what was charged', async (store) => {
      await metered(store)
      expect(await reserve(store, 'hold_1', 400n)).toEqual(HELD)
      expect(await moneyOf(store)).toEqual({ balance: 0n, held: 0n, owed: 0n, creditHeld: 400n })
      expect(await settle(store, 'hold_1', 430n)).toEqual({ resolved: true, charged: 430n, shortfall: 0n })
      expect(await moneyOf(store)).toEqual({ balance: 0n, held: 0n, owed: 430n, creditHeld: 0n })
      expect(await reserve(store, 'hold_2', 400n)).toEqual(HELD)
      await store.ledger.void('hold_2', NOW_MS)
      await reserve(store, 'hold_3', 400n)
      await store.ledger.expire(NOW_MS + 900_001, 10)
      expect(await moneyOf(store)).toEqual({ balance: 0n, held: 0n, owed: 430n, creditHeld: 0n })
    })

    check('owe no more than their credit limit, of many reservations at once', async (store) => {
      await metered(store, 1_000n)
      const outcomes = await Promise.all(Array.from({ length: 30 }, (_, index) => reserve(store, `hold_${index}`, 90n)))
      expect(outcomes.filter(({ status }) => status === 'held').length).toEqual(11)
      expect(outcomes.at(-1)).toEqual({ status: 'credit_limit' })
      await settle(store, 'hold_0', 40n)
      expect(await reserve(store, 'hold_30', 61n)).toEqual({ status: 'credit_limit' })
      expect(await reserve(store, 'hold_31', 60n)).toEqual(HELD)
    })

    check('spend a balance first, and a credit pays what they owe', async (store) => {
      await fundedLedger(store, 300n)
      await store.ledger.updateAccount(ACCOUNT_ID, { billing: 'metered', creditLimit: 200n })
      expect(await placeHold(store, { holdId: 'hold_1', amount: 500n, billing: 'prepaid' })).toEqual(HELD)
      expect(await reserve(store, 'hold_2', 1n)).toEqual({ status: 'credit_limit' })
      await settle(store, 'hold_1', 450n)
      expect(await moneyOf(store)).toEqual({ balance: 0n, held: 0n, owed: 150n, creditHeld: 0n })
      const credit = { creditId: 'invoice_1', accountId: ACCOUNT_ID, amount: 170n, description: 'paid' }
      await store.ledger.credit(credit, NOW_MS)
      expect(await moneyOf(store)).toEqual({ balance: 20n, held: 0n, owed: 0n, creditHeld: 0n })
    })

    check('are in arrears with what they owe once they are prepaid', async (store) => {
      await metered(store)
      await reserve(store, 'hold_1', 400n)
      await settle(store, 'hold_1', 400n)
      await store.ledger.updateAccount(ACCOUNT_ID, { billing: 'prepaid' })
      expect(await reserve(store, 'hold_2', 1n)).toEqual({ status: 'in_arrears' })
    })
  })

  describe('ledger contract: frozen accounts', () => {
    check('hold nothing and replay nothing, and what was held is settled', async (store) => {
      await fundedLedger(store, 1_000n)
      const claim = exampleClaim()
      await placeHold(store, { claim })
      await store.ledger.updateAccount(ACCOUNT_ID, { frozen: FROZEN })
      const settlement = { holdId: 'hold_1', amount: 60n, description: 'chat', answer: exampleAnswer('done') }
      expect((await store.ledger.settle(settlement, NOW_MS)).charged).toEqual(60n)
      const again = exampleReservation({ holdId: 'hold_2', claim })
      expect(await store.ledger.reserve(again, NOW_MS)).toEqual({ status: 'account_frozen' })
      expect(await moneyOf(store)).toEqual({ balance: 940n, held: 0n, owed: 0n, creditHeld: 0n })
      await store.ledger.updateAccount(ACCOUNT_ID, { frozen: null })
      expect((await store.ledger.reserve({ ...again, holdId: 'hold_3' }, NOW_MS)).status).toEqual('replay')
    })

    check('are refused whatever they could pay', async (store) => {
      await metered(store)
      await store.ledger.updateAccount(ACCOUNT_ID, { frozen: FROZEN })
      expect(await reserve(store, 'hold_1', 0n)).toEqual({ status: 'account_frozen' })
    })
  })

  describe('ledger contract: thresholds', () => {
    check(
      'reports each balance threshold once, by the charge that passes it after the latest credit',
      async (store) => {
        await fundedLedger(store, 1_000n)
        expect(await charge(store, 'hold_1', 499n)).toEqual([])
        expect(await charge(store, 'hold_2', 1n)).toEqual(['balance 50: 500 of 1000'])
        expect(await charge(store, 'hold_3', 100n)).toEqual([])
        const credit = { creditId: 'credit_2', accountId: ACCOUNT_ID, amount: 600n, description: 'more' }
        await store.ledger.credit(credit, NOW_MS)
        expect(await charge(store, 'hold_4', 1_000n)).toEqual([
          'balance 50: 1000 of 1000',
          'balance 80: 1000 of 1000',
          'balance 100: 1000 of 1000',
        ])
      },
    )

    check('reports a threshold once for simultaneous charges', async (store) => {
      await fundedLedger(store, 1_000n)
      const told = await Promise.all(Array.from({ length: 10 }, (_, index) => charge(store, `hold_${index}`, 100n)))
      expect(
        told
          .flat()
          .map((line) => line.slice(0, 11))
          .sort(),
      ).toEqual(['balance 100', 'balance 50:', 'balance 80:'])
    })

    check('reports thresholds of account and key caps by the charges of the period', async (store) => {
      await fundedLedger(store, 10_000n)
      await store.keys.insert(exampleKey({ spendingCap: { amount: 500n, period: 'month' } }))
      await store.ledger.updateAccount(ACCOUNT_ID, { spendingCap: { amount: 1_000n, period: 'day' } })
      expect(await charge(store, 'hold_1', 240n)).toEqual([])
      expect(await charge(store, 'hold_2', 200n)).toEqual(['key_cap 50: 440 of 500', 'key_cap 80: 440 of 500'])
      const tomorrow = NOW_MS + 24 * 60 * 60 * 1000
      const late = exampleReservation({ holdId: 'hold_3', amount: 60n })
      await store.ledger.reserve(late, NOW_MS)
      await store.ledger.reserve({ ...late, holdId: 'hold_4', keyId: 'key_2', amount: 1n }, tomorrow)
      const settlement = { holdId: 'hold_3', amount: 60n, description: 'chat', thresholds: THRESHOLDS }
      const { crossings } = await store.ledger.settle(settlement, tomorrow)
      expect(crossings).toEqual([{ of: 'key_cap', period: 'month', percent: 100, bound: 500n, used: 500n }])
    })

    check('reports thresholds of a credit limit by the debt', async (store) => {
      await metered(store, 1_000n)
      await reserve(store, 'hold_1', 900n)
      const { crossings } = await settle(store, 'hold_1', 600n)
      expect(crossings).toEqual([{ of: 'credit_limit', period: undefined, percent: 50, bound: 1_000n, used: 600n }])
    })
  })
}

const LARGEST = 2n ** 63n - 1n

/** Tests what a ledger guarantees about accounts, their credits, and invalid amounts. */
export function describeLedgerAccounts(runner: ContractRunner, subject: ContractSubject<LedgerStore>): void {
  const { describe, check, expect } = contractCases(runner, subject)
  const credit = { creditId: 'credit_1', accountId: ACCOUNT_ID, amount: 1_000n, description: 'start' }

  describe('ledger contract: accounts and credits', () => {
    check('makes an account once and gives it as it is afterwards', async ({ ledger }) => {
      const made = await ledger.createAccount({ id: ACCOUNT_ID, tier: 'free' }, NOW_MS)
      const again = await ledger.createAccount({ id: ACCOUNT_ID, tier: 'paid' }, NOW_MS + 5)
      const expected = {
        id: ACCOUNT_ID,
        balance: 0n,
        held: 0n,
        owed: 0n,
        creditHeld: 0n,
        tier: 'free',
        spendingCap: undefined,
        name: undefined,
        plan: undefined,
        billing: undefined,
        creditLimit: undefined,
        frozen: undefined,
        createdAtMs: NOW_MS,
      }
      expect(made).toEqual(expected)
      expect(again).toEqual(expected)
      expect(await ledger.account('account_2')).toEqual(undefined)
    })

    check('keeps the spending cap that an account was made with', async ({ ledger }) => {
      const spendingCap = { amount: 9_007_199_254_740_993n, period: 'month' as const }
      const made = await ledger.createAccount({ id: ACCOUNT_ID, spendingCap }, NOW_MS)
      expect({ tier: made.tier, spendingCap: made.spendingCap }).toEqual({ tier: 'paid', spendingCap })
      expect((await ledger.account(ACCOUNT_ID))?.spendingCap).toEqual(spendingCap)
    })

    check('changes what is given of an account and leaves the rest', async (store) => {
      await fundedLedger(store, 1_000n)
      const spendingCap = { amount: 500n, period: 'day' as const }
      const capped = await store.ledger.updateAccount(ACCOUNT_ID, { spendingCap })
      expect({ tier: capped?.tier, spendingCap: capped?.spendingCap, balance: capped?.balance }).toEqual({
        tier: 'paid',
        spendingCap,
        balance: 1_000n,
      })
      const freed = await store.ledger.updateAccount(ACCOUNT_ID, { tier: 'free' })
      expect({ tier: freed?.tier, spendingCap: freed?.spendingCap }).toEqual({ tier: 'free', spendingCap })
      expect(await store.ledger.account(ACCOUNT_ID)).toEqual(freed)
    })

    check(
      'keeps name, plan, billing, credit limit and freeze of an account, and takes them away',
      async ({ ledger }) => {
        const facts = { name: 'Acme', plan: 'pro', billing: 'metered' as const, creditLimit: 9_007_199_254_740_993n }
        const made = await ledger.createAccount({ id: ACCOUNT_ID, ...facts }, NOW_MS)
        const frozen = { reason: 'unpaid', atMs: NOW_MS }
        expect(await ledger.updateAccount(ACCOUNT_ID, { frozen })).toEqual({ ...made, ...facts, frozen })
        expect(await ledger.account(ACCOUNT_ID)).toEqual({ ...made, ...facts, frozen })
        const none = { name: null, plan: null, billing: null, creditLimit: null, frozen: null }
        const absent = {
          name: undefined,
          plan: undefined,
          billing: undefined,
          creditLimit: undefined,
          frozen: undefined,
        }
        expect(await ledger.updateAccount(ACCOUNT_ID, none)).toEqual({ ...made, ...absent })
      },
    )

    check('takes the cap of an account away', async ({ ledger }) => {
      await ledger.createAccount({ id: ACCOUNT_ID, spendingCap: { amount: 500n, period: 'day' } }, NOW_MS)
      expect((await ledger.updateAccount(ACCOUNT_ID, { spendingCap: null }))?.spendingCap).toEqual(undefined)
      expect((await ledger.account(ACCOUNT_ID))?.spendingCap).toEqual(undefined)
    })

    check('changes nothing about an account that does not exist', async ({ ledger }) => {
      expect(await ledger.updateAccount(ACCOUNT_ID, { tier: 'free' })).toEqual(undefined)
      expect(await ledger.account(ACCOUNT_ID)).toEqual(undefined)
    })

    check('adds a credit once for each credit id', async (store) => {
      await store.ledger.createAccount({ id: ACCOUNT_ID }, NOW_MS)
      expect(await store.ledger.credit(credit, NOW_MS)).toEqual(true)
      expect(await store.ledger.credit(credit, NOW_MS)).toEqual(false)
      expect(await balanceOf(store)).toEqual({ balance: 1_000n, held: 0n })
    })

    check('refuses a credit id that another account was credited with', async (store) => {
      await store.ledger.createAccount({ id: ACCOUNT_ID }, NOW_MS)
      await store.ledger.createAccount({ id: 'account_2' }, NOW_MS)
      await store.ledger.credit(credit, NOW_MS)
      const other = { ...credit, accountId: 'account_2' }
      expect(await failureName(() => store.ledger.credit(other, NOW_MS))).toEqual('RangeError')
      expect((await store.ledger.account('account_2'))?.balance).toEqual(0n)
    })

    check('refuses a credit that is not above zero or is for nobody', async (store) => {
      await store.ledger.createAccount({ id: ACCOUNT_ID }, NOW_MS)
      for (const wrong of [{ amount: 0n }, { amount: -1n }, { accountId: 'account_2' }]) {
        expect(await failureName(() => store.ledger.credit({ ...credit, ...wrong }, NOW_MS))).toEqual('RangeError')
      }
      expect(await store.ledger.credit(credit, NOW_MS)).toEqual(true)
    })

    check('keeps amounts beyond what a float can hold to the nano-dollar', async (store) => {
      await fundedLedger(store, 9_007_199_254_740_993n)
      expect(await balanceOf(store)).toEqual({ balance: 9_007_199_254_740_993n, held: 0n })
    })

    check('refuses amounts below zero and beyond 64 bits, and changes nothing', async (store) => {
      await fundedLedger(store, LARGEST - 10n)
      await placeHold(store, { amount: 400n })
      for (const amount of [-1n, LARGEST + 1n, 2n ** 64n + 5n]) {
        const settlement = { holdId: 'hold_1', amount, description: 'chat' }
        expect(await failureName(() => placeHold(store, { holdId: 'hold_2', amount }))).toEqual('RangeError')
        expect(await failureName(() => store.ledger.settle(settlement, NOW_MS))).toEqual('RangeError')
      }
      for (const amount of [11n, LARGEST, LARGEST + 1n]) {
        const another = { ...credit, creditId: 'credit_2', amount }
        expect(await failureName(() => store.ledger.credit(another, NOW_MS))).toEqual('RangeError')
      }
      expect(await balanceOf(store)).toEqual({ balance: LARGEST - 410n, held: 400n })
      expect(await store.ledger.credit({ ...credit, creditId: 'credit_2', amount: 10n }, NOW_MS)).toEqual(true)
    })
  })
}

/** Tests what ledger and idempotency store of one driver guarantee together: hold and key change in one step. */
export function describeLedgerClaims(runner: ContractRunner, subject: ContractSubject<LedgerStore>): void {
  const { describe, check, expect } = contractCases(runner, subject)
  const claim = exampleClaim()
  const other = exampleClaim({ fingerprint: 'b'.repeat(64) })

  describe('ledger contract: idempotency keys', () => {
    check('claims the key with the hold; the same key in flight holds nothing', async (store) => {
      await fundedLedger(store, 1_000n)
      expect(await placeHold(store, { claim })).toEqual({ status: 'held' })
      expect(await placeHold(store, { holdId: 'hold_2', claim })).toEqual({ status: 'in_flight' })
      expect(await store.idempotency.claim(claim, NOW_MS)).toEqual({ status: 'in_flight' })
      expect((await store.ledger.account(ACCOUNT_ID))?.held).toEqual(100n)
    })

    check('refuses the key with another body and holds nothing', async (store) => {
      await fundedLedger(store, 1_000n)
      await placeHold(store, { claim })
      expect(await placeHold(store, { holdId: 'hold_2', claim: other })).toEqual({ status: 'mismatch' })
      expect((await store.ledger.account(ACCOUNT_ID))?.balance).toEqual(900n)
    })

    check(
      'stores the answer with the charge and replays it without holding, even on an empty balance',
      async (store) => {
        await fundedLedger(store, 100n)
        await placeHold(store, { claim })
        const answer = exampleAnswer('first')
        await settleHold(store, 100n, { answer })
        const again = await placeHold(store, { holdId: 'hold_2', claim })
        expect(again.status === 'replay' && readableAnswer(again.answer)).toEqual(readableAnswer(answer))
        expect((await store.ledger.account(ACCOUNT_ID))?.held).toEqual(0n)
      },
    )

    check('leaves the key free when the balance does not suffice', async (store) => {
      await fundedLedger(store, 50n)
      expect(await placeHold(store, { claim })).toEqual({ status: 'insufficient_balance' })
      expect(await store.idempotency.claim(other, NOW_MS)).toEqual({ status: 'claimed' })
    })

    for (const [how, end] of [
      ['is settled without an answer to keep', (store: LedgerStore) => settleHold(store, 40n)],
      ['is voided', ({ ledger }: LedgerStore) => ledger.void('hold_1', NOW_MS)],
      ['expires', ({ ledger }: LedgerStore) => ledger.expire(NOW_MS + 2, 10)],
    ] as const)
      check(`frees the key when the hold ${how}`, async (store) => {
        await fundedLedger(store, 1_000n)
        await placeHold(store, { claim, expiresAtMs: NOW_MS + 1 })
        await end(store)
        expect(await placeHold(store, { holdId: 'hold_2', claim: other }, NOW_MS + 2)).toEqual({ status: 'held' })
      })

    check('keeps an answer that was stored before the hold was voided', async (store) => {
      await fundedLedger(store, 1_000n)
      await placeHold(store, { claim })
      await store.idempotency.complete(claim, exampleAnswer('accepted'), NOW_MS)
      await store.ledger.void('hold_1', NOW_MS)
      expect((await store.idempotency.claim(claim, NOW_MS)).status).toEqual('replay')
    })

    for (const answer of [undefined, exampleAnswer('late')]) {
      const end = answer === undefined ? 'frees' : 'completes'
      check(
        `${end} no key that an equal request has claimed after it had expired, when a hold ends late`,
        async (store) => {
          await fundedLedger(store, 1_000n)
          const nowMs = claim.expiresAtMs + 1
          const expiresAtMs = nowMs + 86_400_000
          await placeHold(store, { claim: { ...claim, claimedBy: 'hold_1' }, expiresAtMs })
          const second = { ...claim, expiresAtMs, claimedBy: 'hold_2' }
          const held = await placeHold(store, { holdId: 'hold_2', claim: second, expiresAtMs }, nowMs)
          await settleHold(store, 10n, { description: 'late', answer }, nowMs)
          expect(held).toEqual({ status: 'held' })
          expect(await store.idempotency.claim(claim, nowMs)).toEqual({ status: 'in_flight' })
        },
      )
    }

    check('stores no answer with a hold that had ended before', async (store) => {
      await fundedLedger(store, 1_000n)
      await placeHold(store, { claim })
      await store.ledger.void('hold_1', NOW_MS)
      const late = { holdId: 'hold_1', amount: 10n, description: 'late', answer: exampleAnswer('late') }
      await store.ledger.settle(late, NOW_MS)
      expect(await store.idempotency.claim(claim, NOW_MS)).toEqual({ status: 'claimed' })
    })
  })
}

const DAY_MS = 24 * 60 * 60 * 1000
// Counter of June 2025.
const KEY_COUNTER = 'key:key_1:2025-06'
const REFUSED = { status: 'spending_limit', counter: KEY_COUNTER }
const DAY_COUNTER = 'account:account_1:2025-06-15'

/** Tests what a ledger guarantees about the caps of accounts and keys. */
export function describeLedgerSpending(runner: ContractRunner, subject: ContractSubject<LedgerStore>): void {
  const { describe, check, expect } = contractCases(runner, subject)
  const reserve = async (
    { ledger }: LedgerStore,
    holdId: string,
    amount: bigint,
    { nowMs = NOW_MS, ...more }: Partial<Reservation> & { readonly nowMs?: number } = {},
  ) => ledger.reserve(exampleReservation({ holdId, amount, expiresAtMs: nowMs + 900_000, ...more }), nowMs)
  /** Creates an account with money, and a key with a cap of 1,000 per month. */
  const capped = async (store: LedgerStore, balance = 10_000n) => {
    await fundedLedger(store, balance)
    await store.keys.insert(exampleKey({ spendingCap: monthly(1_000n) }))
  }
  /** Expects that the cap leaves room for this amount, and for no more. */
  const expectRoom = async (store: LedgerStore, amount: bigint): Promise<void> => {
    expect(await reserve(store, 'hold_above', amount + 1n)).toEqual(REFUSED)
    expect(await reserve(store, 'hold_exact', amount)).toEqual(HELD)
  }
  const settle = (store: LedgerStore, holdId: string, amount: bigint, nowMs = NOW_MS) =>
    settleHold(store, amount, { holdId }, nowMs)

  describe('ledger contract: spending caps', () => {
    check('counts a hold at once and refuses what would pass the cap, naming it', async (store) => {
      await capped(store)
      expect(await reserve(store, 'hold_1', 600n)).toEqual(HELD)
      await expectRoom(store, 400n)
      expect(await reserve(store, 'hold_4', 1n)).toEqual(REFUSED)
      expect((await store.ledger.account(ACCOUNT_ID))?.held).toEqual(1_000n)
    })

    check('admits exactly what fits of many reservations at once', async (store) => {
      await capped(store)
      const outcomes = await Promise.all(Array.from({ length: 50 }, (_, index) => reserve(store, `hold_${index}`, 90n)))
      expect(outcomes.filter((outcome) => outcome.status === 'held').length).toEqual(11)
      expect((await store.ledger.account(ACCOUNT_ID))?.held).toEqual(990n)
    })

    check('counts the keys of an account together under its cap, known to the store alone', async (store) => {
      await fundedLedger(store, 10_000n)
      await store.ledger.updateAccount(ACCOUNT_ID, { spendingCap: { amount: 300n, period: 'day' } })
      const keys = ['key_1', 'key_2', 'session:7', 'key_1', 'key_2']
      const outcomes = await Promise.all(keys.map((keyId, index) => reserve(store, `hold_${index}`, 100n, { keyId })))
      expect(outcomes.filter((outcome) => outcome.status === 'held').length).toEqual(3)
      expect(outcomes.at(-1)).toEqual({ status: 'spending_limit', counter: DAY_COUNTER })
    })

    check('knows what was spent before there was a cap, by account and by key', async (store) => {
      await fundedLedger(store, 10_000n)
      await store.keys.insert(exampleKey())
      await reserve(store, 'hold_1', 600n)
      await settle(store, 'hold_1', 700n)
      await reserve(store, 'hold_2', 250n)
      await store.keys.update('key_1', { spendingCap: monthly(1_000n) })
      expect(await reserve(store, 'hold_3', 51n)).toEqual(REFUSED)
      expect(await reserve(store, 'hold_4', 51n, { keyId: 'key_2' })).toEqual(HELD)
      await store.ledger.updateAccount(ACCOUNT_ID, { spendingCap: { amount: 1_001n, period: 'day' } })
      expect(await reserve(store, 'hold_5', 1n, { keyId: 'key_2' })).toEqual({
        status: 'spending_limit',
        counter: DAY_COUNTER,
      })
      await store.ledger.updateAccount(ACCOUNT_ID, { spendingCap: { amount: 1_002n, period: 'day' } })
      expect(await reserve(store, 'hold_6', 1n, { keyId: 'key_2' })).toEqual(HELD)
    })

    check('counts a repeated reservation once, and repeats a refusal', async (store) => {
      await capped(store)
      await reserve(store, 'hold_1', 600n)
      expect(await reserve(store, 'hold_1', 600n)).toEqual(HELD)
      expect(await reserve(store, 'hold_2', 500n)).toEqual(REFUSED)
      await store.ledger.void('hold_1', NOW_MS)
      expect(await reserve(store, 'hold_2', 500n)).toEqual(REFUSED)
      expect(await reserve(store, 'hold_3', 1_000n)).toEqual(HELD)
    })

    check('counts what was charged once the hold is settled', async (store) => {
      await capped(store)
      await reserve(store, 'hold_1', 600n)
      await settle(store, 'hold_1', 250n)
      await expectRoom(store, 750n)
    })

    check('counts a charge above its hold, the owed part included, and its repayment no more', async (store) => {
      await capped(store, 900n)
      await reserve(store, 'hold_1', 600n)
      await settle(store, 'hold_1', 1_500n)
      const credit = { creditId: 'credit_2', accountId: ACCOUNT_ID, amount: 5_000n, description: 'more' }
      await store.ledger.credit(credit, NOW_MS)
      await store.keys.update('key_1', { spendingCap: monthly(1_600n) })
      await expectRoom(store, 100n)
    })

    check('gives the whole hold back when it is voided or expires, once', async (store) => {
      await capped(store)
      await reserve(store, 'hold_1', 600n)
      await store.ledger.void('hold_1', NOW_MS)
      await store.ledger.void('hold_1', NOW_MS)
      await reserve(store, 'hold_2', 600n, { expiresAtMs: NOW_MS - 1 })
      await store.ledger.expire(NOW_MS, 10)
      await expectRoom(store, 1_000n)
    })

    check('counts the charge of a hold that had expired', async (store) => {
      await capped(store)
      await reserve(store, 'hold_1', 600n, { expiresAtMs: NOW_MS - 1 })
      await store.ledger.expire(NOW_MS, 10)
      await settle(store, 'hold_1', 400n)
      await expectRoom(store, 600n)
    })

    check('leaves everything as it was when a cap refuses, the Idempotency-Key included', async (store) => {
      await capped(store)
      const claim = exampleClaim()
      expect(await reserve(store, 'hold_1', 1_500n, { claim })).toEqual(REFUSED)
      const { balance, held } = (await store.ledger.account(ACCOUNT_ID)) ?? {}
      expect({ balance, held }).toEqual({ balance: 10_000n, held: 0n })
      expect(await store.idempotency.claim(claim, NOW_MS)).toEqual({ status: 'claimed' })
      expect(await reserve(store, 'hold_2', 1_000n)).toEqual(HELD)
    })

    check('counts nothing when the balance refuses', async (store) => {
      await capped(store, 500n)
      expect(await reserve(store, 'hold_1', 600n)).toEqual({ status: 'insufficient_balance' })
      const credit = { creditId: 'credit_2', accountId: ACCOUNT_ID, amount: 5_000n, description: 'more' }
      await store.ledger.credit(credit, NOW_MS)
      expect(await reserve(store, 'hold_2', 1_000n)).toEqual(HELD)
    })

    check('lets a hold of zero pass a cap that is reached', async (store) => {
      await capped(store)
      await reserve(store, 'hold_1', 1_000n)
      expect(await reserve(store, 'hold_2', 0n)).toEqual(HELD)
    })

    check('checks the caps of the reservation too, by the same counts', async (store) => {
      await capped(store)
      await reserve(store, 'hold_1', 300n)
      const caps = { key: { amount: 500n, period: 'day' as const }, account: monthly(400n) }
      const refused = await reserve(store, 'hold_2', 150n, { caps })
      expect(refused).toEqual({ status: 'spending_limit', counter: 'account:account_1:2025-06' })
      expect(await reserve(store, 'hold_3', 201n, { caps: { key: caps.key } })).toEqual({
        status: 'spending_limit',
        counter: 'key:key_1:2025-06-15',
      })
      expect(await reserve(store, 'hold_4', 100n, { caps })).toEqual(HELD)
    })

    check('tells what an account and its keys have spent, refunds taken off', async (store) => {
      await capped(store)
      await reserve(store, 'hold_1', 600n)
      await settle(store, 'hold_1', 250n)
      await reserve(store, 'hold_2', 100n)
      await reserve(store, 'hold_3', 70n, { keyId: 'key_2' })
      const chargeId = (await store.ledger.entries(ACCOUNT_ID, 1))[0]!.id
      const refund = { refundId: 'refund_1', chargeId, amount: 50n, description: 'bad' }
      await store.ledger.refund(refund, NOW_MS)
      const both = (charged: bigint, held: bigint) => {
        return { period: 20250615, chargedDay: charged, chargedMonth: charged, heldDay: held, heldMonth: held }
      }
      expect(await store.ledger.spending(ACCOUNT_ID, ['key_2', 'key_none', 'key_1'])).toEqual({
        account: both(200n, 170n),
        keys: [both(0n, 70n), { ...both(0n, 0n), period: 0 }, both(200n, 100n)],
      })
      expect(await store.ledger.spending('nobody', ['key_1'])).toEqual(undefined)
    })

    check('starts a new day from zero, and the month goes on', async (store) => {
      await capped(store)
      const daily = { key: { amount: 700n, period: 'day' as const } }
      const nowMs = NOW_MS + DAY_MS
      await reserve(store, 'hold_1', 600n)
      await reserve(store, 'hold_2', 100n)
      await settle(store, 'hold_1', 300n)
      expect(await reserve(store, 'hold_3', 601n, { nowMs, caps: daily })).toEqual(REFUSED)
      expect(await reserve(store, 'hold_4', 600n, { nowMs, caps: daily })).toEqual(HELD)
      // The hold is of yesterday: its end frees nothing of today, but part of the month.
      await store.ledger.void('hold_2', nowMs)
      const today = { status: 'spending_limit', counter: 'key:key_1:2025-06-16' }
      expect(await reserve(store, 'hold_5', 101n, { nowMs, caps: daily })).toEqual(REFUSED)
      await store.keys.update('key_1', { spendingCap: null })
      expect(await reserve(store, 'hold_6', 101n, { nowMs, caps: daily })).toEqual(today)
      expect(await reserve(store, 'hold_7', 100n, { nowMs, caps: daily })).toEqual(HELD)
    })

    check('starts a new month from zero, which earlier holds do not touch', async (store) => {
      await capped(store)
      const nowMs = NOW_MS + 20 * DAY_MS
      await reserve(store, 'hold_1', 1_000n)
      expect(await reserve(store, 'hold_2', 1_000n, { nowMs })).toEqual(HELD)
      await settle(store, 'hold_1', 900n, nowMs)
      expect(await reserve(store, 'hold_3', 1n, { nowMs })).toEqual({
        status: 'spending_limit',
        counter: 'key:key_1:2025-07',
      })
    })
  })
}

function monthly(amount: bigint): SpendingCap {
  return { amount, period: 'month' }
}
