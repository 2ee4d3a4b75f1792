import { createServer, type ServerResponse } from 'node:http'
import { afterEach, describe, expect, test } from 'vitest'
import type { Credential } from '../../../src/core/credential.ts'
import type { GatewayEvent } from '../../../src/core/events.ts'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { fakeClock } from '../../../src/testing/index.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import { presets } from '../../../src/vendors/presets/presets.ts'
import { listen } from '../../support/listen.ts'
import { rawPost } from '../../support/raw-caller.ts'
import { chatBody, type StartedGateway, startGateway, TEST_KEY, TEST_MODELS } from '../../support/start-gateway.ts'
import { png } from '../images/image-requests.ts'
import { type AnsweringVendor, answeringVendor, json } from './answering-vendor.ts'

const CHAT = '/v1/chat/completions'
const CREDIT = 100_000_000_000n
const TOKENS = 900
const POLICIES: readonly (readonly [string, Partial<GatewayOptions>])[] = [
  ['without a policy', {}],
  ['under cancel', { disconnect: 'cancel' }],
  ['under drain', { disconnect: 'drain' }],
]

let started: StartedGateway
let vendor: AnsweringVendor

afterEach(async () => {
  await started.close()
  await vendor.close()
})

function completion(usage?: object): object {
  const message = { role: 'assistant', content: 'The quiet harbour wakes.', refusal: null }
  const choices = [{ index: 0, message, finish_reason: 'stop', logprobs: null }]
  return { id: 'c', object: 'chat.completion', created: 1, model: 'm', choices, ...(usage && { usage }) }
}

async function start(answer: (response: ServerResponse) => void, options: Partial<GatewayOptions>): Promise<void> {
  vendor = await answeringVendor(answer)
  started = await startGateway({ vendors: [openai({ apiKey: 'key', baseURL: vendor.origin })], ...options })
}

function toldUsage(): GatewayEvent[] {
  return started.events.filter(({ type }) => type === 'unbilled-usage')
}

test('a whole answer without a report is charged for the usual reasoning of one answer, if calls had several', async () => {
  const report = {
    prompt_tokens: 20,
    completion_tokens: 812,
    completion_tokens_details: { reasoning_tokens: 800 },
    total_tokens: 832,
  }
  let usage: object | undefined = report
  await start((response) => json(response, completion(usage)), {
    models: [{ ...TEST_MODELS[0], upstream: 'o3' }],
  })
  const ask = async (n: number) => {
    const response = await started.post(CHAT, chatBody('chat-relayed', 'hi', { max_tokens: 2_000, n }))
    await response.text()
    return started.ended(response)
  }
  for (let call = 0; call < 20; call++) await ask(2)
  usage = undefined

  // 400 tokens and a fifth more for each answer, and the text.
  expect((await ask(1)).usage?.outputTokens).toBe(486)
  expect((await ask(3)).usage?.outputTokens).toBe(1_446)
})

describe('a whole answer whose caller disconnects while it is generated', () => {
  test.each(POLICIES)(
    'is read to its end and charged as reported (%s: 0 output tokens before, now 900)',
    async (_policy, options) => {
      let answer = (): void => undefined
      const usage = { prompt_tokens: 20, completion_tokens: TOKENS, total_tokens: 20 + TOKENS }
      await start((response) => {
        answer = () => json(response, completion(usage))
      }, options)
      const caller = rawPost(started.url, CHAT, chatBody('chat-relayed', 'hello', { max_tokens: 2_000 }))
      await expect.poll(() => vendor.calls).toBe(1)
      const ending = started.nextEnded()
      caller.leave()
      setTimeout(() => answer(), 50)
      const ended = await ending

      expect(ended).toMatchObject({ ending: 'completed', usage: { inputTokens: 20, outputTokens: TOKENS } })
      expect(ended.costNanoDollars).toBe(20n * 1_000n + BigInt(TOKENS) * 4_000n)
      expect(vendor.aborted).toBe(0)
    },
  )

  test('is given up after ten seconds and charged for what the model can have written by then', async () => {
    const clock = fakeClock()
    await start(() => undefined, { clock })
    const caller = rawPost(started.url, CHAT, chatBody('chat-relayed', 'hello', { max_tokens: 2_000 }))
    await expect.poll(() => vendor.calls).toBe(1)
    const ending = started.nextEnded()
    caller.leave()
    await caller.closed
    await started.gateway.accounts.get('acct_test')
    await expect
      .poll(() => {
        clock.advance(1_000)
        return vendor.aborted
      })
      .toBe(1)

    const { ending: kind, usage, requestId } = await ending
    expect(kind).toBe('abandoned')
    // 100 tokens a second for ten seconds, and what the clock has advanced since.
    expect(usage?.outputTokens).toBeGreaterThanOrEqual(1_000)
    expect(usage?.outputTokens).toBeLessThan(1_500)
    expect((await started.account()).held).toBe(0n)
    const [told] = started.events.filter(({ type }) => type === 'call-abandoned')
    expect(told).toMatchObject({ requestId, vendor: 'openai', usage: { outputTokens: usage?.outputTokens } })
  })

  test('costs about 13 s of writing after a wait of 3 s', async () => {
    const clock = fakeClock()
    await start(() => undefined, { clock })
    const caller = rawPost(started.url, CHAT, chatBody('chat-relayed', 'hi', { max_tokens: 2_000 }))
    await expect.poll(() => vendor.calls).toBe(1)
    const ending = started.nextEnded()
    clock.advance(3_000)
    caller.leave()
    await caller.closed
    await started.gateway.accounts.get('acct_test')
    await expect
      .poll(() => {
        clock.advance(1_000)
        return vendor.aborted
      })
      .toBe(1)

    const { usage } = await ending
    expect(usage?.outputTokens).toBeGreaterThanOrEqual(1_300)
    expect(usage?.outputTokens).toBeLessThan(1_700)
  })

  test('costs the writing of each of its answers', async () => {
    const clock = fakeClock()
    await start(() => undefined, { clock })
    const caller = rawPost(started.url, CHAT, chatBody('chat-relayed', 'hi', { max_tokens: 2_000, n: 3 }))
    await expect.poll(() => vendor.calls).toBe(1)
    const ending = started.nextEnded()
    caller.leave()
    await caller.closed
    await started.gateway.accounts.get('acct_test')
    await expect
      .poll(() => {
        clock.advance(1_000)
        return vendor.aborted
      })
      .toBe(1)

    const { usage } = await ending
    expect(usage?.outputTokens).toBeGreaterThanOrEqual(3_000)
    expect(usage?.outputTokens).toBeLessThan(4_500)
  })

  test('is charged by the speed of one answer, if calls with several have shown it', async () => {
    const clock = fakeClock()
    const usage = { prompt_tokens: 20, completion_tokens: 4_000, total_tokens: 4_020 }
    let answer: (response: ServerResponse) => void = (response) => {
      clock.advance(10_000)
      json(response, completion(usage))
    }
    await start((response) => answer(response), { clock })
    const both = await started.post(CHAT, chatBody('chat-relayed', 'hi', { max_tokens: 2_000, n: 2 }))
    await both.text()
    await started.ended(both)
    answer = () => undefined
    const caller = rawPost(started.url, CHAT, chatBody('chat-relayed', 'hi', { max_tokens: 5_000 }))
    await expect.poll(() => vendor.calls).toBe(2)
    const ending = started.nextEnded()
    caller.leave()
    await caller.closed
    await started.gateway.accounts.get('acct_test')
    await expect
      .poll(() => {
        clock.advance(1_000)
        return vendor.aborted
      })
      .toBe(1)

    // 200 tokens a second for at least ten seconds, and not 400.
    const ended = await ending
    expect(ended.usage?.outputTokens).toBeGreaterThanOrEqual(2_000)
    expect(ended.usage?.outputTokens).toBeLessThan(3_500)
  })

  test('costs nothing if its vendor fails after the caller has disconnected', async () => {
    let answer = (): void => undefined
    await start((response) => {
      answer = () => json(response, { error: { message: 'broken', type: 'server_error' } }, 500)
    }, {})
    const caller = rawPost(started.url, CHAT, chatBody('chat-relayed', 'hello', { max_tokens: 2_000 }))
    await expect.poll(() => vendor.calls).toBe(1)
    const ending = started.nextEnded()
    caller.leave()
    setTimeout(() => answer(), 50)

    expect(await ending).toMatchObject({ ending: 'abandoned', costNanoDollars: 0n })
    expect(await started.account()).toEqual({ balance: CREDIT, held: 0n })
  })

  test('is not retried elsewhere if it fails at the vendor, and a rejected one is free', async () => {
    let answer = (): void => undefined
    await start(
      (response) => {
        answer = () => json(response, { error: { message: 'overloaded', type: 'server_error' } }, 503)
      },
      {
        models: [
          { ...TEST_MODELS[0], fallbacks: ['chat-qwen'] },
          { ...TEST_MODELS[0], id: 'chat-qwen' },
        ],
      },
    )
    const caller = rawPost(started.url, CHAT, chatBody('chat-relayed', 'hello', { max_tokens: 2_000 }))
    await expect.poll(() => vendor.calls).toBe(1)
    const ending = started.nextEnded()
    caller.leave()
    setTimeout(() => answer(), 50)

    expect(await ending).toMatchObject({ ending: 'abandoned', costNanoDollars: 0n })
    expect(vendor.calls).toBe(1)
    expect(await started.account()).toEqual({ balance: CREDIT, held: 0n })
  })

  test('is stopped at once where nothing is charged', async () => {
    await start(() => undefined, { billing: 'off' })
    const caller = rawPost(started.url, CHAT, chatBody('chat-relayed', 'hello'))
    await expect.poll(() => vendor.calls).toBe(1)
    const ending = started.nextEnded()
    caller.leave()

    expect((await ending).ending).toBe('abandoned')
    await expect.poll(() => vendor.aborted).toBe(1)
  })
})

describe('a caller that disconnects before the vendor has the call', () => {
  const AWAITED = POLICIES.flatMap(([policy, options]) => [false, true].map((stream) => ({ policy, options, stream })))

  /** Asks within the process, and leaves when what the call waits for is about to come. */
  async function askAndLeave(body: object, waitedFor: () => (() => void) | undefined): Promise<void> {
    const leaving = new AbortController()
    const request = new Request(`${started.url}${CHAT}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${TEST_KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: leaving.signal,
    })
    const ending = started.nextEnded()
    const answer = started.gateway.fetch(request).catch(() => undefined)
    await expect.poll(waitedFor).toBeDefined()
    leaving.abort()
    waitedFor()?.()

    expect(await ending).toMatchObject({ ending: 'abandoned', costNanoDollars: 0n })
    expect(vendor.calls).toBe(0)
    expect(await started.account()).toEqual({ balance: CREDIT, held: 0n })
    await answer
  }

  test.each(AWAITED)(
    'while its credential is awaited is asked for nothing, and pays nothing ($policy, stream: $stream)',
    async ({ options, stream }) => {
      let give: (() => void) | undefined
      const apiKey = (): Promise<Credential> =>
        new Promise((resolve) => {
          give = () => resolve({ token: 'token' })
        })
      vendor = await answeringVendor((response) => json(response, completion()))
      started = await startGateway({ vendors: [openai({ apiKey, baseURL: vendor.origin })], ...options })

      await askAndLeave(chatBody('chat-relayed', 'hello', { stream }), () => give)
    },
  )

  test.each(AWAITED)(
    'calls no vendor and pays nothing while its image is fetched ($policy, stream: $stream)',
    async ({ options, stream }) => {
      let fetched: (() => void) | undefined
      const pictures = createServer((_request, response) => {
        fetched = () => response.writeHead(200, { 'content-type': 'image/png' }).end(png(16))
      })
      const { origin, close } = await listen(pictures)
      vendor = await answeringVendor((response) => json(response, completion()))
      started = await startGateway({
        vendors: [openaiCompatible(presets.ollama, { baseURL: vendor.origin })],
        models: [{ ...TEST_MODELS[0], vendor: 'ollama' }],
        ...options,
      })
      const image = { type: 'image_url', image_url: { url: `${origin}/a.png` } }

      await askAndLeave(
        { model: 'chat-relayed', messages: [{ role: 'user', content: [image] }], stream },
        () => fetched,
      )
      await close()
    },
  )
})

test('does not send a call again with another credential after the caller disconnected', async () => {
  const clock = fakeClock()
  let made = 0
  let refuse: (() => void) | undefined
  vendor = await answeringVendor((response) => {
    if (vendor.calls !== 2) return json(response, completion())
    refuse = () => json(response, { error: { message: 'expired', type: 'auth' } }, 401)
  })
  const apiKey = (): Credential => ({ token: `token-${++made}` })
  started = await startGateway({ vendors: [openai({ apiKey, baseURL: vendor.origin })], clock })
  await (await started.post(CHAT, chatBody('chat-relayed', 'hello'))).text()
  const { balance } = await started.account()
  clock.advance(10_000)
  const caller = rawPost(started.url, CHAT, chatBody('chat-relayed', 'hello'))
  await expect.poll(() => refuse).toBeDefined()
  const ending = started.nextEnded()
  const { pending } = clock
  caller.leave()
  // The answer is awaited for a while.
  await expect.poll(() => clock.pending).toBeGreaterThan(pending)
  refuse?.()

  expect(await ending).toMatchObject({ ending: 'abandoned', costNanoDollars: 0n })
  expect(vendor.calls).toBe(2)
  expect(await started.account()).toEqual({ balance, held: 0n })
  // That it had expired says nothing about the key, which serves the next caller by a new one.
  expect((await started.post(CHAT, chatBody('chat-relayed', 'hello'))).status).toBe(200)
  expect([vendor.calls, made]).toEqual([3, 2])
  const types = started.events.map(({ type }) => type)
  expect(types).not.toContain('circuit-opened')
  expect(types).not.toContain('vendor-account-problem')
})

test('reasoning that nobody sees and nobody reports is charged as it was held for, whole and streamed (6 tokens before, now 2,000)', async () => {
  await start((response) => json(response, completion()), { models: [{ ...TEST_MODELS[0], hasHiddenReasoning: true }] })
  const response = await started.post(CHAT, chatBody('chat-relayed', 'hello', { max_tokens: 2_000 }))
  const { usage } = (await response.json()) as { usage?: object }

  expect((await started.ended(response)).usage).toMatchObject({ outputTokens: 2_000 })
  expect(usage ?? { completion_tokens: 2_000 }).toMatchObject({ completion_tokens: 2_000 })
})

test('reports what an answer that its vendor cuts may bill, and charges only the second one (no event before)', async () => {
  const usage = { prompt_tokens: 20, completion_tokens: TOKENS, total_tokens: 20 + TOKENS }
  const body = JSON.stringify(completion(usage)).padEnd(4_000)
  await start((response) => {
    if (vendor.calls > 1) return json(response, completion(usage))
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length })
    response.write(body.slice(0, 100), () => response.destroy())
  }, {})
  const response = await started.post(CHAT, chatBody('chat-relayed', 'hello', { max_tokens: 2_000 }))
  await response.text()

  expect((await started.ended(response)).usage).toMatchObject({ outputTokens: TOKENS })
  expect(toldUsage()).toEqual([
    expect.objectContaining({
      vendor: 'openai',
      model: 'chat-relayed',
      isEstimated: true,
      // The length that the vendor had announced, without 200 bytes of JSON.
      usage: { inputTokens: expect.any(Number), outputTokens: 950 },
    }),
  ])
})

test('a model with fewer bytes for a token is charged by what its reports have told (25 tokens for 100 bytes before, now 40)', async () => {
  const text = 'x'.repeat(5_000)
  let reported = true
  const answer = (response: ServerResponse): void => {
    const message = { role: 'assistant', content: reported ? text : 'y'.repeat(100), refusal: null }
    const choices = [{ index: 0, message, finish_reason: 'stop', logprobs: null }]
    const usage = reported ? { usage: { prompt_tokens: 20, completion_tokens: 2_000, total_tokens: 2_020 } } : {}
    json(response, { id: 'c', object: 'chat.completion', created: 1, model: 'm', choices, ...usage })
  }
  await start(answer, {})
  const used: (number | undefined)[] = []
  for (const isReported of [false, true, false]) {
    reported = isReported
    const response = await started.post(CHAT, chatBody('chat-relayed', 'hello', { max_tokens: 2_000 }))
    await response.text()
    used.push((await started.ended(response)).usage?.outputTokens)
  }

  expect(used).toEqual([25, 2_000, 40])
})
