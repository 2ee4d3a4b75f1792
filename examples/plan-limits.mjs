// @ts-check
/*
 * How do customers of one plan get other limits than those of another? Runs offline with stand-ins.
 *
 *   npm run build && node examples/plan-limits.mjs
 */
import { anthropic, createGateway } from 'signalbox'
import { ClientError } from 'signalbox/client'
import { sandboxVendors } from 'signalbox/testing'

const vendors = [anthropic({ apiKey: 'stand-in' })]
const transport = sandboxVendors().transport()

// #region shown
const gateway = createGateway({
  vendors,
  transport,
  billing: 'off',
  plans: {
    free: { limits: { perAccount: { requestsPerMinute: 3 } } },
    pro: { limits: { perAccount: { requestsPerMinute: 300 }, perEndUser: { requestsPerMinute: 4 } } },
  },
})
await gateway.accounts.create({ id: 'acct_trial', plan: 'free' })
await gateway.accounts.create({ id: 'acct_paying', plan: 'pro' })
// #endregion

/**
 * Asks five times, and counts what came of it.
 * @param {string} accountId
 * @param {string} [endUser]
 */
async function fiveCalls(accountId, endUser) {
  const client = gateway.client({ accountId, keyId: `key of ${accountId}`, tier: 'paid', endUser })
  const outcomes = []
  for (let call = 0; call < 5; call++) {
    try {
      await client.chat.completions.create({
        model: 'claude-sonnet-5-5',
        messages: [{ role: 'user', content: 'hello' }],
      })
      outcomes.push('ok')
    } catch (error) {
      if (!ClientError.isInstance(error)) throw error
      outcomes.push(`${error.status} ${error.code}`)
    }
  }
  console.log([accountId, endUser].filter(Boolean).join(' '), outcomes.join(', '))
}

await fiveCalls('acct_trial')
await fiveCalls('acct_paying')
await fiveCalls('acct_paying', 'alice')
// A customer who pays is moved: in force at once here, and in every other process within 5 seconds.
await gateway.accounts.update('acct_trial', { plan: 'pro' })
console.log('acct_trial is now', (await gateway.accounts.get('acct_trial'))?.plan)
await gateway.close()
