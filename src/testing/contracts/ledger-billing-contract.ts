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
