import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { GatewayError } from '../../../src/core/errors.ts'
import type { ChatStreamWriter } from '../../../src/endpoints/chat/chat-stream-writer.ts'
import { ToolNames } from '../../../src/endpoints/responses/chat-tools.ts'
import { openReasoning } from '../../../src/endpoints/responses/reasoning-envelope.ts'
import { ResponsesStreamWriter, type WriterFacts } from '../../../src/endpoints/responses/responses-stream-writer.ts'
import { fakeClock } from '../../../src/testing/fake-clock.ts'
import { checkGrammar, type ResponseEvent, responseEvents } from './response-events.ts'

const OWNER = { vendor: 'some-vendor', secret: undefined }
const FACTS: WriterFacts = {
  id: 'resp_abc',
  model: 'some-model',
  nowMs: 1_795_132_800_500,
  request: { model: 'some-model', input: 'hi', reasoning: { summary: 'auto' } },
  names: new ToolNames(),
  owner: OWNER,
}
const USAGE = { inputTokens: 20, cachedInputTokens: 5, cacheWriteTokens: 3, outputTokens: 7, reasoningTokens: 2 }

function written(calls: (writer: ChatStreamWriter) => void, facts: Partial<WriterFacts> = {}): ResponseEvent[] {
  const writer = new ResponsesStreamWriter({ ...FACTS, ...facts })
  writer.start()
  calls(writer)
  const { lastEvent } = writer.done(USAGE)
  return responseEvents(writer.take() + lastEvent)
}

const types = (events: readonly ResponseEvent[]): string[] => events.map(({ type }) => type.replace('response.', ''))

interface Item {
  readonly type: string
  readonly [member: string]: unknown
}

function outputOf(events: readonly ResponseEvent[]): Item[] {
  return checkGrammar(events)['output'] as Item[]
}

test('tools are repeated as they were written, functions with all of their members', () => {
  const look = { type: 'function', name: 'look', parameters: { type: 'object' }, defer_loading: true }
  const patch = { type: 'custom', name: 'apply_patch' }
  const request = { ...FACTS.request, tools: [look, patch] }
  const [created] = written((writer) => writer.text('hi'), { request })

  expect((created!['response'] as { tools: object[] }).tools).toEqual([
    { ...look, description: null, strict: null },
    patch,
  ])
})

test('an answer is its beginning, its items in order, and one end with all usage', () => {
  const events = written((writer) => {
    writer.reasoning('Let me ')
    writer.reasoning('think')
    writer.text('You ')
    writer.text('said')
    writer.toolCall({ index: 0, id: 'call_1', name: 'look' })
    writer.toolCallArguments(0, '{"a":')
    writer.toolCallArguments(0, '1}')
    writer.finish('tool_calls')
  })
  expect(types(events)).toEqual([
    'created',
    'in_progress',
    'output_item.added',
    'reasoning_summary_part.added',
    'reasoning_summary_text.delta',
    'reasoning_summary_text.delta',
    'reasoning_summary_text.done',
    'reasoning_summary_part.done',
    'output_item.done',
    'output_item.added',
    'content_part.added',
    'output_text.delta',
    'output_text.delta',
    'output_text.done',
    'content_part.done',
    'output_item.done',
    'output_item.added',
    'function_call_arguments.delta',
    'function_call_arguments.delta',
    'function_call_arguments.done',
    'output_item.done',
    'completed',
  ])
  const response = checkGrammar(events)
  expect(response).toMatchObject({
    id: 'resp_abc',
    object: 'response',
    status: 'completed',
    model: 'some-model',
    created_at: 1_795_132_800,
    usage: {
      input_tokens: 20,
      input_tokens_details: { cached_tokens: 5, cache_write_tokens: 3 },
      output_tokens: 7,
      output_tokens_details: { reasoning_tokens: 2 },
      total_tokens: 27,
    },
    output: [
      { type: 'reasoning', id: 'rs_abc0000', summary: [{ type: 'summary_text', text: 'Let me think' }] },
      {
        type: 'message',
        id: 'msg_abc0001',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: 'You said', annotations: [], logprobs: [] }],
      },
      {
        type: 'function_call',
        id: 'fc_abc0002',
        call_id: 'call_1',
        name: 'look',
        arguments: '{"a":1}',
        status: 'completed',
      },
    ],
  })
})

test('a turn of calls alone has no message, and interleaved calls become items one after the other', () => {
  const events = written((writer) => {
    writer.toolCall({ index: 0, id: 'call_1', name: 'one' })
    writer.toolCallArguments(0, '{"a"')
    writer.toolCall({ index: 1, id: 'call_2', name: 'two' })
    writer.toolCallArguments(1, '{}')
    writer.toolCallArguments(0, ':1}')
    writer.finish('tool_calls')
  })
  const output = outputOf(events)
  expect(output.map((item) => [item['name'], item['arguments']])).toEqual([
    ['one', '{"a":1}'],
    ['two', '{}'],
  ])
})

test('a call without arguments has an empty object for them', () => {
  const [call] = outputOf(written((writer) => writer.toolCall({ index: 0, id: 'call_1', name: 'now' })))
  expect(call).toMatchObject({ type: 'function_call', arguments: '{}' })
})

test.each([
  ['length', 'max_output_tokens'],
  ['content_filter', 'content_filter'],
] as const)('an answer that ends by %s is incomplete, and so is its last item', (reason, told) => {
  const events = written((writer) => {
    writer.text('You sa')
    writer.finish(reason)
  })
  const response = checkGrammar(events)
  expect(response).toMatchObject({ status: 'incomplete', incomplete_details: { reason: told }, completed_at: null })
  expect(response['output']).toMatchObject([{ type: 'message', status: 'incomplete' }])
  expect(events.at(-1)?.type).toBe('response.incomplete')
})

test('an answer is completed when it ends, and not when it began', () => {
  const clock = fakeClock({ startMs: FACTS.nowMs })
  const writer = new ResponsesStreamWriter({ ...FACTS, clock })
  writer.text('slowly')
  clock.advance(9_000)

  expect(writer.done(USAGE).response).toMatchObject({ created_at: 1_795_132_800, completed_at: 1_795_132_809 })
})

test('a call that is cut within its arguments is incomplete, also before another one', () => {
  const events = written((writer) => {
    for (const index of [0, 1, 2]) writer.toolCall({ index, id: `c${index}`, name: 'look' })
    for (const [index, json] of ['{"at', '{}', '{"a'].entries()) writer.toolCallArguments(index, json)
    writer.finish('length')
  })
  expect(outputOf(events).map(({ status }) => status)).toEqual(['incomplete', 'completed', 'incomplete'])
})

test('a refusal after text is a second part of the message', () => {
  const events = written((writer) => {
    writer.text('Well, ')
    writer.refusal('no.')
    writer.finish('stop')
  })
  expect(outputOf(events)).toMatchObject([
    {
      content: [
        { type: 'output_text', text: 'Well, ' },
        { type: 'refusal', refusal: 'no.' },
      ],
    },
  ])
})

test('a call comes back as the tool that the caller declared', () => {
  const names = new ToolNames()
  const custom = names.chatNameOf({ kind: 'custom', name: 'apply_patch', namespace: undefined })
  const inner = names.chatNameOf({ kind: 'function', name: 'spawn', namespace: 'agents' })
  const search = names.chatNameOf({ kind: 'tool_search', name: 'tool_search', namespace: undefined })
  const events = written(
    (writer) => {
      ;[
        [custom, '{"input":"*** Begin\\n"}'],
        [inner, '{"n":1}'],
        [search, '{"query":"files"}'],
      ].forEach(([name, json], index) => {
        writer.toolCall({ index, id: `call_${index}`, name: name! })
        writer.toolCallArguments(index, json!)
      })
      writer.finish('tool_calls')
    },
    { names },
  )
  expect(outputOf(events)).toMatchObject([
    { type: 'custom_tool_call', name: 'apply_patch', input: '*** Begin\n' },
    { type: 'function_call', name: 'spawn', namespace: 'agents', arguments: '{"n":1}' },
    { type: 'tool_search_call', execution: 'client', arguments: { query: 'files' } },
  ])
})

describe('state of a vendor', () => {
  const block = { type: 'thinking', thinking: 'hm', signature: 'sig' } as const

  test('is carried in the reasoning item for thinking, shown or not', () => {
    for (const summary of ['auto', null]) {
      const events = written(
        (writer) => {
          writer.reasoning('hm')
          writer.thinkingBlock(block)
          writer.text('yes')
        },
        { request: { ...FACTS.request, reasoning: { summary } } },
      )
      const [reasoning] = outputOf(events)
      expect(reasoning?.['summary']).toEqual(summary === null ? [] : [{ type: 'summary_text', text: 'hm' }])
      expect(openReasoning(String(reasoning?.['encrypted_content']), OWNER, 'x')).toEqual({ blocks: [block] })
    }
  })

  test('is carried in a reasoning item before its call', () => {
    const extra = { google: { thought_signature: 'abc' } }
    const events = written((writer) => {
      writer.toolCall({ index: 0, id: 'call_1', name: 'look', extra })
      writer.toolCallArguments(0, '{}')
    })
    const output = outputOf(events)
    expect(output.map(({ type }) => type)).toEqual(['reasoning', 'function_call'])
    expect(openReasoning(String(output[0]?.['encrypted_content']), OWNER, 'x')).toEqual({ calls: { call_1: extra } })
  })

  test('omits reasoning that was not requested and has no state', () => {
    const events = written(
      (writer) => {
        writer.reasoning('hm')
        writer.text('yes')
      },
      { request: { model: 'some-model', input: 'hi' } },
    )
    expect(outputOf(events).map(({ type }) => type)).toEqual(['message'])
  })
})

test('a stream that breaks ends with an error and a failed response, and shows what was done', () => {
  const writer = new ResponsesStreamWriter(FACTS)
  writer.start()
  writer.reasoning('hm')
  writer.text('You sa')
  const events = responseEvents(writer.take() + writer.fail(new GatewayError('upstream_unavailable')))
  expect(types(events).slice(-2)).toEqual(['error', 'failed'])
  expect(checkGrammar(events)).toMatchObject({
    status: 'failed',
    error: { code: 'server_error' },
    output: [{ type: 'reasoning' }],
  })
  expect(events.at(-2)).toMatchObject({ code: 'server_error', error: { type: 'server_error' }, param: null })
})

test.each([
  [3.2, 'Too many requests. Please try again in 4s.'],
  [undefined, 'Too many requests. Try again later.'],
])('a rate limit tells a known wait of %s seconds', (retryAfterSeconds, message) => {
  const writer = new ResponsesStreamWriter(FACTS)
  writer.start()
  const error = new GatewayError('rate_limited', { message: 'Too many requests. Try again later.', retryAfterSeconds })
  const events = responseEvents(writer.fail(error))
  expect(events.at(-2)).toMatchObject({ type: 'error', message, error: { message } })
  expect(events.at(-1)).toMatchObject({ response: { error: { code: 'rate_limit_exceeded', message } } })
})

test('any order of events gives a stream of the grammar', () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('text' as const), text: fc.string() }),
    fc.record({ kind: fc.constant('refusal' as const), text: fc.string() }),
    fc.record({ kind: fc.constant('reasoning' as const), text: fc.string() }),
    fc.record({ kind: fc.constant('block' as const), text: fc.string() }),
    fc.record({ kind: fc.constant('call' as const), index: fc.nat(3), text: fc.string() }),
    fc.record({ kind: fc.constant('json' as const), index: fc.nat(3), text: fc.constantFrom('{', '}', '"a":1', ' ') }),
  )
  const ends = fc.constantFrom('stop' as const, 'length' as const, 'tool_calls' as const, undefined)
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), ends, fc.boolean(), (steps, end, isShown) => {
      const request = isShown ? FACTS.request : { ...FACTS.request, reasoning: null }
      const events = written(
        (writer) => {
          for (const one of steps) {
            if (one.kind === 'text') writer.text(one.text)
            else if (one.kind === 'refusal') writer.refusal(one.text)
            else if (one.kind === 'reasoning') writer.reasoning(one.text)
            else if (one.kind === 'block')
              writer.thinkingBlock({ type: 'thinking', thinking: one.text, signature: 's' })
            else if (one.kind === 'call') writer.toolCall({ index: one.index, id: `call_${one.index}`, name: 'f' })
            else writer.toolCallArguments(one.index, one.text)
          }
          if (end !== undefined) writer.finish(end)
        },
        { request },
      )
      checkGrammar(events)
    }),
    { numRuns: 500 },
  )
})
