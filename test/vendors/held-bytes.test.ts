import { Buffer } from 'node:buffer'
import { readdirSync, readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ChatRequest } from '../../src/endpoints/chat/chat-request.ts'
import type { ImageEditRequest } from '../../src/endpoints/image-edits/image-edit-request.ts'
import type { MessagesRequest } from '../../src/endpoints/messages/messages-request.ts'
import { createResponsesOperation } from '../../src/endpoints/responses/responses-operation.ts'
import type { ResponsesRequest } from '../../src/endpoints/responses/responses-request.ts'
import { anthropic } from '../../src/vendors/anthropic/anthropic.ts'
import { dashscope } from '../../src/vendors/dashscope/dashscope.ts'
import { gemini } from '../../src/vendors/gemini/gemini.ts'
import { openai } from '../../src/vendors/openai/openai.ts'
import { openaiCompatible } from '../../src/vendors/openai-compatible/openai-compatible.ts'
import type { StreamTransform, Vendor } from '../../src/vendors/vendor.ts'
import { jsonCall } from './openai/openai-image-calls.ts'
import { callFromRequest } from './shared/vendor-call.ts'

const KEY = { apiKey: 'test-key-0001' }
const compatible = openaiCompatible({ id: 'any', baseURL: 'https://llm.example/v1', ...KEY, models: [] })

const CHAT: ChatRequest = { model: 'public', stream: true, messages: [{ role: 'user', content: 'hi' }] }
const MESSAGES: MessagesRequest = {
  model: 'public',
  stream: true,
  max_tokens: 100,
  messages: [{ role: 'user', content: 'hi' }],
}
const RESPONSES: ResponsesRequest = { model: 'public', stream: true, input: 'hi' }

/** Vendors whose chat is translated into Responses, which tests the decoders of all dialects. */
const toResponses = (vendor: Vendor) => () => {
  const call = {
    ...callFromRequest<ResponsesRequest>(RESPONSES),
    conversation: { previousUpstreamId: undefined, freshId: 'resp_abc' },
  }
  return createResponsesOperation({ chat: vendor.chat! }, call)!.stream()
}

/** Readers for the recorded streams of each folder. */
const READERS: Readonly<Record<string, readonly [folder: string, make: () => StreamTransform]>> = {
  'chat that passes': ['shared/fixtures', () => compatible.chat!.passThrough!.stream!(callFromRequest(CHAT))],
  'messages that pass': [
    'anthropic/fixtures/streams',
    () => anthropic(KEY).messages!.stream!(callFromRequest(MESSAGES)),
  ],
  'responses that pass': [
    'openai/fixtures/responses-chat/streams',
    () =>
      openai(KEY).responses!.stream!({
        ...callFromRequest<ResponsesRequest>(RESPONSES),
        conversation: { previousUpstreamId: undefined, freshId: 'resp_abc' },
      }),
  ],
  'chat that is translated': ['shared/fixtures', toResponses(compatible)],
  'messages that are translated': ['anthropic/fixtures/streams', toResponses(anthropic(KEY))],
  'chat of Gemini': ['gemini/fixtures/streams', toResponses(gemini(KEY))],
  'chat of DashScope': ['dashscope/fixtures', toResponses(dashscope(KEY))],
}

const STREAMS = Object.entries(READERS).flatMap(([name, [folder, make]]) => {
  const place = new URL(`./${folder}/`, import.meta.url)
  return readdirSync(place)
    .filter((file) => file.endsWith('.sse'))
    .map((file) => [name, file, readFileSync(new URL(file, place)), make] as const)
})

const PICTURES = Buffer.from(
  ['partial_image', 'completed']
    .map((type) => {
      const data = { type: `image_edit.${type}`, b64_json: 'A'.repeat(3_000), usage: { output_tokens: 3 } }
      return `event: image_edit.${type}\ndata: ${JSON.stringify(data)}\n\n`
    })
    .join(''),
)

/** Reads a stream in pieces of these sizes. `wiped` counts how often the bytes were overwritten as soon as allowed. */
function read(stream: StreamTransform, bytes: Buffer, sizes: readonly number[], isWiping: boolean) {
  let text = ''
  let wiped = 0
  for (let start = 0, index = 0; start < bytes.length; index++) {
    const end = start + sizes[index % sizes.length]!
    const chunk = Buffer.from(new Uint8Array(bytes.subarray(start, end)).buffer)
    const given = stream.push(chunk)
    text += typeof given === 'string' ? given : Buffer.from(given ?? []).toString('latin1')
    if (isWiping && stream.holdsNoBytes === true) {
      chunk.fill('#')
      if (typeof given === 'object') given.fill(0x23)
      wiped += 1
    }
    start = end
  }
  const end = stream.end()
  text += typeof end === 'string' ? end : Buffer.from(end ?? []).toString('latin1')
  const { closing, usage, failure, outputBytesSeen, isComplete, keptAnswer } = stream
  return { wiped, told: { text, closing: String(closing), usage, failure, outputBytesSeen, isComplete, keptAnswer } }
}

function checkHeld(bytes: Buffer, make: () => StreamTransform): number {
  let wiped = 0
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 12 }), (sizes) => {
      const untouched = read(make(), bytes, sizes, false)
      const overwritten = read(make(), bytes, sizes, true)
      wiped += overwritten.wiped
      expect(overwritten.told).toEqual(untouched.told)
    }),
    { numRuns: 15 },
  )
  return wiped
}

describe('a stream that says it holds no bytes', () => {
  test.each(STREAMS)('reads none again: %s, %s', (_name, _file, bytes, make) => {
    checkHeld(bytes, make)
  })

  test('does not read an image again', () => {
    const request = '{"model":"gp-image-2","prompt":"a","stream":true}'
    const make = () => openai(KEY).imageEdits!.stream!(jsonCall<ImageEditRequest>(request))

    expect(checkHeld(PICTURES, make)).toBeGreaterThan(0)
  })

  test.each(Object.keys(READERS).filter((name) => name !== 'chat of Gemini'))('says so between events: %s', (name) => {
    const [, , bytes, make] = STREAMS.find(([reader]) => reader === name)!
    const stream = make()
    stream.push(bytes.subarray(0, bytes.indexOf('\n\n') + 2))

    expect(stream.holdsNoBytes).toBe(true)
  })
})
