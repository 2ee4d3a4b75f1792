import { afterEach, describe, expect, test } from 'vitest'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { chatBody, type StartedGateway, startGateway } from '../../support/start-gateway.ts'

let started: StartedGateway | undefined

afterEach(async () => {
  await started?.close()
  started = undefined
})

const CHAT = '/v1/chat/completions'

/** A gateway with a caller who has so many dollars. */
async function startWith(dollars: string, options: Partial<GatewayOptions> = {}) {
  const gateway = await startGateway(options)
  started = gateway
  await gateway.gateway.accounts.create({ id: 'acct_small' })
  await gateway.gateway.accounts.credit('acct_small', dollars)
  const { key } = await gateway.gateway.keys.create({ accountId: 'acct_small' })
  const post = (body: unknown, path = CHAT) => gateway.post(path, body, { authorization: `Bearer ${key}` })
  const sent = () => gateway.sandbox.requests.map(({ body }) => body as Record<string, unknown>)
  return { ...gateway, post, sent }
}

describe('a request without a bound of its output', () => {
  test('is held and sent with a bound of 16,384 tokens at cl-sonnet-4-6 with $1.00', async () => {
    const { post, sent, gateway } = await startWith('1.00')
    const estimate = await gateway.estimate(
      { accountId: 'acct_small', keyId: 'key_small', tier: 'paid' },
      { endpoint: 'chat', body: chatBody('cl-sonnet-4-6', 'hi') },
    )
    const response = await post(chatBody('cl-sonnet-4-6', 'hi'))

    expect(estimate.usage.outputTokens).toBe(16_384)
    expect(response.status).toBe(200)
    expect(response.headers.get('x-signalbox-max-output-tokens')).toBe('16384')
    expect(sent().at(-1)?.['max_tokens']).toBe(16_384)
  })

  test('is limited to half of the free balance if that decides, and the limit is sent and reported', async () => {
    // Half of $0.04 less the prompt (at $3 a million) buys 1,328 output tokens at $15 a million.
    const { post, sent } = await startWith('0.04')
    const response = await post(chatBody('cl-sonnet-4-6', 'hi'))
    const bound = Number(response.headers.get('x-signalbox-max-output-tokens'))

    expect(response.status).toBe(200)
    expect(bound).toBe(1_328)
    expect(sent().at(-1)?.['max_tokens']).toBe(bound)
  })

  test('is named by its charge in the journal, though it was reserved twice', async () => {
    const { post, gateway, ended } = await startWith('0.04')
    const response = await post(chatBody('cl-sonnet-4-6', 'hi'))
    await ended(response)
    const { entries } = await gateway.accounts.journal('acct_small', { limit: 1 })

    expect(response.headers.get('x-signalbox-max-output-tokens')).not.toBeNull()
    expect(entries).toMatchObject([{ kind: 'charge', holdId: response.headers.get('x-request-id') }])
  })

  test.each([{}, { max_tokens: null }, { stream: true, unknown_field: [1] }])(
    'gets the limit inserted among its other members if the vendor uses the same dialect: %j',
    async (rest) => {
      const { post, sent } = await startWith('0.002')
      const response = await post(chatBody('chat-qwen', 'hi', rest))
      await response.text()
      const bound = Number(response.headers.get('x-signalbox-max-output-tokens'))

      expect(bound).toBeGreaterThan(480)
      expect(bound).toBeLessThan(500)
      expect(sent().at(-1)).toMatchObject({ model: 'qwen3-max', max_completion_tokens: bound })
      if ('unknown_field' in rest) expect(sent().at(-1)).toMatchObject(rest)
      expect(sent().at(-1)).not.toHaveProperty('max_tokens')
    },
  )

  test('has the bound under the name that the model knows', async () => {
    const { post, sent } = await startWith('0.005')
    const response = await post(chatBody('chat-relayed', 'hi'))

    expect(response.headers.get('x-signalbox-max-output-tokens')).toBe('619')
    expect(sent().at(-1)).toMatchObject({ max_completion_tokens: 619 })
  })

  test('is bounded for each of the answers it asks for', async () => {
    const { post, sent } = await startWith('0.01')
    const response = await post(chatBody('chat-relayed', 'hi', { n: 2 }))

    expect(response.headers.get('x-signalbox-max-output-tokens')).toBe('621')
    expect(sent().at(-1)).toMatchObject({ n: 2, max_completion_tokens: 621 })
  })

  test.each([
    [2_000, undefined],
    [undefined, 2_000],
  ])(
    'is bounded by no more than each model that may answer can give (%s tokens, its fallback %s)',
    async (own, ofFallback) => {
      const price = (model: string, amount: string) =>
        (['input_token', 'output_token'] as const).map((meter) => ({ model, meter, amount, per: 1_000_000 }))
      const row = { kind: 'chat', vendor: 'openai', upstream: 'gpt-5.4' } as const
      const limitsOf = (maxOutputTokens?: number) =>
        maxOutputTokens === undefined ? {} : { limits: { maxOutputTokens } }
      const { post, sent } = await startWith('0.05', {
        models: [
          { ...row, id: 'asked', ...limitsOf(own), fallbacks: ['dearer'] },
          { ...row, id: 'dearer', ...limitsOf(ofFallback) },
        ],
        prices: {
          currency: 'USD',
          prices: [...price('asked', ofFallback === undefined ? '1' : '10'), ...price('dearer', '10')],
        },
      })
      const response = await post(chatBody('asked', 'hi'))

      expect(response.status).toBe(200)
      // Half of the balance buys 2,479 at the higher price.
      expect(response.headers.get('x-signalbox-max-output-tokens')).toBe('2000')
      expect(sent().at(-1)).toMatchObject({ max_completion_tokens: 2_000 })
    },
  )

  test('leaves half of the balance to calls at the same time', async () => {
    const { post } = await startWith('0.10')
    const bodies = [1, 2, 3, 4].map(() => post(chatBody('cl-sonnet-4-6', 'hi')))
    const answers = await Promise.all(bodies)

    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
  })

  test('may use all of a small balance for 256 tokens, and below that gets 402 with a remedy', async () => {
    const { post, gateway } = await startWith('0.0040')
    const last = await post(chatBody('cl-sonnet-4-6', 'hi'))
    expect(last.status).toBe(200)
    expect(last.headers.get('x-signalbox-max-output-tokens')).toBe('256')

    await gateway.accounts.create({ id: 'acct_none' })
    await gateway.accounts.credit('acct_none', '0.001')
    const { key } = await gateway.keys.create({ accountId: 'acct_none' })
    const refused = await started!.post(CHAT, chatBody('cl-sonnet-4-6', 'hi'), { authorization: `Bearer ${key}` })

    expect(refused.status).toBe(402)
    expect(refused.headers.get('x-signalbox-error-code')).toBe('insufficient_balance')
    expect(await refused.json()).toEqual({
      error: { message: 'This request needs $0.003909, available $0.001; lower max_tokens or add credit.' },
    })
    expect(started!.events).toContainEqual(
      expect.objectContaining({ type: 'request-refused', code: 'insufficient_balance', accountId: 'acct_none' }),
    )
  })

  test('takes from the limit of tokens by the same bound: three at once pass 200,000 a minute', async () => {
    const { post } = await startWith('10', { limits: { tokensPerMinute: 200_000 } })
    const answers = await Promise.all([1, 2, 3].map(() => post(chatBody('cl-sonnet-4-6', 'hi'))))

    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
  })

  test('ends its hold once, and the account has what was not charged', async () => {
    const { post, gateway } = await startWith('0.04')
    const response = await post(chatBody('cl-sonnet-4-6', 'hi'))
    const cost = response.headers.get('x-signalbox-cost')
    const account = await gateway.accounts.get('acct_small')

    expect(account?.held).toBe(0n)
    expect(account?.balance).toBe(40_000_000n - BigInt(Math.round(Number(cost) * 1e9)))
  })
})

describe('a request with a bound of its own', () => {
  test('names a remedy if the balance does not suffice', async () => {
    const { post } = await startWith('0.01')
    const response = await post(chatBody('cl-sonnet-4-6', 'hi', { max_tokens: 1_000 }))

    expect(response.status).toBe(402)
    expect(await response.json()).toEqual({
      error: { message: 'This request needs $0.015087, available $0.01; lower max_tokens or add credit.' },
    })
  })

  test('shows no amounts if the operator hides them', async () => {
    const { post } = await startWith('0.01', { showBalanceInErrors: false })
    const response = await post(chatBody('cl-sonnet-4-6', 'hi', { max_tokens: 1_000 }))

    expect(await response.json()).toEqual({
      error: { message: 'The balance is too low for this request; lower max_tokens or add credit.' },
    })
  })

  test.each([
    [CHAT, { max_tokens: 1e15 }],
    [CHAT, { max_completion_tokens: 1e15 }],
    ['/v1/messages', { max_tokens: 1e15 }],
  ])('gets 400 at %s for more tokens than any model generates', async (path, bound) => {
    const { post } = await startWith('1')
    const response = await post(chatBody('cl-sonnet-4-6', 'hi', bound), path)

    expect(response.status).toBe(400)
    expect(started!.events.filter(({ type }) => type === 'internal-error')).toEqual([])
  })
})

test('rejects a defaultMaxOutputTokens below 256 at start', async () => {
  await expect(startGateway({ defaultMaxOutputTokens: 100 })).rejects.toThrow('defaultMaxOutputTokens')
})
