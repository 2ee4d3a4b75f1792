import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { ResponsesItem } from '../../../src/endpoints/responses/responses-request.ts'
import { withOwnItemIds } from '../../../src/endpoints/responses/stored-responses.ts'
import { type CapturedRecord, capture } from '../../../src/hooks/capture.ts'
import type { AnyHook, Hook } from '../../../src/hooks/hook.ts'
import { redact } from '../../../src/hooks/redact.ts'
import { pii } from '../../../src/hooks/redaction-rules.ts'
import { anthropic } from '../../../src/vendors/anthropic/anthropic.ts'
import { gemini } from '../../../src/vendors/gemini/gemini.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import { presets } from '../../../src/vendors/presets/presets.ts'
import { checkGrammar, responseEvents } from '../../endpoints/responses/response-events.ts'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'
import { type AnsweringVendor, answeringVendor, eventStream } from '../streams/answering-vendor.ts'
import { type ResponsesVendor, responsesVendor } from './responses-vendor.ts'

type Item = Readonly<Record<string, unknown>>

let started: StartedGateway

afterEach(() => started.close())

const TOOL = { type: 'function', name: 'look', description: 'Looks.', parameters: { type: 'object', properties: {} } }
const user = (text: string): Item => ({ type: 'message', role: 'user', content: [{ type: 'input_text', text }] })

/** The items of a streamed answer, as a client that keeps nothing gathers them. */
async function streamedItems(body: object): Promise<readonly Item[]> {
  const answer = await started.post('/v1/responses', { ...body, stream: true, store: false })
  const events = responseEvents(await answer.text())
  const { output } = checkGrammar(events)
  const done = events.flatMap(({ type, item }) => (type === 'response.output_item.done' ? [item as Item] : []))
  expect(done).toEqual(output)
  return done
}

describe('a vendor that encrypts reasoning for the organisation of its key', () => {
  const MODEL = 'chat-relayed'
  const reasoning = { type: 'reasoning', id: 'rs_vendor1', summary: [], encrypted_content: 'gAAAA' }
  const message = {
    type: 'message',
    id: 'msg_vendor1',
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text: 'hello there', annotations: [], logprobs: [] }],
  }
  let vendors: ResponsesVendor[]

  beforeEach(async () => {
    vendors = [await responsesVendor()]
    started = await startGateway({
      vendors: [openai({ apiKey: ['key-of-one-org', 'key-of-another'], baseURL: vendors[0]!.origin })],
    })
  })
  afterEach(async () => {
    for (const vendor of vendors) await vendor.close()
  })

  const followUp = {
    model: MODEL,
    store: false,
    max_output_tokens: 100,
    input: [user('hi'), reasoning, message, user('and now')],
  }

  test('a client gets its items as they were, and the vendor gets them back under ids that it does not store', async () => {
    const items = await streamedItems({ model: MODEL, input: [user('hi')] })
    expect(items).toEqual([reasoning, message])
    await (await started.post('/v1/responses', followUp)).text()

    // With `store: false` nobody knows whose the items are. The vendor accepts encrypted reasoning without an id.
    const input = followUp.input.map((item) => withOwnItemIds(item as ResponsesItem, new Set()))
    expect(JSON.parse(vendors[0]!.calls[1]!.body)).toEqual({ ...followUp, input, model: 'gpt-5.4' })
    const { id: _id, ...withoutId } = reasoning
    expect(input[1]).toEqual(withoutId)
  })

  test.each([false, true])(
    'reasoning that a client carries returns to the key that made it (streamed: %s)',
    async (stream) => {
      const [vendor] = vendors
      const first = await started.post('/v1/responses', { model: MODEL, input: 'hi', store: false, stream })
      await first.text()
      for (let count = 0; count < 6; count++)
        await (await started.post('/v1/responses', { ...followUp, stream })).text()
      const keys = vendor!.calls.map(({ key }) => key)
      expect(new Set(keys).size).toBe(1)

      // Others take turns.
      for (let count = 0; count < 4; count++)
        await (await started.post('/v1/responses', { model: MODEL, input: 'hi', store: false })).text()
      expect(new Set(vendor!.calls.map(({ key }) => key)).size).toBe(2)
    },
  )

  test('what its key cannot answer is asked of no other key of the vendor', async () => {
    const [vendor] = vendors
    await (await started.post('/v1/responses', { model: MODEL, input: 'hi', store: false })).text()
    const maker = vendor!.calls[0]!.key
    vendor!.refuses = (key) => key === maker
    const answer = await started.post('/v1/responses', followUp)
    const fresh = await started.post('/v1/responses', { model: MODEL, input: 'hi', store: false })

    const carrying = vendor!.calls.filter(({ body }) => body.includes('gAAAA'))
    expect([answer.status, new Set(carrying.map(({ key }) => key))]).toEqual([503, new Set([maker])])
    expect(fresh.status).toBe(200)
  })
})

describe('a vendor whose reasoning travels in envelopes', () => {
  let vendor: AnsweringVendor
  let bodies: Record<string, unknown>[]

  afterEach(() => vendor.close())

  const frames = (events: readonly object[]): string =>
    events
      .map((event) => `event: ${(event as { type?: string }).type ?? ''}\ndata: ${JSON.stringify(event)}\n\n`)
      .join('')

  test('the signature of a call comes back to Gemini in a loop of tools that a client carries', async () => {
    bodies = []
    const call = { name: 'look', args: { at: 'x' } }
    const content = (part: object) => ({ candidates: [{ content: { role: 'model', parts: [part] }, index: 0 }] })
    vendor = await answeringVendor((response, body) => {
      bodies.push(body)
      eventStream(response)
      const parts =
        bodies.length === 1
          ? [
              { text: 'hm', thought: true },
              { functionCall: call, thoughtSignature: 'U0lHTkFUVVJF' },
            ]
          : [{ text: 'It is sunny.' }]
      const last = {
        candidates: [{ finishReason: 'STOP', index: 0 }],
        usageMetadata: { promptTokenCount: 9, candidatesTokenCount: 5 },
      }
      response.end([...parts.map(content), last].map((event) => `data: ${JSON.stringify(event)}\r\n\r\n`).join(''))
    })
    started = await startGateway({ vendors: [gemini({ apiKey: 'key', baseURL: vendor.origin })] })
    const request = { model: 'gmn-2.5-pro', tools: [TOOL], reasoning: { summary: 'auto' } }
    const items = await streamedItems({ ...request, input: [user('look at x')] })
    expect(items.map(({ type }) => type)).toEqual(['reasoning', 'function_call'])
    const output = { type: 'function_call_output', call_id: items[1]!['call_id'], output: 'sunny' }
    await streamedItems({ ...request, input: [user('look at x'), ...items, output] })

    const turns = bodies[1]!['contents'] as { role: string; parts: Item[] }[]
    expect(turns.find(({ role }) => role === 'model')?.parts.at(-1)).toMatchObject({
      functionCall: call,
      thoughtSignature: 'U0lHTkFUVVJF',
    })
  })

  test('signed thinking comes back to Claude before the call that followed it', async () => {
    bodies = []
    const usage = { input_tokens: 9, output_tokens: 5 }
    const thinking = { type: 'thinking', thinking: 'hm', signature: 'c2lnbmF0dXJl' }
    const head = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [], usage }
    vendor = await answeringVendor((response, body) => {
      bodies.push(body)
      eventStream(response)
      response.end(
        frames([
          { type: 'message_start', message: head },
          { type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '', signature: '' } },
          { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'hm' } },
          { type: 'content_block_delta', index: 0, delta: { type: 'signature_delta', signature: thinking.signature } },
          { type: 'content_block_stop', index: 0 },
          {
            type: 'content_block_start',
            index: 1,
            content_block: { type: 'tool_use', id: 'toolu_1', name: 'look', input: {} },
          },
          { type: 'content_block_delta', index: 1, delta: { type: 'input_json_delta', partial_json: '{"at":"x"}' } },
          { type: 'content_block_stop', index: 1 },
          { type: 'message_delta', delta: { stop_reason: 'tool_use', stop_sequence: null }, usage },
          { type: 'message_stop' },
        ]),
      )
    })
    started = await startGateway({ vendors: [anthropic({ apiKey: 'key', baseURL: vendor.origin })] })
    const request = { model: 'cl-sonnet-4-6', tools: [TOOL], reasoning: { effort: 'medium', summary: 'auto' } }
    const items = await streamedItems({ ...request, input: [user('look at x')] })
    expect(items[0]).toMatchObject({
      type: 'reasoning',
      summary: [{ text: 'hm' }],
      encrypted_content: expect.any(String),
    })
    const output = { type: 'function_call_output', call_id: 'toolu_1', output: 'sunny' }
    await streamedItems({ ...request, input: [user('look at x'), ...items, output] })

    const [, turn] = bodies[1]!['messages'] as { content: Item[] }[]
    expect(turn?.content).toEqual([thinking, { type: 'tool_use', id: 'toolu_1', name: 'look', input: { at: 'x' } }])
  })

  /** A server of the chat dialect that thinks of a mail address, and then calls a tool. */
  async function thinkingServer(hooks: Hook[] = []): Promise<void> {
    bodies = []
    const call = { index: 0, id: 'call_1', type: 'function', function: { name: 'look', arguments: '{}' } }
    const thought = 'ask bob@example.com'
    vendor = await answeringVendor((response, body) => {
      bodies.push(body)
      if (body['stream'] !== true) {
        const message = { role: 'assistant', content: null, reasoning_content: thought, tool_calls: [call] }
        response.writeHead(200, { 'content-type': 'application/json' })
        response.end(JSON.stringify({ id: 'c1', choices: [{ index: 0, message, finish_reason: 'tool_calls' }] }))
        return
      }
      eventStream(response)
      const deltas = [{ reasoning_content: 'ask bob@' }, { reasoning_content: 'example.com' }, { tool_calls: [call] }]
      const choices = [...deltas.map((delta) => ({ delta })), { delta: {}, finish_reason: 'tool_calls' }]
      const chunks = choices.map((choice) => ({ id: 'c1', choices: [{ index: 0, finish_reason: null, ...choice }] }))
      response.end(`${chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('')}data: [DONE]\n\n`)
    })
    const server = openaiCompatible(presets.deepseek, {
      apiKey: 'key',
      baseURL: vendor.origin,
      models: [{ id: 'thinker', kind: 'chat', upstream: 'deepseek-v4-pro' }],
    })
    started = await startGateway({ vendors: [server], billing: 'off', hooks })
  }

  /** The items of an answer, whole or streamed; it shows no reasoning unless that is asked for. */
  async function itemsOf(stream: boolean, asked: object = {}): Promise<readonly Item[]> {
    const request = { model: 'thinker', tools: [TOOL], input: [user('look at x')], ...asked }
    if (stream) return streamedItems(request)
    const answer = await started.post('/v1/responses', { ...request, store: false })
    return ((await answer.json()) as { output: Item[] }).output
  }

  test.each([false, true])(
    'reasoning that is only text comes back where the model reads it (streamed: %s)',
    async (stream) => {
      await thinkingServer()
      const items = await itemsOf(stream)
      expect(items.map(({ type }) => type)).toEqual(['reasoning', 'function_call'])
      expect(items[0]).toMatchObject({ summary: [], encrypted_content: expect.any(String) })
      const output = { type: 'function_call_output', call_id: 'call_1', output: 'sunny' }
      const next = { model: 'thinker', tools: [TOOL], store: false, input: [user('look at x'), ...items, output] }
      expect((await started.post('/v1/responses', next)).status).toBe(200)

      const [, turn] = bodies[1]!['messages'] as Item[]
      expect(turn).toMatchObject({ role: 'assistant', reasoning_content: 'ask bob@example.com' })
    },
  )

  // Clients that keep nothing at the gateway leave out reasoning without encrypted content, such as the Vercel AI SDK.
  test.each([false, true])(
    'reasoning that is shown has encrypted content where the model reads it again, and comes back once (streamed: %s)',
    async (stream) => {
      await thinkingServer()
      const items = await itemsOf(stream, { reasoning: { summary: 'auto' } })
      const summary = [{ type: 'summary_text', text: 'ask bob@example.com' }]
      expect(items[0]).toMatchObject({ summary, encrypted_content: expect.stringMatching(/^signalbox:/) })
      const output = { type: 'function_call_output', call_id: 'call_1', output: 'sunny' }
      const next = { model: 'thinker', tools: [TOOL], store: false, input: [user('look at x'), ...items, output] }
      expect((await started.post('/v1/responses', next)).status).toBe(200)

      const [, turn] = bodies[1]!['messages'] as Item[]
      expect(turn).toMatchObject({ role: 'assistant', reasoning_content: 'ask bob@example.com' })
    },
  )

  test.each([false, true])(
    'reasoning that is carried is read by hooks, and not carried if they change it (streamed: %s)',
    async (stream) => {
      const rule = { name: 'word', pattern: /ask/g, maxLength: 3 }
      await thinkingServer([redact([pii.email]), redact([rule], { name: 'words' })])
      const changed = await itemsOf(stream)
      expect(changed.map(({ type, encrypted_content: state }) => [type, state])).toEqual([
        ['reasoning', ''],
        ['function_call', undefined],
      ])
      await started.close()
      await vendor.close()

      await thinkingServer([redact([pii.iban])])
      expect((await itemsOf(stream))[0]).toMatchObject({ encrypted_content: expect.stringMatching(/^signalbox:/) })
    },
  )

  /** Claude that thinks of a mail address, whole or streamed, with all of the reasoning shown and carried. */
  async function shownReasoning(hooks: readonly AnyHook[], stream: boolean): Promise<Item> {
    const usage = { input_tokens: 9, output_tokens: 5 }
    const head = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', usage }
    const blocks = [
      { type: 'thinking', thinking: 'ask bob@example.com', signature: 'c2lnbmF0dXJl' },
      { type: 'text', text: 'Done.' },
    ] as const
    vendor = await answeringVendor((response) => {
      if (!stream) {
        response.writeHead(200, { 'content-type': 'application/json' })
        response.end(JSON.stringify({ ...head, content: blocks, stop_reason: 'end_turn' }))
        return
      }
      eventStream(response)
      const [thought, said] = blocks
      const delta = (index: number, members: object): object => ({ type: 'content_block_delta', index, delta: members })
      response.end(
        frames([
          { type: 'message_start', message: { ...head, content: [] } },
          { type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '', signature: '' } },
          delta(0, { type: 'thinking_delta', thinking: thought.thinking.slice(0, 8) }),
          delta(0, { type: 'thinking_delta', thinking: thought.thinking.slice(8) }),
          delta(0, { type: 'signature_delta', signature: thought.signature }),
          { type: 'content_block_stop', index: 0 },
          { type: 'content_block_start', index: 1, content_block: { type: 'text', text: '' } },
          delta(1, { type: 'text_delta', text: said.text }),
          { type: 'content_block_stop', index: 1 },
          { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage },
          { type: 'message_stop' },
        ]),
      )
    })
    started = await startGateway({ vendors: [anthropic({ apiKey: 'key', baseURL: vendor.origin })], hooks: [...hooks] })
    const request = { model: 'cl-sonnet-4-6', reasoning: { effort: 'medium', summary: 'auto' }, input: [user('hi')] }
    if (stream) return (await streamedItems(request))[0]!
    const answer = await started.post('/v1/responses', { ...request, store: false })
    return ((await answer.json()) as { output: Item[] }).output[0]!
  }

  test.each([false, true])('reasoning that is shown and carried is read once (streamed: %s)', async (stream) => {
    const got: CapturedRecord[] = []
    const log = capture({ on: ['answer'], sink: (records) => void got.push(...records) })
    const item = await shownReasoning([log], stream)
    await expect.poll(() => got.flatMap(({ texts }) => texts.map(({ text }) => text))).toContain('Done.')

    const read = got.flatMap(({ texts }) => texts).filter(({ kind }) => kind === 'reasoning')
    expect(read.map(({ id, text }) => [id, text])).toEqual([['output[0].summary[0].text', 'ask bob@example.com']])
    expect(item).toMatchObject({ encrypted_content: expect.stringMatching(/^signalbox:/) })
  })

  test.each([false, true])('reasoning that a hook changes is not carried as it was (streamed: %s)', async (stream) => {
    const item = await shownReasoning([redact([pii.email])], stream)
    expect(item).toMatchObject({ summary: [{ text: 'ask [EMAIL]' }], encrypted_content: '' })
    await started.close()
    await vendor.close()

    const all = { name: 'all', pattern: /.+/g, maxLength: 100 }
    expect(await shownReasoning([redact([all])], stream)).toMatchObject({ encrypted_content: '' })
    await started.close()
    await vendor.close()

    // Other changes keep the state.
    const said = { name: 'said', pattern: /Done/g, maxLength: 4 }
    const kept = await shownReasoning([redact([said])], stream)
    expect(kept).toMatchObject({ encrypted_content: expect.stringMatching(/^signalbox:/) })
  })
})
