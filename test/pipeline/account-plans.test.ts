import { expect, test } from 'vitest'
import { AccountPlans } from '../../src/pipeline/pipeline-context.ts'
import { memoryStore } from '../../src/stores/memory/memory-store.ts'
import { fakeClock } from '../../src/testing/fake-clock.ts'

const ACCOUNT = 'acct_1'

test.each([
  ['a moment later is that which was read', 0, 'small'],
  ['after some seconds is read again', 5_000, 'large'],
  ['after the clock was set back by an hour is read again', -3_600_000, 'large'],
])('the plan of an account %s', async (_case, passedMs, plan) => {
  const { ledger } = memoryStore()
  const fake = fakeClock()
  let shiftedMs = 0
  const plans = new AccountPlans(ledger, { ...fake, now: () => fake.now() + shiftedMs })
  await ledger.createAccount({ id: ACCOUNT, plan: 'small' }, fake.now())
  await plans.planOf(ACCOUNT)

  await ledger.updateAccount(ACCOUNT, { plan: 'large' })
  shiftedMs = passedMs

  expect(await plans.planOf(ACCOUNT)).toBe(plan)
})
