import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { anthropic } from '../../../src/vendors/anthropic/anthropic.ts'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import { presets } from '../../../src/vendors/presets/presets.ts'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'
import { type AnsweringVendor, answeringVendor, eventStream, json } from '../streams/answering-vendor.ts'

type Fields = Record<string, unknown>

/** State of a message as servers give it. */
const STATES: Readonly<Record<string, Fields>> = {
  'reasoning_details of OpenRouter': {
    reasoning_details: [
      { type: 'reasoning.text', text: 'I look.', format: 'google-gemini-v1', index: 0 },
      { type: 'reasoning.encrypted', data: 'EvsBCk8', id: 'call_1', format: 'google-gemini-v1', index: 1 },
    ],
  },
  'thinking_blocks of LiteLLM': { thinking_blocks: [{ type: 'thinking', thinking: 'I look.', signature: 'EvsB' }] },
  'reasoning_opaque of Copilot': { reasoning_text: 'I look.', reasoning_opaque: 'b3BhcXVl' },
  'signatures in provider_specific_fields': { provider_specific_fields: { thought_signatures: ['EvsB'] } },
}
const CALL_STATE = { provider_specific_fields: { thought_signature: 'c2lnbmF0dXJl' } }

let state: Fields
let hasCalls: boolean
let isStateLast: boolean
let sent: Fields
let vendor: AnsweringVendor
let started: StartedGateway

beforeAll(async () => {
  vendor = await answeringVendor((response, body) => {
    sent = body
    const call = {
      index: 0,
      id: 'call_1',
      type: 'function',
      function: { name: 'look', arguments: '{}' },
      ...CALL_STATE,
    }
    const calls = hasCalls ? { tool_calls: [call] } : {}
    const facts = { id: 'c', created: 1, model: 'm' }
    const usage = { prompt_tokens: 5, completion_tokens: 4, total_tokens: 9 }
    const finish = hasCalls ? 'tool_calls' : 'stop'
    if (body['stream'] !== true) {
      const message = { role: 'assistant', content: 'So.', ...calls, ...state }
      const choices = [{ index: 0, message, finish_reason: finish }]
      return json(response, { ...facts, object: 'chat.completion', choices, usage })
    }
    eventStream(response)
    const rest = { content: 'So.', ...calls }
    const deltas = isStateLast ? [rest, ...pieces(state)] : [...pieces(state), rest]
    for (const delta of [...deltas, undefined])
      response.write(
        `data: ${JSON.stringify({
          ...facts,
          object: 'chat.completion.chunk',
          choices: [{ index: 0, delta: delta ?? {}, finish_reason: delta === undefined ? finish : null }],
          ...(delta === undefined ? { usage } : {}),
        })}\n\n`,
      )
    response.end('data: [DONE]\n\n')
  })
  const connection = { baseURL: vendor.origin, apiKey: 'k' }
  started = await startGateway({
    vendors: [
      openaiCompatible(presets.openrouter, { ...connection, responses: false }),
      openaiCompatible({ id: 'proxy', ...connection, models: [] }),
      openaiCompatible({ id: 'replay', ...connection, models: [], replaysExtensions: true }),
      anthropic(connection),
    ],
    models: [
      { id: 'routed', kind: 'chat', vendor: 'openrouter', upstream: 'google/gemini-3-pro' },
      { id: 'replayed', kind: 'chat', vendor: 'replay', upstream: 'gemini-3-pro' },
      { id: 'proxied', kind: 'chat', vendor: 'proxy', upstream: 'gemini-3-pro' },
    ],
    billing: 'off',
  })
})
afterAll(async () => {
  await started.close()
  await vendor.close()
})

/** A stream cuts the texts of entries. */
function pieces(whole: Fields): Fields[] {
  return Object.entries(whole).flatMap(([name, value]) => {
    if (!Array.isArray(value) || typeof value[0] !== 'object') return [{ [name]: value }]
    return value.flatMap((entry: Fields) => {
      const text = ['text', 'thinking'].find((member) => typeof entry[member] === 'string')
      if (text === undefined) return [{ [name]: [entry] }]
      const { signature, ...rest } = entry
      const end = signature === undefined ? { ...rest, [text]: 'ook.' } : { ...rest, [text]: 'ook.', signature }
      return [{ [name]: [{ ...rest, [text]: 'I l' }] }, { [name]: [end] }]
    })
  })
}

const USER = { role: 'user', content: 'look' }

/** Asks by Messages, and sends the content of the answer back. */
async function byMessages(model: string, stream: boolean, next = model): Promise<Response> {
  const fields = { max_tokens: 2_000, thinking: { type: 'enabled', budget_tokens: 1_024 } }
  const answer = await started.post('/v1/messages', { model, stream, messages: [USER], ...fields })
  const text = await answer.text()
  const content = stream ? blocksOf(text) : (JSON.parse(text) as Fields)['content']
  const result = hasCalls ? [{ type: 'tool_result', tool_use_id: 'call_1', content: 'seen' }] : 'And?'
  const messages = [USER, { role: 'assistant', content }, { role: 'user', content: result }]
  return await started.post('/v1/messages', { model: next, messages, ...fields })
}

function eventsOf(text: string): Fields[] {
  return text.split('\n').flatMap((line) => (line.startsWith('data: {') ? [JSON.parse(line.slice(6)) as Fields] : []))
}

function blocksOf(text: string): Fields[] {
  const blocks: Fields[] = []
  for (const { type, index: place, content_block: block, delta } of eventsOf(text)) {
    const index = Number(place)
    if (type === 'content_block_start') blocks[index] = { ...(block as Fields) }
    const piece = delta as Fields
    const open = blocks[index] as Fields
    if (type !== 'content_block_delta') continue
    if (piece['type'] === 'input_json_delta') open['input'] = {}
    else
      for (const [name, value] of Object.entries(piece)) if (name !== 'type') open[name] = `${open[name] ?? ''}${value}`
  }
  return blocks
}

/** Asks by Responses, and sends the output back. */
async function byResponses(model: string, stream: boolean): Promise<Response> {
  const fields = { store: false, include: ['reasoning.encrypted_content'] }
  const answer = await started.post('/v1/responses', { model, stream, input: [USER], ...fields })
  const text = await answer.text()
  const response = (stream ? eventsOf(text).at(-1)!['response'] : JSON.parse(text)) as { output: Fields[] }
  const result = hasCalls ? { type: 'function_call_output', call_id: 'call_1', output: 'seen' } : USER
  return await started.post('/v1/responses', { model, input: [USER, ...response.output, result], ...fields })
}

const WAYS = { Messages: byMessages, Responses: byResponses }

describe.each(Object.keys(WAYS))('state of a server in a conversation by %s', (way) => {
  describe.each(['routed', 'proxied', 'replayed'])('the model %s', (model) => {
    test.each(
      Object.keys(STATES).flatMap((name) =>
        ['whole', 'stream', 'stream, state last'].flatMap((form) =>
          [true, false].map((calls) => [name, form, calls] as const),
        ),
      ),
    )('returns %s unchanged (%s, with calls: %s)', async (name, form, calls) => {
      state = STATES[name]!
      hasCalls = calls
      isStateLast = form.endsWith('last')
      const answer = await WAYS[way as keyof typeof WAYS](model, form !== 'whole')

      expect([answer.status, answer.headers.get('x-signalbox-dropped') ?? '']).toEqual([
        200,
        expect.not.stringContaining('input'),
      ])
      const message = (sent['messages'] as Fields[]).find(({ role }) => role === 'assistant')!
      expect(message).toMatchObject(state)
      expect(JSON.stringify(message)).not.toContain('extra_content')
      if (calls) expect(message['tool_calls']).toEqual([expect.objectContaining(CALL_STATE)])
    })
  })
})

test('reports state of another vendor as dropped', async () => {
  state = STATES['reasoning_details of OpenRouter']!
  hasCalls = true
  const answer = await byMessages('routed', false, 'proxied')

  expect([answer.status, answer.headers.get('x-signalbox-dropped')]).toEqual([200, 'messages.thinking'])
  expect(JSON.stringify(sent)).not.toContain('EvsB')
})
