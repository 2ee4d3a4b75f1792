import { afterEach, describe, expect, test } from 'vitest'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { rawPost } from '../../support/raw-caller.ts'
import { type RequestEnded, type StartedGateway, startGateway } from '../../support/start-gateway.ts'
import { testPrices } from '../../support/test-prices.ts'
import { messagesBody } from './messages-requests.ts'

const PATH = '/v1/messages'
const WORDS = Array.from({ length: 200 }, (_, number) => `word${number}`).join(' ')

let started: StartedGateway

afterEach(() => started.close())

describe.each(['cl-sonnet-4-6', 'gmn-2.5-flash', 'chat-relayed'])('a caller of %s who leaves', (model) => {
  test('is charged once after some events, for the output received so far, and the vendor is stopped', async () => {
    started = await startGateway({ drainMs: 200 })
    const caller = rawPost(started.url, PATH, messagesBody(model, `[[fault:pace=5]] ${WORDS}`, { stream: true }))
    await caller.received('word3')
    const ending = started.nextEnded()
    caller.leave()
    await started.sandbox.nextAbort()
    const ended = await ending

    expect(ended).toMatchObject({ ending: 'abandoned', endpoint: 'messages' })
    expect(ended.costNanoDollars).toBeGreaterThan(0n)
    expect(ended.usage?.outputTokens).toBeGreaterThan(0)
    expect(await started.account()).toEqual({ held: 0n, balance: 100_000_000_000n - ended.costNanoDollars })
    expect(started.events.filter((event) => event.type === 'request-ended')).toHaveLength(1)
  })

  test('before the answer pays for the prompt, once', async () => {
    started = await startGateway({ disconnect: 'cancel', drainMs: 200 })
    const caller = rawPost(started.url, PATH, messagesBody(model, '[[fault:hang]] a prompt'))
    await started.sandbox.nextRequest()
    const ending = started.nextEnded()
    caller.leave()
    await started.sandbox.nextAbort()
    const ended = await ending

    expect(ended.ending).toBe('abandoned')
    expect(ended.costNanoDollars).toBeGreaterThan(0n)
    expect((await started.account()).held).toBe(0n)
  })
})

describe.each(['/v1/messages', '/v1/responses'])('a caller of a search by %s who leaves in the middle', (path) => {
  const isMessage = path === PATH
  const model = isMessage ? 'cl-sonnet-4-6' : 'chat-relayed'
  const text = `[[fault:pace=5]] ${WORDS}`
  const body: Record<string, unknown> = isMessage
    ? messagesBody(model, text, {
        stream: true,
        tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: 5 }],
      })
    : { model, input: text, stream: true, max_output_tokens: 1_000, tools: [{ type: 'web_search' }] }
  const prices = {
    ...testPrices,
    prices: [...testPrices.prices, { model, meter: 'web_search' as const, amount: '10', per: 1_000 }],
  }

  async function leave(options: Partial<GatewayOptions>): Promise<RequestEnded> {
    started = await startGateway({ prices, ...options })
    const caller = rawPost(started.url, path, body)
    await caller.received('word3')
    const ending = started.nextEnded()
    caller.leave()
    return ending
  }

  // Before: the prompt, the text so far and one search, though the vendor's tools read unseen: $0.2375 became $0.016.
  test('pays what the vendor reports', async () => {
    const { ending, usage } = await leave({})

    expect(ending).toBe('completed')
    expect(usage?.outputTokens).toBeGreaterThan(100)
  })

  test('pays for the output and searches of the time that passed, where the call is cancelled', async () => {
    const { ending, usage } = await leave({ disconnect: 'cancel' })

    expect(ending).toBe('abandoned')
    expect(usage?.webSearches).toBeGreaterThanOrEqual(1)
    expect(usage?.webSearches).toBeLessThan(5)
    expect(usage?.outputTokens).toBeGreaterThan(0)
    expect(usage?.outputTokens).toBeLessThan(isMessage ? 200 : 1_000)
  })
})

test('the same Idempotency-Key gets the same message again, charged once', async () => {
  started = await startGateway({ drainMs: 200 })
  const send = (): Promise<Response> =>
    started.post(PATH, messagesBody('gmn-2.5-flash', 'hello'), { 'idempotency-key': 'once' })
  const first = await send()
  const [answer, { balance }] = [await first.text(), await started.account()]
  const second = await send()

  expect(await second.text()).toBe(answer)
  expect(second.headers.get('idempotent-replayed')).toBe('true')
  expect(second.headers.get('request-id')).toBe(second.headers.get('x-request-id'))
  expect((await started.account()).balance).toBe(balance)
})
