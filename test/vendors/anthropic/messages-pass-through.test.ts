import { Buffer } from 'node:buffer'
import { describe, expect, test } from 'vitest'
import { messagesStreamError } from '../../../src/vendors/anthropic/error-from.ts'
import { MessagesPassThrough } from '../../../src/vendors/anthropic/messages-operation.ts'
import { CUTS, type Cut, cutBytes } from '../../support/feed-stream.ts'

const START = `event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant", "model":"claude-test-20260101","content":[],"stop_reason":null,"usage":{"input_tokens":41,"cache_creation_input_tokens":8,"cache_read_input_tokens":2048,"output_tokens":1}}}

`
const REST = `event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: ping
data: {"type": "ping"}

: a comment

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"日本 \\"model\\":\\"claude-test-20260101\\""}}

event: unheard_of
data: {"type":"unheard_of","model":"claude-test-20260101"}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":63}}

event: message_stop
data: {"type":"message_stop"}

`

function relay(maxEventBytes?: number): MessagesPassThrough {
  const readError = (event: unknown) => messagesStreamError(event, ['sk-ant-canary-0123456789'])
  return new MessagesPassThrough({ publicModel: 'cl-test' }, readError, maxEventBytes)
}

function fed(text: string, cut: Cut = 'whole', stream = relay()): { given: string; stream: MessagesPassThrough } {
  const pieces = cutBytes(Buffer.from(text), cut).map((chunk) => stream.push(chunk))
  const given = Buffer.concat([...pieces, stream.end()].filter((piece) => piece !== undefined))
  return { given: given.toString('utf8'), stream }
}

describe.each(CUTS)('a stream fed %s', (cut) => {
  test('comes out byte for byte but for its model, pings and events unknown to us included', () => {
    const { given, stream } = fed(START + REST, cut)

    expect(given).toBe(START.replace('claude-test-20260101', 'cl-test') + REST)
    expect(stream).toMatchObject({ isComplete: true, failure: undefined, hasContent: true, outputBytesSeen: 37 })
  })

  test('counts what the whole answer would', () => {
    expect(fed(START + REST, cut).stream.usage).toEqual({
      inputTokens: 2097,
      cachedInputTokens: 2048,
      cacheWriteTokens: 8,
      outputTokens: 63,
    })
  })

  test('gives out what came before an error, and not the error', () => {
    const error = `event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n`
    const [begun = ''] = REST.split('event: ping')

    const { given, stream } = fed(START + begun + error + REST, cut)

    expect(given).toBe(START.replace('claude-test-20260101', 'cl-test') + begun)
    expect(stream.failure).toMatchObject({ kind: 'unavailable', type: 'overloaded_error', message: 'Overloaded' })
    expect(stream.isComplete).toBe(false)
  })
})

test('lines that end as in HTTP, and data in other spacing, are read alike', () => {
  const text = (START + REST).replaceAll('"message":{', '"message" : {').replaceAll('\n', '\r\n')

  const { given, stream } = fed(text)

  expect(given).toBe(text.replace('claude-test-20260101', 'cl-test'))
  expect(stream.usage?.outputTokens).toBe(63)
})

test('a start whose model cannot be replaced in place is written again', () => {
  const { given } = fed(START.replace('"model"', '"m\\u006fdel"') + REST)

  const [, data = ''] = /^data: (.*)$/m.exec(given) ?? []
  expect((JSON.parse(data) as { message: unknown }).message).toMatchObject({ id: 'msg_1', model: 'cl-test' })
  expect(given.endsWith(REST)).toBe(true)
})

test('does not count the start as content, so that an error after it keeps its own status', () => {
  const stream = relay()
  stream.push(Buffer.from(START))

  expect(stream.hasContent).toBe(false)
})

test('a stream that is cut is not whole, and a torn event does not go out', () => {
  const text = START + REST
  const { given, stream } = fed(text.slice(0, text.indexOf('"text_delta"')))

  expect(stream.isComplete).toBe(false)
  expect(given).not.toContain('content_block_delta')
  expect(stream.usage).toMatchObject({ inputTokens: 2097, outputTokens: 1 })
})

test('accepts a complete stream without the blank line after its last event', () => {
  const { given, stream } = fed((START + REST).trimEnd())

  expect(stream).toMatchObject({ isComplete: true, failure: undefined })
  expect(given).toBe(START.replace('claude-test-20260101', 'cl-test') + REST)
})

test('the end mark of another dialect is taken out', () => {
  expect(fed(`${START}data: [DONE]\n\n${REST}`).given).not.toContain('[DONE]')
})

test('an event that is not JSON ends the stream', () => {
  expect(fed(`${START}event: message_delta\ndata: <html>\n\n`).stream.failure).toMatchObject({
    kind: 'invalid_response',
  })
})

test('a line of 20 MB passes, and one above the limit is an error', () => {
  const delta = `event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"${'a'.repeat(20 * 1024 * 1024)}"}}\n\n`
  const chunks = cutBytes(Buffer.from(delta), 'whole').flatMap((bytes) =>
    Array.from({ length: Math.ceil(bytes.length / 65_536) }, (_, place) =>
      bytes.subarray(place * 65_536, (place + 1) * 65_536),
    ),
  )
  const wide = relay()
  const narrow = relay(1024 * 1024)

  const given = chunks.map((chunk) => wide.push(chunk)?.length ?? 0)
  for (const chunk of chunks) narrow.push(chunk)

  expect(given.at(-1)).toBe(Buffer.byteLength(delta))
  expect(narrow.failure).toMatchObject({ kind: 'invalid_response' })
})

test('an error event loses the keys in its text', () => {
  const { stream } = fed(
    'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"bad sk-ant-canary-0123456789"}}\n\n',
  )

  expect(JSON.stringify(stream.failure)).not.toContain('canary')
})
