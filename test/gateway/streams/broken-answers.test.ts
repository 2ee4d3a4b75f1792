import type { ServerResponse } from 'node:http'
import { afterEach, describe, expect, test } from 'vitest'
import type { GatewayEvent } from '../../../src/core/events.ts'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { anthropic } from '../../../src/vendors/anthropic/anthropic.ts'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import { chatBody, type StartedGateway, startGateway, TEST_MODELS } from '../../support/start-gateway.ts'
import { type AnsweringVendor, answeringVendor, eventStream, json } from './answering-vendor.ts'

const CHAT = '/v1/chat/completions'
const CREDIT = 100_000_000_000n
const HELD_TOKENS = 1_500
const ANSWER_BYTES = 4_200
const ANSWER = { id: 'c', object: 'chat.completion', created: 1, model: 'm' }
const MODELS = [
  { ...TEST_MODELS[0], vendor: 'one', routes: [{ vendor: 'one' }, { vendor: 'two' }], fallbacks: ['spare'] },
  { ...TEST_MODELS[0], id: 'spare', vendor: 'two' },
]

let started: StartedGateway
let vendor: AnsweringVendor

afterEach(async () => {
  await started.close()
  await vendor.close()
})

async function startBefore(
  answer: (response: ServerResponse) => void,
  options: Partial<GatewayOptions> = {},
): Promise<void> {
  vendor = await answeringVendor(answer)
  const vendors = ['one', 'two'].map((id) => openaiCompatible({ id, baseURL: vendor.origin, apiKey: id, models: [] }))
  started = await startGateway({ vendors, models: MODELS, ...options })
}

/** The first call fails so; the others are answered. */
function failingFirst(fail: (response: ServerResponse) => void): (response: ServerResponse) => void {
  return (response) => (vendor.calls === 1 ? fail(response) : complete(response))
}

function complete(response: ServerResponse): void {
  const choices = [{ index: 0, message: { role: 'assistant', content: 'hi', refusal: null }, finish_reason: 'stop' }]
  json(response, { ...ANSWER, choices, usage: { prompt_tokens: 20, completion_tokens: 9, total_tokens: 29 } })
}

function breakOff(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': ANSWER_BYTES })
  response.write('{"id":"c","choices":[', () => response.destroy())
}

async function ask(fields: object = {}): Promise<Response> {
  const response = await started.post(CHAT, chatBody('chat-relayed', 'hello', { max_tokens: HELD_TOKENS, ...fields }))
  await response.text()
  return response
}

function told(): Extract<GatewayEvent, { type: 'unbilled-usage' }>[] {
  return started.events.filter((event) => event.type === 'unbilled-usage')
}

/** Returns the charges of the account in the journal. */
async function charges(): Promise<bigint[]> {
  const entries = await started.gateway.accounts.ledger('acct_test', { limit: 20 })
  return entries.filter(({ kind }) => kind === 'charge').map(({ amount }) => -amount)
}

describe('a whole answer that breaks off', () => {
  test('is retried, and only the received output is charged', async () => {
    await startBefore(failingFirst(breakOff))
    const response = await ask()

    expect(response.status).toBe(200)
    expect(vendor.calls).toBe(2)
    expect(await charges()).toEqual([20n * 1_000n + 9n * 4_000n])
    expect(told()).toEqual([expect.objectContaining({ isEstimated: true })])
  })

  test('is free and reported once per attempt if no other answer follows', async () => {
    await startBefore(breakOff)
    const response = await ask()

    expect(response.status).toBe(503)
    expect(await charges()).toEqual([])
    expect(told()).toHaveLength(vendor.calls)
    expect(await started.account()).toEqual({ balance: CREDIT, held: 0n })
  })

  test('is reported by its bytes if it ends normally but is not an answer', async () => {
    await startBefore((response) => response.end(`{"id":"c","choices":[{"text":"${'x'.repeat(1_000)}`))
    const response = await ask()

    expect(response.status).toBe(502)
    expect(told()).toHaveLength(vendor.calls)
    for (const { usage } of told()) expect(usage.outputTokens).toBeGreaterThan(190)
    expect(await charges()).toEqual([])
  })

  test('is reported as held if it has more items than a model can have made', async () => {
    const calls = Array.from({ length: 2_049 }, (_, index) => ({
      id: `c${index}`,
      type: 'function',
      function: { name: 'f', arguments: '{}' },
    }))
    const choices = [{ index: 0, message: { role: 'assistant', content: null, tool_calls: calls } }]
    await startBefore((response) => json(response, { ...ANSWER, choices }))
    const response = await ask()

    expect(response.status).toBe(502)
    expect(told()).toHaveLength(vendor.calls)
    for (const { usage } of told()) expect(usage.outputTokens).toBe(HELD_TOKENS)
    expect(await started.account()).toEqual({ balance: CREDIT, held: 0n })
  })

  test.each([false, true])(
    'is free and reported if the gateway cuts it off because it closes (stream: %s)',
    async (stream) => {
      await startBefore((response) => {
        if (stream) eventStream(response)
        else response.writeHead(200, { 'content-type': 'application/json', 'content-length': ANSWER_BYTES })
        response.write(stream ? ': accepted\n\n' : '{"id":"c","choices":[')
      })
      const ending = started.nextEnded()
      const asked = ask({ stream })
      await expect.poll(() => vendor.calls).toBe(1)
      await started.gateway.close({ drainMs: 50 })

      expect((await asked).status).toBe(503)
      expect(await ending).toMatchObject({ ending: 'failed', costNanoDollars: 0n })
      expect(told()).toEqual([expect.objectContaining({ isEstimated: true })])
      expect(await started.account()).toEqual({ balance: CREDIT, held: 0n })
    },
  )

  test('costs nothing with billing off, and is asked for again', async () => {
    await startBefore(failingFirst(breakOff), { billing: 'off' })

    expect((await ask()).status).toBe(200)
    expect(vendor.calls).toBe(2)
  })
})

test('reports a whole answer that nests too deep as unreadable (an internal error and no event before)', async () => {
  const depth = 20_000
  const input = `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`
  const block = `{"type":"tool_use","id":"t","name":"f","input":${input}}`
  vendor = await answeringVendor((response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(
      `{"id":"m","type":"message","role":"assistant","model":"m","content":[${block}],"stop_reason":"tool_use","usage":{"input_tokens":9,"output_tokens":9}}`,
    )
  })
  started = await startGateway({ vendors: [anthropic({ baseURL: vendor.origin, apiKey: 'one-01234567' })] })
  const body = chatBody('cl-sonnet-4-6', 'hello', { max_tokens: HELD_TOKENS })
  const response = await started.post(CHAT, body)

  expect(response.status).toBe(502)
  expect(await response.json()).toMatchObject({ error: { code: 'upstream_invalid_response' } })
  expect(told()).toHaveLength(vendor.calls)
  expect(started.events.filter(({ type }) => type === 'internal-error')).toEqual([])
  expect(await started.account()).toEqual({ balance: CREDIT, held: 0n })
})

describe('a whole answer that takes too long', () => {
  const timeouts = { firstByteMs: 60, totalMs: 200 }

  test.each([
    ['and is still made', (): void => undefined],
    ['by the word of a server on the way', (response: ServerResponse) => void response.writeHead(504).end('<html>')],
  ])('is free and reported as held (%s)', async (_name, fail) => {
    await startBefore(fail, { timeouts })
    const response = await ask()

    expect(response.status).toBe(504)
    expect(vendor.calls).toBe(1)
    expect(told()).toEqual([
      expect.objectContaining({ usage: { inputTokens: expect.any(Number), outputTokens: HELD_TOKENS } }),
    ])
    expect(await started.account()).toEqual({ balance: CREDIT, held: 0n })
  })

  test('is asked for elsewhere with retryAfterTimeout, and the answer alone is charged', async () => {
    await startBefore(
      failingFirst(() => undefined),
      {
        timeouts: { firstByteMs: 60, totalMs: 5_000 },
        routing: { retryAfterTimeout: true },
      },
    )

    expect((await ask()).status).toBe(200)
    expect(await charges()).toEqual([20n * 1_000n + 9n * 4_000n])
    expect(told()).toHaveLength(1)
  })
})

describe('a stream', () => {
  const chunk = (members: object): string => `data: ${JSON.stringify({ ...ANSWER, ...members })}\n\n`

  test('reports the prompt of a stream that breaks off before its first content, without a charge', async () => {
    await startBefore((response) => {
      eventStream(response)
      response.write(': accepted\n\n', () => response.destroy())
    })
    const response = await ask({ stream: true })

    expect(response.status).toBe(503)
    expect(told()).toHaveLength(vendor.calls)
    for (const { usage } of told()) expect(usage).toMatchObject({ inputTokens: expect.any(Number), outputTokens: 0 })
    expect(await started.account()).toEqual({ balance: CREDIT, held: 0n })
  })

  test('retries a stream with an error before its first content elsewhere, and charges only the answer', async () => {
    const usage = { prompt_tokens: 5, completion_tokens: 1, total_tokens: 6 }
    const choices = [{ index: 0, delta: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }]
    await startBefore((response) => {
      eventStream(response)
      if (vendor.calls === 1) response.end(chunk({ choices: [], usage: { ...usage, prompt_tokens: 700 } }) + failed)
      else response.end(`${chunk({ choices })}${chunk({ choices: [], usage })}data: [DONE]\n\n`)
    })
    const failed = `data: ${JSON.stringify({ error: { message: 'overloaded', type: 'server_error' } })}\n\n`
    const response = await ask({ stream: true })

    expect(response.status).toBe(200)
    expect(await charges()).toEqual([5n * 1_000n + 4_000n])
    expect(told()).toEqual([expect.objectContaining({ isEstimated: false })])
  })

  test('reports the usage of a stream that reports it and then an error, without a charge', async () => {
    const usage = { prompt_tokens: 700, completion_tokens: 0, total_tokens: 700 }
    await startBefore((response) => {
      eventStream(response)
      response.end(
        `${chunk({ choices: [], usage })}data: ${JSON.stringify({ error: { message: 'no', type: 'server_error' } })}\n\n`,
      )
    })
    await ask({ stream: true })

    expect(told()).toHaveLength(vendor.calls)
    for (const event of told()) expect(event).toMatchObject({ usage: { inputTokens: 700 }, isEstimated: false })
    expect(await started.account()).toEqual({ balance: CREDIT, held: 0n })
  })
})

describe('what a vendor may not have begun', () => {
  test.each([
    [
      'a refusal',
      (response: ServerResponse) => json(response, { error: { message: 'no', type: 'server_error' } }, 500),
      0,
    ],
    ['an error page', (response: ServerResponse) => void response.writeHead(502).end('<html>'), 1],
    ['a connection that breaks before an answer', (response: ServerResponse) => void response.destroy(), 1],
  ])('is free and asked for elsewhere (%s)', async (_name, fail, events) => {
    await startBefore(failingFirst(fail))

    expect((await ask()).status).toBe(200)
    expect(await charges()).toEqual([20n * 1_000n + 9n * 4_000n])
    expect(told()).toHaveLength(events)
  })

  test.each([
    ['error pages', (response: ServerResponse) => void response.writeHead(502).end('<html>')],
    ['connections that break before an answer', (response: ServerResponse) => void response.destroy()],
  ])('is free where nobody answers (%s)', async (_name, fail) => {
    await startBefore(fail)
    const response = await ask()

    expect(response.status).toBe(503)
    expect(await charges()).toEqual([])
    expect(told()).toHaveLength(vendor.calls)
    expect(await started.account()).toEqual({ balance: CREDIT, held: 0n })
  })
})
