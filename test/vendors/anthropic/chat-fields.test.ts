import { describe, expect, it } from 'vitest'
import { CHAT_FIELDS } from '../../../src/vendors/anthropic/chat-to-wire.ts'
import { type LooseRequest, translated } from './chat-call.ts'

type Field = keyof typeof CHAT_FIELDS
type BodyWithField = readonly [request: LooseRequest, body: Record<string, unknown>]

const TOOLS = [{ type: 'function', function: { name: 'find_tag' } }]

/** For each mapped field a request, and what of it must stand in the body. */
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
  // Streaming is decided by the call, and usage is always sent by the vendor: the gateway serves these two.
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
  ])('lets %s pass when it asks for nothing', (field, value) => {
    expect(translated({ [field]: value }).body).toStrictEqual(translated({}).body)
  })
})
