import { describe, expect, test } from 'vitest'
import { anthropic, anthropicBedrock, anthropicFoundry } from '../../../src/vendors/anthropic/anthropic.ts'
import type { NativeBatches } from '../../../src/vendors/vendor.ts'
import { answerWith, batchFixtures } from '../support/batch-fixtures.ts'
import { chatCall, chatOperation } from './chat-call.ts'

const KEY = 'sk-ant-canary-0123456789'
const FIXTURES = batchFixtures(new URL('./fixtures/batches/', import.meta.url))
const ID = 'msgbatch_01HkcTjaV5uDC8jWR4ZsDV8d'
const HEADERS = ['x-api-key', KEY, 'anthropic-version', '2023-06-01', 'accept-encoding', 'identity']

const batches = anthropic({ apiKey: KEY }).batches as NativeBatches
const input = { fileId: undefined, path: '/v1/messages', upstream: 'claude-sonnet-4-6', name: 'b1' }

describe('requests about batches of messages', () => {
  test('writes a line with the request of a single call and the id of the gateway', () => {
    const single = chatOperation().toWire(chatCall({ max_tokens: 5 }))

    const line = batches.line({ customId: 'r1', path: single.path, body: String(single.body) })

    expect(JSON.parse(line)).toEqual({ custom_id: 'r1', params: JSON.parse(String(single.body)) })
    expect(JSON.parse(line).params).not.toHaveProperty('stream')
  })

  test('the creation carries the lines in one JSON text', () => {
    const { body, ...call } = batches.create(input, KEY)
    const { before, between, after } = body as Exclude<typeof body, string | null>
    const lines = ['r1', 'r2'].map((customId) => batches.line({ customId, path: '/v1/messages', body: '{"a":1}' }))

    expect(batches.upload).toBeUndefined()
    expect(call).toEqual({
      method: 'POST',
      path: '/v1/messages/batches',
      headers: [...HEADERS, 'content-type', 'application/json'],
    })
    expect(JSON.parse(before + lines.join(between) + after)).toEqual({
      requests: [
        { custom_id: 'r1', params: { a: 1 } },
        { custom_id: 'r2', params: { a: 1 } },
      ],
    })
  })

  test('limits a batch to 256 MB, including the text around its lines', () => {
    const { before, after } = batches.create(input, KEY).body as { before: string; after: string }

    expect(batches.limits.maxBytes + before.length + after.length).toBe(256_000_000)
  })

  test('looks, results, cancelling and deletion name the batch below the address of messages', () => {
    const base = { headers: HEADERS, body: null }

    expect(batches.read(ID, KEY)).toEqual({ method: 'GET', path: `/v1/messages/batches/${ID}`, ...base })
    expect(batches.results(ID, KEY)).toEqual({ method: 'GET', path: `/v1/messages/batches/${ID}/results`, ...base })
    expect(batches.cancel(ID, KEY)).toEqual({ method: 'POST', path: `/v1/messages/batches/${ID}/cancel`, ...base })
    expect(batches.remove({ fileId: undefined, batchId: ID, results: [ID] }, KEY)).toEqual([
      { method: 'DELETE', path: `/v1/messages/batches/${ID}`, ...base },
    ])
    expect(batches.remove({ fileId: undefined, batchId: undefined, results: [] }, KEY)).toEqual([])
  })

  test('an id of the vendor cannot leave its path', () => {
    expect(batches.read('../../v1/models?x', KEY).path).toBe('/v1/messages/batches/..%2F..%2Fv1%2Fmodels%3Fx')
  })

  test('a prefix and a version of the operator hold for batches too', () => {
    const proxied = anthropic({ apiKey: KEY, baseURL: 'https://proxy.example/claude', version: '2026-10-21' }).batches!

    expect(proxied.create(input, KEY)).toMatchObject({
      path: '/claude/v1/messages/batches',
      headers: expect.arrayContaining(['2026-10-21']),
    })
  })

  test('only requests to messages go into a batch, and none with headers of its own', () => {
    const headers = [...HEADERS]

    expect(batches.takes({ path: '/v1/messages', headers })).toBe(true)
    expect(batches.takes(chatOperation().toWire(chatCall({})))).toBe(true)
    expect(batches.takes({ path: '/v1/messages/count_tokens', headers })).toBe(false)
    expect(batches.takes({ path: '/v1/messages', headers: [...headers, 'anthropic-beta', 'x-2026'] })).toBe(false)
    expect(batches.takes({ path: '/v1/messages', headers: ['anthropic-version', '2026-10-21'] })).toBe(false)
  })

  test('Claude in clouds has no such batches', () => {
    expect(anthropicFoundry({ apiKey: KEY, resource: 'my-resource' }).batches).toBeUndefined()
    expect(anthropicBedrock({ apiKey: KEY, region: 'eu-central-1' }).batches).toBeUndefined()
  })
})

describe('what Anthropic says of batches', () => {
  test.each(FIXTURES.reports)('reads $name as exactly its report', ({ answer, report }) => {
    expect(batches.report(answerWith(answer))).toEqual(report)
    expect(batches.created(answerWith(answer))).toBe(ID)
  })

  test.each([
    '',
    'null',
    '[]',
    '{"type":"message_batch"}',
    '{"type":"error","error":{"type":"api_error"},"id":"x"}',
    '{"type":"message_batch","id":""}',
  ])('takes %j for no batch', (text) => {
    expect(batches.created(answerWith(text))).toBeUndefined()
    expect(batches.report(answerWith(text))).toBeUndefined()
  })

  test.each(FIXTURES.results)('reads the line %s as exactly its result', (line, result) => {
    expect(batches.result(line)).toEqual(result)
  })

  test.each([
    '',
    '{',
    'null',
    '{"custom_id":"r1"}',
    '{"custom_id":1,"result":{"type":"expired"}}',
    '{"custom_id":"r1","result":{"type":"succeeded"}}',
    '{"custom_id":"r1","result":{"type":"postponed"}}',
  ])('takes %j for no result', (line) => {
    expect(batches.result(line)).toBeUndefined()
  })

  test('an answer of a batch is read as that of a single call, and an error as an error', () => {
    const vendor = anthropic({ apiKey: KEY })
    const bodies = FIXTURES.results.map(([line]) => batches.result(line)).filter((entry) => entry?.kind === 'answered')
    const [answer, refused, overloaded] = bodies.map(({ status, body }) => ({ ...answerWith(body), status }))

    expect(chatOperation().fromWire(answer!, chatCall({}))).toMatchObject({
      usage: { inputTokens: 11, outputTokens: 36 },
    })
    expect(vendor.errorFrom(refused!, 0)).toMatchObject({ kind: 'caller', message: 'max_tokens: 200000 > 64000' })
    expect(vendor.errorFrom(overloaded!, 0)).toMatchObject({ kind: 'unavailable' })
  })
})
