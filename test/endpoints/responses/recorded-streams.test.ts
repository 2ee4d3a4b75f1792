import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { GatewayError } from '../../../src/core/errors.ts'
import { createResponsesOperation } from '../../../src/endpoints/responses/responses-operation.ts'
import type { ResponsesRequest } from '../../../src/endpoints/responses/responses-request.ts'
import { anthropic } from '../../../src/vendors/anthropic/anthropic.ts'
import { dashscope } from '../../../src/vendors/dashscope/dashscope.ts'
import { gemini } from '../../../src/vendors/gemini/gemini.ts'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import type { Vendor, VendorCall } from '../../../src/vendors/vendor.ts'
import { CUTS, cutBytes } from '../../support/feed-stream.ts'
import { callFromRequest, textOf } from '../../vendors/shared/vendor-call.ts'
import { checkGrammar, type ResponseEvent, responseEvents } from './response-events.ts'

const KEY = { apiKey: 'test-key-0001' }
const FOLDERS: readonly (readonly [folder: string, vendor: Vendor])[] = [
  ['anthropic/fixtures/streams', anthropic(KEY)],
  ['gemini/fixtures/streams', gemini(KEY)],
  ['dashscope/fixtures', dashscope(KEY)],
  ['shared/fixtures', openaiCompatible({ id: 'any', baseURL: 'https://llm.example/v1', ...KEY, models: [] })],
]
const STREAMS = FOLDERS.flatMap(([folder, vendor]) => {
  const place = new URL(`../../vendors/${folder}/`, import.meta.url)
  return readdirSync(place)
    .filter((name) => name.endsWith('.sse'))
    .map((name) => [`${folder}/${name}`, new Uint8Array(readFileSync(new URL(name, place))), vendor] as const)
})

const REQUEST: ResponsesRequest = {
  model: 'public',
  input: 'hi',
  stream: true,
  reasoning: { summary: 'auto' },
  tools: ['weather', 'now'].map((name) => ({ type: 'function', name, parameters: { type: 'object', properties: {} } })),
}

/** Members that clients read without looking whether they are there (Open Responses, and OpenAI's reference). */
const MEMBERS = [
  ...[
    'id',
    'object',
    'created_at',
    'completed_at',
    'status',
    'background',
    'error',
    'incomplete_details',
    'instructions',
  ],
  ...['max_output_tokens', 'max_tool_calls', 'metadata', 'model', 'output', 'parallel_tool_calls', 'presence_penalty'],
  ...[
    'frequency_penalty',
    'previous_response_id',
    'prompt_cache_key',
    'reasoning',
    'safety_identifier',
    'service_tier',
  ],
  ...['store', 'temperature', 'text', 'tool_choice', 'tools', 'top_logprobs', 'top_p', 'truncation', 'usage'],
]

test('there are recorded streams of every vendor of chat', () => {
  expect(new Set(STREAMS.map(([, , vendor]) => vendor.id)).size).toBe(FOLDERS.length)
  expect(STREAMS.length).toBeGreaterThan(15)
})

test.each(STREAMS)('%s is a stream of the grammar, each frame with all members', (_name, bytes, vendor) => {
  const outputs = CUTS.map((cut) => {
    const events = translated(vendor, cutBytes(bytes, cut))
    const response = checkGrammar(events)
    for (const event of events) checkFrame(event)
    return response['output']
  })

  // However the network cuts the vendor's bytes, the items are the same.
  for (const output of outputs) expect(output).toEqual(outputs[0])
})

function translated(vendor: Vendor, chunks: readonly Uint8Array[]): ResponseEvent[] {
  const conversation = { previousUpstreamId: undefined, freshId: 'resp_abc' }
  const call: VendorCall<ResponsesRequest> = { ...callFromRequest(REQUEST), conversation }
  const { chat } = vendor
  const transform = createResponsesOperation(chat === undefined ? {} : { chat }, call)!.stream()
  const text = textOf([...chunks.map((chunk) => transform.push(chunk)), transform.end()])
  const end = transform.isComplete ? transform.closing : transform.failed!(new GatewayError('upstream_unavailable'))
  return responseEvents(text + String(end))
}

function checkFrame({ type, response, item }: ResponseEvent): void {
  if (response !== undefined) expect(Object.keys(response as object)).toEqual(expect.arrayContaining(MEMBERS))
  if (type === 'response.completed' || type === 'response.incomplete')
    expect(response).toMatchObject({
      id: 'resp_abc',
      output: expect.any(Array),
      usage: {
        input_tokens: expect.any(Number),
        input_tokens_details: { cached_tokens: expect.any(Number) },
        output_tokens: expect.any(Number),
        output_tokens_details: { reasoning_tokens: expect.any(Number) },
        total_tokens: expect.any(Number),
      },
    })
  if (type !== 'response.output_item.added') return
  const added = item as Record<string, unknown>
  expect(added['id']).toMatch(/^(?:msg|rs|fc)_abc\d{4}$/)
  if (added['type'] === 'message')
    expect(added).toMatchObject({ content: [], role: 'assistant', status: 'in_progress' })
  if (added['type'] === 'reasoning') expect(added).toMatchObject({ summary: [], encrypted_content: null })
  if (added['type'] === 'function_call') expect(added).toMatchObject({ arguments: '', status: 'in_progress' })
}
