import { describe, expect, test } from 'vitest'
import type { AnyHook, HookAnswer } from '../../../src/hooks/hook.ts'
import { jsonAnswer } from '../../../src/hooks/json-answer.ts'
import { redact } from '../../../src/hooks/redact.ts'
import { pii } from '../../../src/hooks/redaction-rules.ts'
import { readEvents } from '../../support/read-events.ts'
import { chatBody } from '../../support/start-gateway.ts'
import { chunk, closedAfterEach, completion, events, type Script, spoken, USAGE } from './hooked-gateway.ts'

const CHAT = '/v1/chat/completions'

const start = closedAfterEach()

/** Replaces a word in every text of an answer. */
function replacing(word: string, by: string): AnyHook {
  return {
    name: `replace ${word}`,
    answer: (answer: HookAnswer) => ({
      texts: new Map(answer.texts().map(({ id, text }) => [id, text.replaceAll(word, by)])),
    }),
  }
}

const message = (text: string): Record<string, unknown> => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'x',
  content: [
    { type: 'thinking', thinking: `think ${text}`, signature: 's' },
    { type: 'text', text },
    { type: 'tool_use', id: 't1', name: 'look', input: { at: text } },
  ],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 7, output_tokens: 5 },
})

const response = (text: string): Record<string, unknown> => ({
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  status: 'completed',
  model: 'gpt-5.4',
  output: [
    { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: `think ${text}` }] },
    {
      type: 'message',
      id: 'm1',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text, annotations: [] }],
    },
    {
      type: 'function_call',
      id: 'f1',
      call_id: 'c1',
      name: 'look',
      arguments: JSON.stringify({ at: text }),
      status: 'completed',
    },
  ],
  usage: { input_tokens: 7, input_tokens_details: {}, output_tokens: 5, output_tokens_details: {}, total_tokens: 12 },
})

const json =
  (body: Record<string, unknown>): Script =>
  (reply) => {
    reply.writeHead(200, { 'content-type': 'application/json' })
    reply.end(JSON.stringify(body))
  }

const chatCalls = {
  tool_calls: [{ id: 't1', type: 'function', function: { name: 'look', arguments: '{"at":"blue"}' } }],
}

/** A path, its request, the vendor's answer with the word, and the kinds of its texts. */
const ANSWERS: [string, Record<string, unknown>, Script, string[]][] = [
  [
    CHAT,
    chatBody('chat-relayed', 'hi'),
    completion('blue', { reasoning_content: 'think blue', ...chatCalls }),
    ['text', 'reasoning', 'tool_arguments'],
  ],
  [CHAT, chatBody('cl-sonnet-4-6', 'hi'), json(message('blue')), ['text', 'tool_arguments', 'reasoning', 'reasoning']],
  [
    '/v1/messages',
    { ...chatBody('cl-sonnet-4-6', 'hi'), max_tokens: 50 },
    json(message('blue')),
    ['reasoning', 'text', 'tool_arguments'],
  ],
  [
    '/v1/responses',
    { model: 'chat-relayed', input: 'hi' },
    json(response('blue')),
    ['reasoning', 'text', 'tool_arguments'],
  ],
]

describe.each(ANSWERS)('an answer of %s (%j)', (path, body, script, kinds) => {
  test('is shown with all of its texts, and sent with others', async () => {
    const seen: string[] = []
    const look: AnyHook = {
      name: 'look',
      answer(answer: HookAnswer) {
        seen.push(...answer.texts().map(({ kind }) => kind))
        expect(answer.texts().every(({ text }) => text.includes('green'))).toBe(true)
        return undefined
      },
    }
    // Reversed: the last hook of the list reads the answer first.
    const { post, eventsOf } = await start([look, replacing('blue', 'green')], script)
    const reply = await post(path, body)
    const text = await reply.text()

    expect(reply.status).toBe(200)
    expect([...seen].sort()).toEqual([...kinds].sort())
    expect(text).toContain('green')
    expect(text).not.toContain('blue')
    expect(Number(reply.headers.get('content-length'))).toBe(Buffer.byteLength(text))
    expect(eventsOf('internal-error')).toEqual([])
  })

  test('is denied as a refusal of the dialect, and charged as reported', async () => {
    const { post, ended, eventsOf } = await start(
      [{ name: 'no', answer: () => ({ deny: { message: 'Withheld.' } }) }],
      script,
    )
    const reply = await post(path, body)
    const answer = await reply.json()

    expect(reply.status).toBe(200)
    expect(JSON.stringify(answer)).not.toContain('blue')
    expect(JSON.stringify(answer)).toContain('Withheld.')
    if (path === CHAT) expect(answer.choices[0].finish_reason).toBe('content_filter')
    else if (path === '/v1/messages') expect(answer.stop_reason).toBe('refusal')
    else expect(answer).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'content_filter' } })
    expect(answer.usage).toBeDefined()
    const event = await ended(reply)
    expect(event.usage).toMatchObject({ inputTokens: 7, outputTokens: 5 })
    expect(event.costNanoDollars).toBeGreaterThan(0n)
    expect(eventsOf('hook-denied')).toMatchObject([{ hook: 'no', point: 'answer' }])
  })

  test('is denied as an error with its own status, and still charged', async () => {
    const hook: AnyHook = { name: 'no', answer: () => ({ deny: { as: 'error', status: 422, message: 'Withheld.' } }) }
    const { post, ended } = await start([hook], script)
    const reply = await post(path, body)

    expect(reply.status).toBe(422)
    expect(reply.headers.get('x-signalbox-error-code')).toBe('answer_denied')
    expect((await ended(reply)).costNanoDollars).toBeGreaterThan(0n)
  })

  test.each(['refusal', 'error'] as const)('denied as %s is the loss of the operator who says so', async (as) => {
    const hook: AnyHook = { name: 'no', chargeDenied: false, answer: () => ({ deny: { as } }) }
    const { post, ended, account, eventsOf } = await start([hook], script)
    const before = await account()
    const event = await ended(await post(path, body))

    expect(event.costNanoDollars).toBe(0n)
    expect(await account()).toEqual(before)
    expect(eventsOf('unbilled-usage')).toMatchObject([{ usage: { inputTokens: 7, outputTokens: 5 } }])
  })

  test('gets 503, costs nothing and holds nothing if a hook fails on it', async () => {
    const hook: AnyHook = {
      name: 'bad',
      answer: () => {
        throw new Error('secret')
      },
    }
    const { post, ended, account } = await start([hook], script)
    const before = await account()
    const reply = await post(path, body)
    await ended(reply)

    expect(reply.status).toBe(503)
    expect(await reply.text()).not.toContain('secret')
    expect(await account()).toEqual(before)
  })

  test('passes a hook that fails and says so', async () => {
    const bad: AnyHook = { name: 'bad', onFailure: 'allow', answer: () => ({ texts: { id: 'x' } }) as never }
    const { post, eventsOf } = await start([bad], script)
    const reply = await post(path, body)

    expect(await reply.text()).toContain('blue')
    expect(eventsOf('hook-bypassed')).toMatchObject([{ hook: 'bad', point: 'answer', reason: 'unusable-result' }])
  })
})

test('a hook that reads streams reads whole answers too, each text as one window', async () => {
  const windows: string[] = []
  const hook: AnyHook = {
    name: 'windows',
    text: {
      holdBack: { chars: 3 },
      check({ id, held, fresh, isLast }) {
        windows.push(`${id} ${held}${fresh} ${isLast}`)
        return { replace: 'other' }
      },
    },
  }
  const { post } = await start([hook], completion('blue'))
  const answer = await (await post(CHAT, chatBody('chat-relayed', 'hi'))).json()

  expect(windows).toEqual(['choices[0].message.content blue true'])
  expect(answer.choices[0].message.content).toBe('other')
})

test('treats the sources next to the choices of a whole chat as texts, and removes them with a denied one', async () => {
  const sources = {
    citations: ['https://a.example/jane.doe@example.com'],
    search_results: [{ title: 'Mail to jane.doe@example.com', url: 'https://a.example', snippet: null }],
  }
  const script: Script = (response) => {
    const choice = { index: 0, message: { role: 'assistant', content: '{"a":1}' }, finish_reason: 'stop' }
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ id: 'c1', object: 'chat.completion', choices: [choice], usage: USAGE, ...sources }))
  }
  const format = { type: 'json_schema', json_schema: { name: 'a', schema: { type: 'object' } } }
  const body = chatBody('chat-relayed', 'hi', { response_format: format })
  const redacted = await start([redact([pii.email]), jsonAnswer()], script)
  const answer = await redacted.post('/v1/chat/completions', body)
  expect(answer.headers.get('x-signalbox-schema')).toBe(null)
  expect(await answer.json()).toMatchObject({
    citations: ['https://a.example/[EMAIL]'],
    search_results: [{ title: 'Mail to [EMAIL]', url: 'https://a.example', snippet: null }],
  })
  await redacted.close()

  const denied = await start([{ name: 'no', answer: () => ({ deny: {} }) }], script)
  expect(await (await denied.post('/v1/chat/completions', body)).text()).not.toContain('jane')
})

test('probabilities of tokens go with the text that was replaced', async () => {
  const script = completion('blue')
  const withProbabilities: Script = (reply, body) => {
    const end = reply.end.bind(reply)
    reply.end = ((text: string) => {
      const answer = JSON.parse(text)
      answer.choices[0].logprobs = { content: [{ token: 'blue', logprob: 0 }] }
      return end(JSON.stringify(answer))
    }) as typeof reply.end
    script(reply, body)
  }
  const { post } = await start([replacing('blue', 'green')], withProbabilities)
  const text = await (await post(CHAT, chatBody('chat-relayed', 'hi', { logprobs: true }))).text()

  expect(text).not.toContain('blue')
})

test('what is kept of an answer is what its caller got, streamed or not', async () => {
  const { post, url } = await start([replacing('blue', 'green')], (reply, body) =>
    body['stream'] === true ? responseEvents('blue')(reply, body) : json(response('blue'))(reply, body),
  )
  for (const stream of [false, true]) {
    const reply = await post('/v1/responses', { model: 'chat-relayed', input: 'hi', stream })
    const text = await reply.text()
    const id = /"id":"(resp_[^"]+)"/.exec(text)?.[1]
    const stored = await fetch(`${url}/v1/responses/${id}`, { headers: { authorization: 'Bearer sk-test-0123456789' } })
    const kept = await stored.text()

    expect(text).not.toContain('blue')
    expect(stored.status).toBe(200)
    expect(kept).toContain('green')
    expect(kept).not.toContain('blue')
  }
})

describe('a hook that reads answers, on a stream', () => {
  test('holds it back to its end, reads all of it, and replaces its texts', async () => {
    const seen: unknown[] = []
    const look: AnyHook = {
      name: 'look',
      answer(answer: HookAnswer) {
        seen.push(answer.isStream, answer.body, answer.usage, ...answer.texts().map(({ id, text }) => `${id}: ${text}`))
        return { texts: new Map([['choices[0].message.content', 'all green']]) }
      },
    }
    const { post } = await start([look], spoken(['all ', 'bl', 'ue']))
    const list = await readEvents(await post(CHAT, chatBody('chat-relayed', 'hi', { stream: true })))

    expect(textOf(list)).toBe('all green')
    expect(list.at(-1)).toBe('[DONE]')
    expect(seen.slice(0, 2)).toEqual([true, undefined])
    expect(seen[2]).toMatchObject({ inputTokens: USAGE.prompt_tokens })
    expect(seen[3]).toBe('choices[0].message.content: all blue')
  })

  test('denies it by a refusal in the stream, charged as reported', async () => {
    const { post, ended } = await start([{ name: 'no', answer: () => ({ deny: {} }) }], spoken(['all ', 'blue']))
    const reply = await post(CHAT, chatBody('chat-relayed', 'hi', { stream: true }))
    const list = await readEvents(reply)

    expect(reply.status).toBe(200)
    expect(JSON.stringify(list)).not.toContain('blue')
    expect(JSON.parse(list.at(-2) ?? '')).toMatchObject({ choices: [{ finish_reason: 'content_filter' }] })
    expect(list.at(-1)).toBe('[DONE]')
    expect((await ended(reply)).usage).toMatchObject({ inputTokens: 7, outputTokens: 5 })
  })

  test('denies it by an error with a status, because nothing was sent yet', async () => {
    const { post, ended } = await start([{ name: 'no', answer: () => ({ deny: { as: 'error' } }) }], spoken(['blue']))
    const reply = await post(CHAT, chatBody('chat-relayed', 'hi', { stream: true }))

    expect(reply.status).toBe(400)
    expect(reply.headers.get('x-signalbox-error-code')).toBe('answer_denied')
    expect((await ended(reply)).usage).toMatchObject({ inputTokens: 7, outputTokens: 5 })
  })
})

function textOf(list: readonly string[]): string {
  return list
    .filter((event) => event !== '[DONE]')
    .map((event) => JSON.parse(event).choices[0]?.delta?.content ?? '')
    .join('')
}

function responseEvents(text: string): Script {
  const whole = response(text)
  const created = { ...whole, status: 'in_progress', output: [], usage: null }
  const item = { type: 'message', id: 'm1', role: 'assistant', status: 'in_progress', content: [] }
  const at = { item_id: 'm1', output_index: 0, content_index: 0 }
  const part = { type: 'output_text', text, annotations: [] }
  const done = { ...item, status: 'completed', content: [part] }
  return events(
    [
      { type: 'response.created', response: created },
      { type: 'response.output_item.added', output_index: 0, item },
      { type: 'response.content_part.added', ...at, part: { ...part, text: '' } },
      { type: 'response.output_text.delta', ...at, delta: text.slice(0, 2), logprobs: [] },
      { type: 'response.output_text.delta', ...at, delta: text.slice(2), logprobs: [] },
      { type: 'response.output_text.done', ...at, text, logprobs: [] },
      { type: 'response.content_part.done', ...at, part },
      { type: 'response.output_item.done', output_index: 0, item: done },
      { type: 'response.completed', response: { ...whole, output: [done] } },
    ].map((event, number) => ({ ...event, sequence_number: number })),
    '',
  )
}

test('numbers of the events of a screened stream have no gap', async () => {
  const { post } = await start([replacing('blue', 'green')], responseEvents('blue'))
  const list = await readEvents(await post('/v1/responses', { model: 'chat-relayed', input: 'hi', stream: true }))
  const numbers = list.map((event) => JSON.parse(event).sequence_number)

  expect(numbers).toEqual(numbers.map((_, index) => index))
  expect(list.join()).not.toContain('blue')
})

test('distinguishes the choices of a stream', async () => {
  const script = events([
    chunk({ role: 'assistant', content: 'a' }, null, 0),
    chunk({ role: 'assistant', content: 'b' }, null, 1),
    chunk({ content: 'c' }, null, 0),
    chunk({ content: 'd' }, null, 1),
    chunk({}, 'stop', 0),
    chunk({}, 'stop', 1),
  ])
  const texts: string[] = []
  const hook: AnyHook = {
    name: 'look',
    answer: (answer: HookAnswer) => void texts.push(...answer.texts().map(({ text }) => text)),
  }
  const { post } = await start([hook], script)
  await readEvents(await post(CHAT, chatBody('chat-relayed', 'hi', { stream: true, n: 2 })))

  expect(texts).toEqual(['ac', 'bd'])
})
