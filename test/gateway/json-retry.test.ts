import { afterEach, describe, expect, test } from 'vitest'
import type { AnyHook, HookCall } from '../../src/hooks/hook.ts'
import { jsonAnswer } from '../../src/hooks/json-answer.ts'
import { chatBody, TEST_ACCOUNT } from '../support/start-gateway.ts'
import { testPrices } from '../support/test-prices.ts'
import { completion, type HookedGateway, hookedGateway, type Script, spoken } from './hooked-gateway.ts'

const CHAT = '/v1/chat/completions'
const SCHEMA = { type: 'object', properties: { people: { type: 'integer' } }, required: ['people'] }
const WANTED = { response_format: { type: 'json_schema', json_schema: { name: 'answer', schema: SCHEMA } } }
const BAD = '{"people":"many"}'
const GOOD = '{"people":3}'
/** 7 tokens in at 1 dollar a million, 5 out at 4. */
const ONE = 27_000n

let gateway: HookedGateway | undefined

afterEach(async () => {
  await gateway?.close()
  gateway = undefined
})

/** Says one text after the other; a script in the place of a text answers by itself. */
function saying(...texts: readonly (string | Script)[]): Script {
  let count = 0
  return (response, body) => {
    const text = texts[Math.min(count, texts.length - 1)]!
    count += 1
    return (typeof text === 'string' ? completion(text) : text)(response, body)
  }
}

const broken: Script = (response) => {
  response.writeHead(400, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ error: { message: 'no', type: 'invalid_request_error' } }))
}

async function start(
  script: Script,
  {
    hooks = [jsonAnswer({ repair: 'retry' })],
    ...options
  }: Parameters<typeof hookedGateway>[2] & { hooks?: AnyHook[] } = {},
): Promise<HookedGateway> {
  gateway = await hookedGateway(hooks, script, { usage: {}, ...options })
  return gateway
}

async function ask({ post }: HookedGateway, rest: Record<string, unknown> = {}, headers: Record<string, string> = {}) {
  const response = await post(
    CHAT,
    chatBody('chat-relayed', 'How many?', { max_tokens: 100, ...WANTED, ...rest }),
    headers,
  )
  const text = await response.text()
  const get = (name: string): string | null => response.headers.get(`x-signalbox-${name}`)
  return {
    response,
    text,
    content: response.status === 200 && !text.startsWith('data:') ? JSON.parse(text).choices[0].message.content : '',
    told: [get('repaired'), get('schema'), get('cost')],
  }
}

async function spent({ account }: HookedGateway): Promise<bigint> {
  const { balance, held } = await account()
  expect(held).toBe(0n)
  return 100_000_000_000n - balance
}

describe('an answer that does not match its schema', () => {
  test('is asked for once more, with what is wrong, and both calls are charged', async () => {
    const hooked = await start(saying(BAD, GOOD))
    const { response, content, told } = await ask(hooked)
    const event = await hooked.ended(response)

    expect([response.status, content, told]).toEqual([200, GOOD, ['retry', null, '0.000054']])
    expect(hooked.received).toHaveLength(2)
    const [, second] = hooked.received
    expect(second?.['messages']).toEqual([
      { role: 'user', content: 'How many?' },
      { role: 'assistant', content: BAD },
      { role: 'user', content: expect.stringMatching(/#\/people: Instance type "string" is invalid/) },
    ])
    expect(second?.['response_format']).toEqual(WANTED.response_format)
    expect(event).toMatchObject({ costNanoDollars: 2n * ONE, usage: { inputTokens: 14, outputTokens: 10 } })
    expect(await spent(hooked)).toBe(2n * ONE)
    const { records } = await hooked.gateway.usage.records()
    expect(records).toMatchObject([
      {
        usage: { inputTokens: 14, outputTokens: 10 },
        chargedNanoDollars: 2n * ONE,
        isEstimated: false,
        attempts: [{ outcome: 'answered' }, { outcome: 'answered' }],
      },
    ])
  })

  test('is held for as two calls before the first one', async () => {
    const held: bigint[] = []
    const hooked = await start((response, body) => {
      void hooked.account().then((account) => {
        held.push(account.held)
        completion(held.length === 1 ? BAD : GOOD)(response, body)
      })
    })
    await ask(hooked, { n: 1 })
    const estimated = async (rest: object) => {
      const body = chatBody('chat-relayed', 'How many?', { max_tokens: 100, ...WANTED, ...rest })
      const response = await hooked.post('/v1/estimate', { endpoint: 'chat', body })
      return BigInt(Math.round(Number(((await response.json()) as { held: string }).held) * 1e9))
    }

    expect(held).toHaveLength(2)
    expect(held[1]).toBe(held[0])
    // Another answer would cost 100 tokens more.
    const one = (await estimated({ n: 2 })) - 400_000n
    // The second prompt has the first answer, of at most 100 tokens, and a reply of at most 1,000 besides.
    expect(held[0]).toBe(2n * one + 1_100_000n)
    expect(await estimated({ n: 1 })).toBe(held[0])
  })

  test.each([
    [
      'a balance',
      ({ accounts }: HookedGateway['gateway']) => accounts.adjust(TEST_ACCOUNT, { amount: '-99.999', reason: 'test' }),
    ],
    [
      'a cap',
      ({ accounts }: HookedGateway['gateway']) =>
        accounts.update(TEST_ACCOUNT, { spendingCap: { amount: 1_000_000n, period: 'day' } }),
    ],
  ])('is not asked for again where %s does not cover both', async (_name, limit) => {
    const hooked = await start(saying(BAD, GOOD))
    await limit(hooked.gateway)
    const { response, content, told } = await ask(hooked)

    expect([response.status, content, told]).toEqual([200, BAD, [null, 'invalid', '0.000027']])
    expect(hooked.received).toHaveLength(1)
    expect((await hooked.account()).held).toBe(0n)
  })

  test('marks an answer that is wrong twice, and charges both', async () => {
    const hooked = await start(saying(BAD, 'Three.'))
    const { content, told } = await ask(hooked)

    expect([content, told]).toEqual(['Three.', [null, 'invalid', '0.000054']])
    expect(hooked.received).toHaveLength(2)
    expect(await spent(hooked)).toBe(2n * ONE)
  })

  test('gets 502 for an answer that is wrong twice if the host enables that, and charges both', async () => {
    const hooked = await start(saying(BAD), { hooks: [jsonAnswer({ repair: 'retry', invalid: 'error' })] })
    const { response, text } = await ask(hooked)
    await hooked.ended(response)

    expect([response.status, JSON.parse(text).error.code, hooked.received.length]).toEqual([502, 'answer_invalid', 2])
    expect(await spent(hooked)).toBe(2n * ONE)
    expect(hooked.eventsOf('hook-denied')).toHaveLength(1)
  })

  test('is not 502 where the second one is good', async () => {
    const hooked = await start(saying(BAD, GOOD), { hooks: [jsonAnswer({ repair: 'retry', invalid: 'error' })] })
    const { response, content } = await ask(hooked)

    expect([response.status, content, hooked.eventsOf('hook-denied')]).toEqual([200, GOOD, []])
  })

  test('is repaired without another call if that is sufficient, and the second one too', async () => {
    const hooked = await start(saying("{'people':1}", BAD, "{'people':2}"))
    const first = await ask(hooked)
    const second = await ask(hooked)

    expect([first.content, ...first.told]).toEqual(['{"people":1}', 'syntax', null, '0.000027'])
    expect([second.content, ...second.told]).toEqual(['{"people":2}', 'retry', null, '0.000054'])
  })

  test('stays where the second call fails, and is charged alone', async () => {
    const hooked = await start(saying(BAD, broken))
    const { response, content, told } = await ask(hooked)

    expect([response.status, content, told]).toEqual([200, BAD, [null, 'invalid', '0.000027']])
    expect(await spent(hooked)).toBe(ONE)
    const { records } = await hooked.gateway.usage.records()
    expect(records).toMatchObject([{ attempts: [{ outcome: 'answered' }, { outcome: 'failed' }] }])
  })

  test('stays where the second call cannot be prepared, and is charged', async () => {
    let calls = 0
    const wire: AnyHook = {
      name: 'wire',
      wire() {
        calls += 1
        if (calls > 1) throw new Error('broken')
        return undefined
      },
    }
    const hooked = await start(saying(BAD, GOOD), { hooks: [jsonAnswer({ repair: 'retry' }), wire] })
    const { response, content } = await ask(hooked)

    expect([response.status, content]).toEqual([200, BAD])
    expect(await spent(hooked)).toBe(ONE)
  })

  test('stays where the time of the request is over before the second one', async () => {
    const hooked = await start(
      saying(BAD, () => undefined),
      { timeouts: { totalMs: 400 } },
    )
    const startedAt = performance.now()
    const { response, content } = await ask(hooked)

    expect([response.status, content]).toEqual([200, BAD])
    expect(performance.now() - startedAt).toBeLessThan(2_000)
    expect(await spent(hooked)).toBeGreaterThanOrEqual(ONE)
  })

  test('is charged with the second one if the caller disconnects during it', async () => {
    const leaving = new AbortController()
    let answer = (): void => undefined
    const hooked = await start(
      saying(BAD, (response, body) => {
        answer = () => completion(GOOD)(response, body)
        leaving.abort()
      }),
    )
    const ended = hooked.nextEnded()
    const body = chatBody('chat-relayed', 'How many?', { max_tokens: 100, ...WANTED })
    await expect(hooked.post(CHAT, body, {}, leaving.signal)).rejects.toThrow()
    setTimeout(() => answer(), 50)
    await ended

    expect(await spent(hooked)).toBe(2n * ONE)
  })

  test('is not charged at all where a hook denies the second one at the cost of the operator', async () => {
    const guard: AnyHook = {
      name: 'guard',
      chargeDenied: false,
      answer: (answer) => (answer.texts()[0]?.text === GOOD ? { deny: {} } : undefined),
    }
    const hooked = await start(saying(BAD, GOOD), { hooks: [jsonAnswer({ repair: 'retry' }), guard] })
    const { response } = await ask(hooked)
    await hooked.ended(response)

    expect(await spent(hooked)).toBe(0n)
    expect(hooked.eventsOf('unbilled-usage').map(({ usage }) => usage)).toEqual([
      { inputTokens: 7, outputTokens: 5 },
      { inputTokens: 7, outputTokens: 5 },
    ])
  })

  test('passes the other hooks again, and has only the headers of the second round', async () => {
    const seen: string[] = []
    const log: AnyHook = {
      name: 'log',
      answer(answer) {
        seen.push(answer.texts()[0]!.text)
        return { headers: { 'x-round': String(seen.length) } }
      },
    }
    const hooked = await start(saying(BAD, GOOD), { hooks: [jsonAnswer({ repair: 'retry' }), log] })
    const { response } = await ask(hooked)

    expect([seen, response.headers.get('x-round')]).toEqual([[BAD, GOOD], '2'])
  })

  test('has what hooks charge once', async () => {
    const UNIT = { model: 'chat-relayed', meter: 'hook_unit', amount: '0.001' } as const
    const guard: AnyHook = { name: 'guard', request: (call: HookCall) => void call.charge('hook_unit', 2) }
    const hooked = await start(saying(BAD, GOOD, BAD, broken), {
      hooks: [jsonAnswer({ repair: 'retry' }), guard],
      prices: { currency: 'USD', prices: [...testPrices.prices, UNIT] },
    })
    const both = await ask(hooked)
    const one = await ask(hooked)

    expect([both.told[2], one.told[2]]).toEqual(['0.002054', '0.002027'])
    const { records } = await hooked.gateway.usage.records()
    expect(records.map(({ usage }) => usage.hookUnits)).toEqual([2, 2])
  })

  test('is charged by the tier of each call', async () => {
    const tiers = {
      model: 'chat-relayed',
      meter: 'input_token',
      amount: '100',
      per: 1_000_000,
      when: { inputTokensAbove: 10 },
    } as const
    const hooked = await start(saying(BAD, GOOD), {
      prices: { currency: 'USD', prices: [...testPrices.prices, tiers] },
    })
    await ask(hooked)

    expect(await spent(hooked)).toBe(2n * ONE)
  })

  test('is kept under an Idempotency-Key as the second one', async () => {
    const hooked = await start(saying(BAD, GOOD, BAD))
    const headers = { 'idempotency-key': 'key-1' }
    await ask(hooked, {}, headers)
    const { content, response } = await ask(hooked, {}, headers)

    expect([content, response.headers.get('idempotent-replayed'), hooked.received.length]).toEqual([GOOD, 'true', 2])
    expect(await spent(hooked)).toBe(2n * ONE)
  })

  test('is kept in the cache as the second one, with its usage', async () => {
    const hooked = await start(saying(BAD, GOOD), { cache: { rules: [{ sampling: 'any' }] } })
    await ask(hooked)
    const { content, response } = await ask(hooked)
    const event = await hooked.ended(response)

    expect([content, response.headers.get('x-signalbox-cache'), hooked.received.length]).toEqual([GOOD, 'hit', 2])
    expect(event).toMatchObject({ cachedUsage: { inputTokens: 7, outputTokens: 5 }, costNanoDollars: 0n })
  })

  test('is asked for again without billing, and both are recorded', async () => {
    const hooked = await start(saying(BAD, GOOD), { billing: 'off' })
    const { content } = await ask(hooked)
    await expect.poll(async () => (await hooked.gateway.usage.records()).records).toHaveLength(1)
    const { records } = await hooked.gateway.usage.records()

    expect(content).toBe(GOOD)
    expect(records).toMatchObject([{ usage: { inputTokens: 14, outputTokens: 10 }, chargedNanoDollars: 0n }])
  })

  test('counts against the token limit with both calls (1,900 of 5,000)', async () => {
    let calls = 0
    const large: Script = (response) => {
      calls += 1
      const message = { role: 'assistant', content: calls === 1 ? BAD : GOOD }
      const usage = { prompt_tokens: 900, completion_tokens: 50, total_tokens: 950 }
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ id: 'c1', object: 'chat.completion', choices: [{ index: 0, message }], usage }))
    }
    const hooked = await start(large, { limits: { tokensPerMinute: 5_000 } })
    await ask(hooked)
    const { response } = await ask(hooked, { max_tokens: 1, response_format: undefined })
    const remaining = Number(response.headers.get('x-ratelimit-remaining-tokens'))

    expect(remaining).toBeGreaterThan(2_800)
    expect(remaining).toBeLessThan(3_300)
  })
})

describe('what is not asked for again', () => {
  test.each<[string, Record<string, unknown>, Script]>([
    ['a stream', { stream: true }, spoken([BAD])],
    ['a request for two answers', { n: 2 }, completion(BAD)],
    [
      'a call of a tool',
      {},
      completion(BAD, { tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }] }),
    ],
    ['an answer that refuses', {}, completion('', { refusal: 'No.' })],
    ['a request without a schema', { response_format: undefined }, completion(BAD)],
  ])('%s', async (_name, rest, script) => {
    const hooked = await start(script)
    await ask(hooked, rest)

    expect(hooked.received).toHaveLength(1)
  })

  test('an answer that no hook of this package asks for', async () => {
    const greedy = { name: 'greedy', answer: () => ({ again: 'once more' }) } as unknown as AnyHook
    const hooked = await start(saying(BAD, GOOD), { hooks: [greedy] })
    const { response } = await ask(hooked)

    expect([response.status, hooked.received.length]).toEqual([503, 1])
  })
})

describe('other dialects', () => {
  test('Messages', async () => {
    const hooked = await start(saying(BAD, GOOD))
    const output_config = { format: { type: 'json_schema', schema: SCHEMA } }
    const messages = [{ role: 'user', content: 'hi' }]
    const response = await hooked.post('/v1/messages', {
      model: 'chat-relayed',
      max_tokens: 99,
      messages,
      output_config,
    })

    expect([response.status, response.headers.get('x-signalbox-repaired')]).toEqual([200, 'retry'])
    expect(hooked.received[1]?.['messages']).toHaveLength(3)
  })

  test.each([true, false])('Responses, stored: %s', async (store) => {
    let count = 0
    const hooked = await start((response) => {
      count += 1
      const content = [{ type: 'output_text', text: count === 1 ? BAD : GOOD, annotations: [] }]
      const output = [{ type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content }]
      const usage = { input_tokens: 7, output_tokens: 5, total_tokens: 12 }
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ id: `resp_${count}`, object: 'response', status: 'completed', output, usage }))
    })
    const text = { format: { type: 'json_schema', name: 'a', schema: SCHEMA } }
    const response = await hooked.post('/v1/responses', { model: 'chat-relayed', input: 'hi', text, store })
    const answer = await response.text()

    expect(response.headers.get('x-signalbox-repaired'), answer).toBe('retry')
    expect(hooked.received[1]?.['input']).toMatchObject([{ role: 'user' }, { role: 'assistant' }, { role: 'user' }])
    expect(await spent(hooked)).toBe(2n * ONE)
    if (!store) return
    const { id } = JSON.parse(answer) as { id: string }
    const kept = await fetch(`${hooked.url}/v1/responses/${id}/input_items`, {
      headers: { authorization: 'Bearer sk-test-0123456789' },
    })
    expect(((await kept.json()) as { data: unknown[] }).data).toHaveLength(1)
  })
})
