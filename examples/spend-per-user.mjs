// @ts-check
/*
 * What has each user of a customer spent? Runs offline with stand-ins.
 *
 *   npm run build && node examples/spend-per-user.mjs
 */
import { anthropic, createGateway, formatDollars, listPrices } from 'signalbox'
import { sandboxVendors } from 'signalbox/testing'

const gateway = createGateway({
  vendors: [anthropic({ apiKey: 'stand-in' })],
  transport: sandboxVendors().transport(),
  prices: listPrices(),
})
await gateway.accounts.create({ id: 'acct_shop' })
await gateway.accounts.credit('acct_shop', '5')

// Calls of three users. Over HTTP the name comes from `authenticate`, or from the header `x-signalbox-user`.
for (const endUser of ['alice', 'bob', 'alice', undefined, 'carol', 'alice']) {
  const client = gateway.client({ accountId: 'acct_shop', keyId: 'web', tier: 'paid', endUser })
  await client.chat.completions.create({
    model: 'claude-sonnet-5-5',
    max_tokens: 100,
    messages: [{ role: 'user', content: `${endUser ?? 'somebody'} asks for three rivers.` }],
  })
}

// #region shown
const from = new Date(Date.now() - 7 * 24 * 60 * 60 * 1000)
const spent = await gateway.usage.query({ account: 'acct_shop', from, groupBy: ['endUser'] })

for (const { endUser, dueNanoDollars } of spent.rows)
  console.log(endUser || '(not named)', formatDollars(dueNanoDollars))
// #endregion

const [sum] = (await gateway.usage.query({ account: 'acct_shop', from })).rows
console.log('all', formatDollars(sum?.dueNanoDollars ?? 0n))
await gateway.close()
