// @ts-check
/*
 * Alerts when a vendor fails or a balance is nearly spent. Runs offline with stand-ins.
 *
 *   npm run build && node examples/alert-on-failures.mjs
 */
import { anthropic, createGateway, gemini, listPrices } from 'signalbox'
import { sandboxVendors } from 'signalbox/testing'

const sandbox = sandboxVendors()
const vendors = [anthropic({ apiKey: 'stand-in' }), gemini({ apiKey: 'stand-in' })]
const alert = (/** @type {string} */ text) => console.log('ALERT', text)

// #region shown
const WINDOW_MS = 60_000
const OF_CALLERS = new Set(['caller', 'context_length_exceeded'])
const failures = new Map([['', [0]]])

const gateway = createGateway({
  vendors,
  transport: sandbox.transport(),
  prices: listPrices(),
  onEvent(event) {
    if (event.type === 'attempt-failed' && !OF_CALLERS.has(event.reason)) {
      const since = Date.now() - WINDOW_MS
      const recent = (failures.get(event.vendor) ?? []).filter((atMs) => atMs > since)
      failures.set(event.vendor, [...recent, Date.now()])
      if (recent.length + 1 === 5) alert(`${event.vendor} failed 5 times in a minute: ${event.reason}`)
    }
    if (event.type === 'vendor-account-problem') alert(`${event.vendor} refuses our key: ${event.code}`)
    if (event.type === 'balance-low') alert(`${event.accountId} has used ${event.thresholdPercent} % of its balance`)
    if (event.type === 'settlement-given-up') alert(`charge by hand: ${event.requestId}`)
  },
})
// #endregion

await gateway.accounts.create({ id: 'acct_shop' })
await gateway.accounts.credit('acct_shop', '0.03')
const client = gateway.client({ accountId: 'acct_shop', keyId: 'web', tier: 'paid' })
const ask = (/** @type {'claude-sonnet-5-5' | 'gemini-3.8-flash'} */ model) =>
  client.chat.completions.create({
    model,
    max_tokens: 500,
    messages: [{ role: 'user', content: 'Say it. '.repeat(60) }],
  })

// From now on one vendor returns 500. The other one works until the money is spent.
sandbox.fault({ kind: 'status', status: 500, vendor: 'anthropic', times: 1_000 })
for (let call = 0; call < 6; call++) await ask('claude-sonnet-5-5').catch(() => undefined)
let isPaid = true
while (isPaid)
  isPaid = await ask('gemini-3.8-flash').then(
    () => true,
    () => false,
  )
await gateway.close()
