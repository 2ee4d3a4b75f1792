import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { nodeHandler } from '../../../src/adapters/node.ts'
import type { AnyHook } from '../../../src/hooks/hook.ts'
import { StreamResponse } from '../../../src/pipeline/vendor-response.ts'
import { listen } from '../../support/listen.ts'
import { readEvents } from '../../support/read-events.ts'
import { chatBody, type StartedGateway, startGateway, TEST_KEY } from '../../support/start-gateway.ts'

let started: StartedGateway
const unhandled: unknown[] = []
const onUnhandled = (reason: unknown): void => void unhandled.push(reason)

beforeEach(async () => {
  process.on('unhandledRejection', onUnhandled)
  started = await startGateway()
})
afterEach(async () => {
  await started.close()
  process.off('unhandledRejection', onUnhandled)
  expect(unhandled.splice(0)).toEqual([])
})

const CHAT = '/v1/chat/completions'
const MODELS = ['chat-relayed', 'chat-qwen', 'cl-sonnet-4-6', 'gmn-2.5-flash'] as const
const TEXT = 'one two three four five six seven eight'

/** A hook that leaves every text as it is. */
const PASSING: AnyHook = { name: 'passing', text: { holdBack: { chars: 0 }, check: () => undefined } }

test.each([
  ['as it is', []],
  ['behind a hook', [PASSING]],
])('a stream %s whose first bytes cannot be written ends once', async (_name, hooks) => {
  const hooked = await startGateway({ hooks })
  const ends = vi.spyOn(StreamResponse.prototype, 'end')
  const handler = nodeHandler(hooked.gateway)
  const front = await listen((request, response) => {
    // The gateway notices the failure like a middleware that throws.
    response.write = () => {
      throw new Error('cannot be compressed')
    }
    handler(request, response)
  })
  try {
    const ended = hooked.nextEnded()
    const body = JSON.stringify(chatBody('chat-relayed', `[[fault:hang-body=4]] ${TEXT}`, { stream: true }))
    const headers = { authorization: `Bearer ${TEST_KEY}`, 'content-type': 'application/json' }
    await expect(fetch(`${front.origin}${CHAT}`, { method: 'POST', headers, body })).rejects.toThrow()

    expect(await ended).toMatchObject({ ending: 'failed', vendor: 'openai' })
    expect(ends.mock.calls).toEqual([['aborted']])
    expect((await hooked.account()).held).toBe(0n)
  } finally {
    ends.mockRestore()
    await front.close()
    await hooked.close()
  }
})

test.each([
  ['after its first words', 'hang-body=4', 200],
  ['before them', 'hang-body=0', 504],
])('a stream that is not over in the whole time of a request ends with a time-out %s', async (_when, fault, status) => {
  const hasty = await startGateway({ timeouts: { totalMs: 400, firstByteMs: 400 } })
  const response = await hasty.post(CHAT, chatBody('chat-relayed', `[[fault:${fault}]] ${TEXT}`, { stream: true }))
  const text = await response.text()
  const ended = await hasty.ended(response)
  await hasty.close()

  expect([response.status, ended.ending, ended.code]).toEqual([status, 'failed', 'upstream_timeout'])
  expect(text).toContain('"code":"upstream_timeout"')
})

describe.each(MODELS)('a stream of %s', (model) => {
  test.each(['reset-mid-stream=4', 'end-early=4', 'error-event=4'])(
    'ends with an error event, never with an end mark, if it breaks in the middle (%s), and charges the output received so far',
    async (fault) => {
      const response = await started.post(CHAT, chatBody(model, `[[fault:${fault}]] ${TEXT}`, { stream: true }))
      const events = await readEvents(response)
      const ended = await started.ended(response)

      expect(response.status).toBe(200)
      expect(JSON.parse(events.at(-1) ?? '')).toMatchObject({
        error: { message: expect.any(String), type: expect.any(String), code: expect.any(String) },
      })
      expect(events).not.toContain('[DONE]')
      expect(ended.ending).toBe('failed')
      expect(ended.costNanoDollars).toBeGreaterThan(0n)
      expect((await started.account()).held).toBe(0n)
    },
  )

  test.each([
    ['status=503', 503, 'upstream_unavailable'],
    ['status=500', 503, 'upstream_unavailable'],
    ['status=429,retry-after=7', 429, 'Throttling.RateQuota'],
    ['quota', 503, 'upstream_unavailable'],
    ['bad-key', 503, 'upstream_unavailable'],
    ['html=502', 503, 'upstream_unavailable'],
    ['redirect', 502, 'upstream_invalid_response'],
    ['garbage', 502, 'upstream_invalid_response'],
    ['reset', 503, 'upstream_unavailable'],
    ['empty', 502, 'upstream_invalid_response'],
  ])('fails before its first content (%s) with status %i and no charge', async (fault, status, code) => {
    const response = await started.post(CHAT, chatBody(model, `[[fault:${fault}]] ${TEXT}`, { stream: true }))
    const body = await response.json()

    expect(response.status).toBe(status)
    expect(body.error.code).toBe(code)
    expect(await started.account()).toEqual({ balance: 100_000_000_000n, held: 0n })
  })

  test.each([
    ['status=503', 503, 'upstream_unavailable'],
    ['status=429,retry-after=7', 429, 'Throttling.RateQuota'],
    ['quota', 503, 'upstream_unavailable'],
    ['leak-key', 503, 'upstream_unavailable'],
    ['html=502', 503, 'upstream_unavailable'],
    ['redirect', 502, 'upstream_invalid_response'],
    ['garbage', 502, 'upstream_invalid_response'],
    ['half-json', 502, 'upstream_invalid_response'],
    ['reset', 503, 'upstream_unavailable'],
    ['reset-mid-stream', 503, 'upstream_unavailable'],
    ['empty', 502, 'upstream_invalid_response'],
  ])('a whole answer that fails (%s) is answered with status %i and no charge', async (fault, status, code) => {
    const response = await started.post(CHAT, chatBody(model, `[[fault:${fault}]] ${TEXT}`))
    const body = await response.json()

    expect(response.status).toBe(status)
    expect(body.error.code).toBe(code)
    expect(JSON.stringify(body)).not.toContain('canary')
    expect(await started.account()).toEqual({ balance: 100_000_000_000n, held: 0n })
    if (status === 429 || status === 503) expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0)
  })

  test('is an error with half an event in it, before or after the first content', async () => {
    const response = await started.post(CHAT, chatBody(model, `[[fault:half-json]] ${TEXT}`, { stream: true }))
    const text = await response.text()

    expect([200, 502]).toContain(response.status)
    expect(text).toContain('"code":"upstream_invalid_response"')
    expect(text).not.toContain('[DONE]')
  })

  test('arrives whole if its bytes are cut inside characters and events', async () => {
    const text = 'Grüße aus 東京 🚀 ça va'
    const response = await started.post(CHAT, chatBody(model, `[[fault:cut=3]] ${text}`, { stream: true }))
    const events = await readEvents(response)
    const answer = events
      .filter((event) => event !== '[DONE]')
      .map(
        (event) =>
          (JSON.parse(event) as { choices: { delta: { content?: string } }[] }).choices[0]?.delta.content ?? '',
      )
      .join('')

    expect(answer).toBe(`You said: ${text}`)
    expect(events.at(-1)).toBe('[DONE]')
  })
})

test('the 429 of a vendor carries its retry-after', async () => {
  const response = await started.post(CHAT, chatBody('chat-relayed', '[[fault:status=429,retry-after=7]] hello'))

  expect(response.headers.get('retry-after')).toBe('7')
  expect(await response.json()).toMatchObject({
    code: 'Throttling.RateQuota',
    request_id: response.headers.get('x-request-id'),
    error: { type: 'rate_limit_error' },
  })
})

test("the operator's own trouble at a vendor is told to the operator", async () => {
  await started.post(CHAT, chatBody('chat-relayed', '[[fault:quota]] hello')).then((response) => response.text())

  expect(started.events).toContainEqual(expect.objectContaining({ type: 'vendor-account-problem', vendor: 'openai' }))
})
