// @ts-check
import assert from 'node:assert/strict'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { formatDollars, parseDollars } from 'signalbox'
import { ClientError } from 'signalbox/client'
import { FREE } from './table.mjs'

const MODEL = 'claude-sonnet-5-5'

/** @type {import('signalbox/client').ChatMessage[]} */
const MESSAGES = [{ role: 'user', content: 'Name three rivers.' }]

/**
 * A vendor that fails, a limit, a balance that is too low, a refund, and a tool call of an agent.
 * @param {import('./start-servers.mjs').Demo} demo
 */
export async function showOperations({ client, clientOf, table, gateway, sandbox, account, apiKey, mcpURL }) {
  table.section(
    'operations: each call is answered and paid once, or refused without a vendor call and without a charge',
  )

  await table.row('fail-over', 'steady', async (options) => {
    sandbox.fault({ kind: 'status', status: 503, vendor: 'openai', times: 1 })
    const before = sandbox.requests.length
    const { answer, facts } = await chat(client, 'steady', options)
    assert.match(answer.choices[0]?.message.content ?? '', /three rivers/)
    assert.equal(facts?.headers.get('x-signalbox-vendor'), 'dashscope')
    assert.equal(sandbox.requests.length - before, 2)
    return { note: 'openai returned 503, dashscope answered the same call, and it was charged once' }
  })

  await table.row('limit', MODEL, async (options) => {
    const { key } = await gateway.keys.create({ accountId: account, limits: { requestsPerMinute: 1 } })
    const limited = clientOf(key)
    const before = sandbox.requests.length
    await chat(limited, MODEL, options)
    const refusal = await refusalOf(chat(limited, MODEL))
    assert.deepEqual([refusal.status, refusal.code, sandbox.requests.length - before], [429, 'rate_limited', 1])
    return { note: 'a key with one call a minute: the second gets 429, reaches no vendor and costs nothing' }
  })

  await table.row('refused balance', MODEL, async () => {
    const { id } = await gateway.accounts.create({ id: 'customer-2' })
    await gateway.accounts.credit(id, '0.000001')
    const { key } = await gateway.keys.create({ accountId: id })
    const before = sandbox.requests.length
    const refusal = await refusalOf(chat(clientOf(key), MODEL))
    assert.deepEqual([refusal.status, refusal.code], [402, 'insufficient_balance'])
    assert.equal(sandbox.requests.length, before, 'a vendor was asked')
    assert.equal((await gateway.accounts.get(id))?.balance, parseDollars('0.000001'))
    return { cost: FREE, note: 'an account with $0.000001 gets 402, no vendor is called, nothing is charged' }
  })

  await table.row('refund', MODEL, async () => {
    const { facts } = await chat(client, MODEL)
    const [charge] = await gateway.accounts.ledger(account, { limit: 1 })
    const refund = { reason: 'bad answer', refundId: 'ticket-1' }
    const made = await gateway.accounts.refund(charge?.id ?? '', refund)
    const again = await gateway.accounts.refund(charge?.id ?? '', refund)
    assert.deepEqual([formatDollars(made.amount), made.isNew, again.isNew], [facts?.cost, true, false])
    return { cost: FREE, note: `${facts?.cost} was charged and refunded once, although the refund was requested twice` }
  })

  await table.row('mcp chat_complete', MODEL, async () => {
    const agent = new Client({ name: 'demo', version: '1.0.0' })
    const requestInit = { headers: { authorization: `Bearer ${apiKey}` } }
    await agent.connect(new StreamableHTTPClientTransport(new URL(mcpURL), { requestInit }))
    const { tools } = await agent.listTools()
    const result = await agent.callTool({ name: 'chat_complete', arguments: { model: MODEL, messages: MESSAGES } })
    await agent.close()
    const answer = /** @type {import('signalbox/client').ChatCompletion} */ (result.structuredContent)
    assert.match(answer.choices[0]?.message.content ?? '', /three rivers/)
    // Agents get no header with the cost, so read it from the journal.
    const [charge] = await gateway.accounts.ledger(account, { limit: 1 })
    assert.equal(charge?.kind, 'charge')
    return {
      cost: formatDollars(-charge.amount),
      note: `an agent found ${tools.length} tools, called one, and its account paid`,
    }
  })
}

/**
 * Calls a model; `facts` come from the headers of the answer.
 * @param {import('signalbox/client').GatewayClient} client
 * @param {string} model
 * @param {import('signalbox/client').CallOptions} [options] of the row
 */
async function chat(client, model, options = {}) {
  /** @type {{ facts?: import('signalbox/client').ResponseFacts }} */
  const told = {}
  const onResponse = (/** @type {import('signalbox/client').ResponseFacts} */ facts) => {
    told.facts = facts
    options.onResponse?.(facts)
  }
  const request = { model, max_tokens: 200, messages: MESSAGES }
  return { answer: await client.chat.completions.create(request, { ...options, onResponse }), facts: told.facts }
}

/**
 * Returns the error of a call that must be refused.
 * @param {Promise<unknown>} call
 */
async function refusalOf(call) {
  const fault = await call.then(
    () => undefined,
    (/** @type {unknown} */ error) => error,
  )
  if (!ClientError.isInstance(fault)) throw new Error('it was not refused', { cause: fault })
  return fault
}
