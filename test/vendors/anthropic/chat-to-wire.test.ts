import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { MESSAGES_CHAT_FIELDS as CHAT_FIELDS } from '../../../src/vendors/shared/messages-from-chat.ts'
import { chatCall, chatOperation, type LooseRequest, translated } from './chat-call.ts'

interface RequestFixture {
  readonly upstream: string
  readonly chat: LooseRequest
  readonly body: unknown
  readonly dropped: readonly string[]
  readonly promptTokens?: number
}

const DIRECTORY = new URL('./fixtures/requests/', import.meta.url)

describe('golden requests to Anthropic', () => {
  it.each(readdirSync(DIRECTORY))('turns the chat body of %s into exactly its Messages body', (file) => {
    const fixture = JSON.parse(readFileSync(new URL(file, DIRECTORY), 'utf8')) as RequestFixture

    const { body, dropped } = translated(fixture.chat, {
      upstream: fixture.upstream,
      stream: fixture.chat['stream'] === true,
      promptTokens: fixture.promptTokens,
    })

    expect(body).toStrictEqual(fixture.body)
    expect([...dropped].sort()).toEqual(fixture.dropped)
  })
})

type Field = keyof typeof CHAT_FIELDS
type BodyWithField = readonly [request: LooseRequest, body: Record<string, unknown>]

const TOOLS = [{ type: 'function', function: { name: 'find_tag' } }]

/** For each mapped field, a request and the expected part of the body. */
const MAPPED: Readonly<Record<string, BodyWithField>> = {
  model: [{ model: 'cl-sonnet-4-6' }, { model: 'claude-sonnet-4-6' }],
  messages: [
    { messages: [{ role: 'user', content: 'Hi' }] },
    { messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }] },
  ],
  temperature: [{ temperature: 0.2 }, { temperature: 0.2 }],
  top_p: [{ top_p: 0.4 }, { top_p: 0.4 }],
  max_tokens: [{ max_tokens: 11 }, { max_tokens: 11 }],
  max_completion_tokens: [{ max_completion_tokens: 12 }, { max_tokens: 12 }],
  // The gateway handles these two: the call decides about streaming, and the vendor always sends usage.
  stream: [{ stream: false }, {}],
  stream_options: [{ stream_options: { include_usage: true } }, {}],
  stop: [{ stop: ['END'] }, { stop_sequences: ['END'] }],
  tools: [{ tools: TOOLS }, { tools: [{ name: 'find_tag', input_schema: { type: 'object', properties: {} } }] }],
  tool_choice: [{ tools: TOOLS, tool_choice: 'required' }, { tool_choice: { type: 'any' } }],
  parallel_tool_calls: [
    { tools: TOOLS, parallel_tool_calls: false },
    { tool_choice: { type: 'auto', disable_parallel_tool_use: true } },
  ],
  response_format: [
    {
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'a', schema: { type: 'object', properties: { a: {} } } },
      },
    },
    { output_config: { format: { type: 'json_schema' } } },
  ],
  reasoning_effort: [{ reasoning_effort: 'low' }, { output_config: { effort: 'low' }, thinking: { type: 'adaptive' } }],
  user: [{ user: 'u-1' }, { metadata: { user_id: 'u-1' } }],
  safety_identifier: [{ safety_identifier: 's-1' }, { metadata: { user_id: 's-1' } }],
}

const REFUSED: Readonly<Record<string, unknown>> = {
  n: 2,
  audio: { voice: 'ember', format: 'mp3' },
  function_call: { name: 'find_tag' },
  functions: [{ name: 'find_tag' }],
  modalities: ['text', 'audio'],
}

const fieldsBy = (rule: (typeof CHAT_FIELDS)[Field]): Field[] =>
  (Object.keys(CHAT_FIELDS) as Field[]).filter((field) => CHAT_FIELDS[field] === rule)

describe('every field of a chat request is mapped, dropped and reported, or refused', () => {
  it.each(fieldsBy('mapped'))('maps %s', (field) => {
    const [request, expected] = MAPPED[field] ?? [{}, { missing: field }]

    const { body, dropped } = translated(request)

    expect(body).toMatchObject(expected)
    expect(dropped).toEqual([])
  })

  it.each(fieldsBy('dropped'))('drops %s and reports it', (field) => {
    const { body, dropped } = translated({ [field]: 1 })

    expect(body).toStrictEqual(translated({}).body)
    expect(dropped).toEqual([field])
  })

  it.each(fieldsBy('refused'))('refuses %s with a 400 that names it', (field) => {
    expect(() => translated({ [field]: REFUSED[field] })).toThrow(
      expect.objectContaining({ code: 'unsupported_parameter', status: 400, param: field }),
    )
  })

  it.each(Object.keys(CHAT_FIELDS).filter((field) => field !== 'model' && field !== 'messages'))(
    'takes a null %s for an absent one',
    (field) => {
      const { body, dropped } = translated({ [field]: null })

      expect(body).toStrictEqual(translated({}).body)
      expect(dropped).toEqual([])
    },
  )

  it.each(['thinking_budget', 'constructor', 'toString', 'top_k'])('reports the unknown field %s', (field) => {
    expect(translated({ [field]: 1 }).dropped).toEqual([field])
  })

  it.each([
    ['n', 1],
    ['modalities', ['text']],
    ['function_call', 'none'],
    ['functions', []],
    ['presence_penalty', 0],
    ['frequency_penalty', 0],
    ['logit_bias', {}],
    ['logprobs', false],
    ['service_tier', 'auto'],
    ['store', false],
  ])('neither sends nor names %s when it asks for nothing', (field, value) => {
    expect(translated({ [field]: value })).toStrictEqual(translated({}))
  })
})

const HAIKU = { upstream: 'claude-haiku-4-5-20251001' }
const PREFILLED: LooseRequest = {
  messages: [
    { role: 'user', content: 'Hi' },
    { role: 'assistant', content: 'The answer is \n' },
  ],
}

describe('bound of the answer', () => {
  it.each([
    ['the model’s limit in the catalog when the request sets none', {}, { maxOutputTokens: 4096 }, 4096],
    ['the table’s limit when the catalog has none', {}, {}, 128_000],
    ['max_tokens', { max_tokens: 70 }, {}, 70],
    ['max_completion_tokens before max_tokens', { max_tokens: 70, max_completion_tokens: 80 }, {}, 80],
    ['the model’s limit when the request asks for more', { max_tokens: 999_999 }, { maxOutputTokens: 4096 }, 4096],
  ])('is %s', (_what, request, limits, expected) => {
    expect(translated(request, { limits }).body.max_tokens).toBe(expected)
  })
})

describe('sampling', () => {
  it.each([
    ['cuts a temperature above 1 and reports it', { temperature: 1.6 }, { temperature: 1 }, ['temperature']],
    ['keeps zero', { temperature: 0 }, { temperature: 0 }, []],
    ['keeps top_p alone', { top_p: 0.5 }, { top_p: 0.5 }, []],
    ['drops top_p beside temperature', { temperature: 1, top_p: 0.5 }, { temperature: 1 }, ['top_p']],
    [
      'drops both with thinking',
      { temperature: 0.5, top_p: 0.5, reasoning_effort: 'low' },
      {},
      ['temperature', 'top_p'],
    ],
    ['names no default that it drops with thinking', { temperature: 1, top_p: 1, reasoning_effort: 'low' }, {}, []],
    ['names no default that it drops beside another', { temperature: 0.5, top_p: 1 }, { temperature: 0.5 }, []],
  ])('%s', (_what, request, expected, dropped) => {
    const result = translated(request)

    const { temperature, top_p } = result.body
    expect(JSON.parse(JSON.stringify({ temperature, top_p }))).toEqual(expected)
    expect([...result.dropped].sort()).toEqual(dropped)
  })

  it.each(['claude-opus-4-7', 'claude-haiku-5-5', 'claude-unheard-of-9'])(
    'is dropped and reported on %s',
    (upstream) => {
      const { body, dropped } = translated({ temperature: 0.5 }, { upstream })

      expect(body.temperature).toBeUndefined()
      expect(dropped).toEqual(['temperature'])
    },
  )

  it('is dropped on every model under an API version that refuses it', () => {
    const wire = chatOperation({ apiKey: 'key-a', version: '2026-10-21' }).toWire(chatCall({ temperature: 0.5 }))

    expect(JSON.parse(String(wire.body))).not.toHaveProperty('temperature')
    expect(wire.dropped).toEqual(['temperature'])
  })
})

describe('stop sequences', () => {
  it('leave out blank ones, which the API refuses, and report it', () => {
    const { body, dropped } = translated({ stop: ['\n', 'END', ''] })

    expect(body.stop_sequences).toEqual(['END'])
    expect(dropped).toEqual(['stop'])
  })

  it('are absent when nothing is left', () => {
    expect(translated({ stop: '\n\n' }).body).not.toHaveProperty('stop_sequences')
  })
})

describe('user id', () => {
  it('is left out and reported when it is longer than the API takes', () => {
    const { body, dropped } = translated({ user: 'u'.repeat(257) })

    expect(body).not.toHaveProperty('metadata')
    expect(dropped).toEqual(['user'])
  })
})

describe('a conversation that ends with the assistant', () => {
  it('is continued by models that can, without the blanks at its end', () => {
    const { body } = translated(PREFILLED, HAIKU)

    expect(body.messages.at(-1)).toEqual({ role: 'assistant', content: [{ type: 'text', text: 'The answer is' }] })
  })

  it.each(['claude-sonnet-4-6', 'claude-opus-4-7', 'claude-unheard-of-9'])('is refused for %s', (upstream) => {
    expect(() => translated(PREFILLED, { upstream })).toThrow(
      expect.objectContaining({ code: 'unsupported_parameter', status: 400, param: 'messages' }),
    )
  })

  it('rules out a thinking budget and structured output', () => {
    const { body, dropped } = translated(
      {
        ...PREFILLED,
        reasoning_effort: 'high',
        response_format: {
          type: 'json_schema',
          json_schema: { name: 'a', schema: { type: 'object', properties: { a: {} } } },
        },
      },
      HAIKU,
    )

    expect(body).not.toHaveProperty('thinking')
    expect(body).not.toHaveProperty('output_config')
    expect(dropped).toEqual(['reasoning_effort'])
  })
})
