import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { listPrices } from '../../../src/catalog/prices/list-prices.ts'
import { type Clock, systemClock } from '../../../src/core/clock.ts'
import { type AwsSignatureOptions, awsSignature } from '../../../src/credentials/index.ts'
import { sandboxVendors } from '../../../src/testing/index.ts'
import { amazonBedrock } from '../../../src/vendors/amazon-bedrock/amazon-bedrock.ts'
import { anthropicBedrock } from '../../../src/vendors/anthropic/anthropic.ts'
import { readEvents } from '../../support/read-events.ts'
import { chatBody, type StartedGateway, startGateway } from '../../support/start-gateway.ts'

const sandbox = sandboxVendors()
const CLAUDE = 'us.anthropic.claude-haiku-4-5-20251001-v1:0'
let started: StartedGateway

beforeAll(async () => {
  const { origin } = await sandbox.listen()
  const connection = { endpoint: `${origin}/bedrock`, apiKey: 'bedrock-key-0123' }
  started = await startGateway({
    prices: listPrices(),
    vendors: [anthropicBedrock(connection), amazonBedrock(connection)],
    models: [],
  })
})
afterAll(async () => {
  await started.close()
  await sandbox.close()
})

test('a model of OpenAI’s dialect answers by its own id, without a row, and is charged its list price', async () => {
  const model = 'openai.gpt-oss-120b-1:0'
  const response = await started.post('/v1/chat/completions', chatBody(model, 'Hello'))
  const stream = await started.post('/v1/chat/completions', { ...chatBody(model, 'Hello'), stream: true })
  const events = await readEvents(stream)

  expect(await response.json()).toMatchObject({ model, choices: [{ message: { content: 'You said: Hello' } }] })
  expect(events.at(-1)).toBe('[DONE]')
  // 2 input tokens at 0.15 and 3 output tokens at 0.6 dollars per million.
  expect((await started.ended(response)).costNanoDollars).toBe(2_100n)
  expect((await started.ended(stream)).costNanoDollars).toBe(2_100n)
  expect(sandbox.requests.at(-1)).toMatchObject({
    vendor: 'amazon-bedrock',
    path: '/bedrock/openai/v1/chat/completions',
  })
})

test('Claude answers Messages callers in its own dialect, with its cache controls, and chat callers', async () => {
  const system = [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }]
  const body = { model: CLAUDE, max_tokens: 100, messages: [{ role: 'user', content: 'Hello' }] }
  const message = await started.post('/v1/messages', { ...body, system })
  const sent = sandbox.requests.at(-1)
  const count = await started.post('/v1/messages/count_tokens', body)
  const chat = await started.post('/v1/chat/completions', body)

  expect(await message.json()).toMatchObject({ type: 'message', content: [{ type: 'text', text: 'You said: Hello' }] })
  expect(sent?.body).toMatchObject({ model: CLAUDE, system })
  expect(sent?.headers['authorization']).toBe('Bearer bedrock-key-0123')
  expect(await count.json()).toEqual({ input_tokens: expect.any(Number) })
  expect(await chat.json()).toMatchObject({ choices: [{ message: { content: 'You said: Hello' } }] })
})

test.each([
  ['amazon.titan-embed-text-v2:0', 3],
  ['amazon.nova-2-multimodal-embeddings-v1:0', 3],
  ['cohere.embed-v4:0', 1],
  ['cohere.embed-english-v3', 1],
])('%s embeds three texts in %i calls, at its list price', async (model, calls) => {
  const before = sandbox.requests.length
  const response = await started.post('/v1/embeddings', {
    model,
    input: ['one', 'two words', 'three more words'],
    dimensions: 256,
  })
  const { data, usage } = (await response.json()) as { data: { embedding: number[] }[]; usage: object }

  expect(data.map(({ embedding }) => embedding.length)).toEqual([256, 256, 256])
  // A quarter of the bytes of each text, rounded up.
  expect(usage).toEqual({ prompt_tokens: 8, total_tokens: 8 })
  expect(sandbox.requests.length - before).toBe(calls)
  expect((await started.ended(response)).costNanoDollars).toBeGreaterThan(0n)
})

test('an ARN and a region that the catalog does not list answer where there is a price, else cost nothing', async () => {
  const arn = `arn:aws:bedrock:us-east-1:123456789012:inference-profile/${CLAUDE}`
  const asked = sandbox.requests.length
  const unpriced = await started.post('/v1/messages', {
    ...{ model: 'apac.anthropic.claude-opus-4-8', max_tokens: 10 },
    messages: [{ role: 'user', content: 'Hello' }],
  })

  expect(unpriced.status).toBe(400)
  expect(await unpriced.json()).toMatchObject({ error: { message: expect.stringContaining('price') } })
  expect(sandbox.requests.length).toBe(asked)
  expect(await started.account()).toMatchObject({ held: 0n })
  expect((await started.post('/v1/chat/completions', chatBody(arn, 'Hello', { max_tokens: 9 }))).status).toBe(400)
})

describe('keys of AWS', () => {
  const keys = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' }
  const model = 'openai.gpt-oss-120b-1:0'

  async function gatewayWith(options: AwsSignatureOptions, vendorClock?: Clock, query?: Record<string, string>) {
    const vendors = sandboxVendors(vendorClock === undefined ? {} : { clock: vendorClock })
    const { origin } = await vendors.listen()
    const apiKey = awsSignature({ region: 'us-east-1', environment: {}, credentials: () => keys, ...options })
    const gateway = await startGateway({
      prices: listPrices(),
      vendors: [amazonBedrock({ endpoint: `${origin}/bedrock`, apiKey, query })],
      models: [],
    })
    return {
      gateway,
      vendors,
      ask: () => gateway.post('/v1/chat/completions', chatBody(model, 'Hello')),
      close: async () => {
        await gateway.close()
        await vendors.close()
      },
    }
  }

  let sandboxed: Awaited<ReturnType<typeof gatewayWith>>
  afterEach(() => sandboxed.close())

  /** Returns a clock that is wrong by an offset. */
  const wrongBy = (offsetMs: number): Clock => ({
    ...systemClock,
    now: () => Date.now() + offsetMs,
    schedule: (delayMs, run) => systemClock.schedule(delayMs, run),
  })

  test('sign each request, with a session and with a query, as the service checks it', async () => {
    sandboxed = await gatewayWith({ credentials: () => ({ ...keys, sessionToken: 'a/b==' }) }, undefined, {
      'x y': 'a b+c',
    })
    const response = await sandboxed.ask()

    expect(response.status).toBe(200)
    expect(sandboxed.vendors.requests).toHaveLength(1)
    expect(sandboxed.vendors.requests[0]?.headers).toMatchObject({ 'x-amz-security-token': 'a/b==' })
  })

  test.each([600_000, -600_000])(
    'sign by the service’s time where the clock of this machine is wrong by %i ms, after one refusal',
    async (offsetMs) => {
      sandboxed = await gatewayWith({}, wrongBy(offsetMs))

      const statuses = [(await sandboxed.ask()).status, (await sandboxed.ask()).status, (await sandboxed.ask()).status]

      expect(statuses).toEqual([200, 200, 200])
      expect(sandboxed.vendors.requests).toHaveLength(4)
      expect(sandboxed.gateway.events.some(({ type }) => type === 'vendor-account-problem')).toBe(false)
    },
  )

  test.each<[string, AwsSignatureOptions, RegExp]>([
    ['of another region', { region: 'eu-west-1' }, /set AWS_REGION/],
    ['of nobody', { credentials: () => ({ ...keys, accessKeyId: 'AKIDNOBODY' }) }, /security token .* invalid/],
    ['that are wrong', { credentials: () => ({ ...keys, secretAccessKey: 'wrong' }) }, /does not match/],
    ['of an ended session', { credentials: () => ({ ...keys, sessionToken: 'expired' }) }, /renew the session/],
  ])('blame the operator for %s and charge nothing', async (_, options, advice) => {
    sandboxed = await gatewayWith(options)
    const response = await sandboxed.ask()

    expect(response.status).toBe(503)
    expect(sandboxed.gateway.events.findLast(({ type }) => type === 'vendor-account-problem')).toMatchObject({
      status: 403,
      message: expect.stringMatching(advice),
    })
    expect(await sandboxed.gateway.account()).toEqual({ balance: 100_000_000_000n, held: 0n })
  })

  test('are removed from answers and events if the service quotes them in an error', async () => {
    const sessionToken = 'SESSION-CANARY-0123'
    sandboxed = await gatewayWith({ credentials: () => ({ ...keys, secretAccessKey: 'wrong', sessionToken }) })
    const body = await (await sandboxed.ask()).text()
    const events = JSON.stringify(sandboxed.gateway.events, (_, value) =>
      typeof value === 'bigint' ? `${value}` : value,
    )

    expect(events).toContain('does not match')
    expect(`${body}${events}`).not.toContain('CANARY')
  })
})

test.each([['a model that needs a profile', 'anthropic.claude-opus-4-8', /profile, such as eu\.MODEL/]])(
  'blame the operator for %s, name the setting, and charge nothing',
  async (_, model, advice) => {
    const before = await started.account()
    const response = await started.post('/v1/messages', {
      ...{ model, max_tokens: 10 },
      messages: [{ role: 'user', content: 'Hello' }],
    })

    expect(response.status).toBe(503)
    expect(await started.account()).toEqual({ ...before, held: 0n })
    expect(started.events.findLast(({ type }) => type === 'vendor-account-problem')).toMatchObject({
      message: expect.stringMatching(advice),
    })
  },
)
