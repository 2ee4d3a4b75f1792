import { createGateway, type Gateway, gemini, memoryStore } from 'signalbox'
import { sandboxVendors } from 'signalbox/testing'
import { afterEach, expect, test } from 'vitest'
import { lambdaHandler } from '../../examples/lambda.mjs'
import { codeBlocks, readPage, section, shownParts } from '../docs/support/markdown.ts'
import { testPrices } from '../support/test-prices.ts'

const KEY = 'sk-example-0123456789'
const PAGE = 'docs/serverless.md'

let gateway: Gateway | undefined
afterEach(() => gateway?.close())

/** A gateway whose store refuses the first settlement, so that the charge follows after the body. */
async function gatewayWithLateCharge(): Promise<Gateway> {
  const store = memoryStore()
  const { settle } = store.ledger
  let refusals = 1
  store.ledger.settle = (...input) => {
    if (refusals-- > 0) throw new Error('the store is down')
    return settle.apply(store.ledger, input)
  }
  gateway = createGateway({
    vendors: [gemini({ apiKey: 'vendor-key' })],
    transport: sandboxVendors().transport(),
    prices: testPrices,
    keys: [{ key: KEY, account: 'customer-1' }],
    store,
  })
  await gateway.start()
  await gateway.accounts.credit('customer-1', '5')
  return gateway
}

test('is shown on the page as it is run', () => {
  const text = section(readPage(PAGE), 'AWS Lambda')

  expect(codeBlocks({ path: PAGE, text }).map(({ code }) => code)).toContain(shownParts().get('lambda'))
})

test.each([
  ['a whole answer', false, '"object":"chat.completion"'],
  ['a stream', true, 'data: [DONE]'],
])('has charged %s when the handler returns', async (_name, stream, content) => {
  const handler = lambdaHandler(await gatewayWithLateCharge())
  const body = JSON.stringify({
    model: 'gmn-2.5-flash',
    stream,
    messages: [{ role: 'user', content: 'good morning' }],
  })

  const answer = await handler({
    rawPath: '/v1/chat/completions',
    rawQueryString: '',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: Buffer.from(body).toString('base64'),
    isBase64Encoded: true,
    requestContext: { domainName: 'api.example', http: { method: 'POST' } },
  })

  const account = await gateway?.accounts.get('customer-1')
  expect([answer.statusCode, answer.isBase64Encoded]).toEqual([200, true])
  expect(Buffer.from(answer.body, 'base64').toString()).toContain(content)
  expect([account?.held, account !== undefined && account.balance < 5_000_000_000n]).toEqual([0n, true])
})
