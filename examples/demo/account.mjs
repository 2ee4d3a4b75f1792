// @ts-check
import assert from 'node:assert/strict'
import { formatDollars, parseDollars } from 'signalbox'
import { FREE } from './table.mjs'

/**
 * Lists the models, and checks that the costs of all rows add up to the account's spending.
 * @param {import('./start-servers.mjs').Demo} demo
 */
export async function showAccount({ client, table }) {
  table.section('account: the costs of all rows add up to the spending of the account, and nothing is held')
  await table.row('models.list', '', async (options) => {
    const models = await client.models.list(options)
    const ids = new Set(models.filter(({ available }) => available).map(({ id }) => id))
    const missing = table.rows.map(({ model }) => model).filter((model) => model !== '' && !ids.has(model))
    assert.deepEqual(missing, [], 'models that were called are not listed as available')
    return { cost: FREE, note: `${models.length} models` }
  })

  await table.row('account.balance', '', async (options) => {
    const { balance, held } = await client.account.balance(options)
    const costs = table.rows.reduce((sum, { cost }) => sum + cost, 0n)
    const spent = table.started.total - parseDollars(balance) - parseDollars(held)
    assert.equal(held, '0', 'money is still set aside')
    assert.equal(formatDollars(costs), formatDollars(spent), 'the costs are not what the account lost')
    return { cost: FREE, note: `${formatDollars(costs)} spent, ${balance} left` }
  })
}
