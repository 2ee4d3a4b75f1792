import { Buffer } from 'node:buffer'
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { dashscope } from '../../../src/vendors/dashscope/dashscope.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import type { LinesBody, WireAnswer } from '../../../src/vendors/vendor.ts'

const KEY = 'sk-proj-secret0123456789'
const OPENAI = openai({ apiKey: KEY }).batches!
const DASHSCOPE = dashscope({ apiKey: KEY }).batches!
const HEADERS = ['content-type', 'application/json', 'accept', 'application/json', 'accept-encoding', 'identity']
const BEARER = ['authorization', `Bearer ${KEY}`]

function fixture(name: string): string {
  return readFileSync(new URL(`fixtures/openai-batches/${name}`, import.meta.url), 'utf8')
}

function answerOf(text: string): WireAnswer {
  return { status: 200, headers: {}, body: Buffer.from(text) }
}

describe.each([
  ['OpenAI', OPENAI, '/v1', 'signalbox_batch'],
  ['DashScope', DASHSCOPE, '/compatible-mode/v1', 'ds_name'],
] as const)('a batch at %s', (_, batches, prefix, nameMember) => {
  test('has a line for each request, by the public path', () => {
    const path = `${prefix}/chat/completions`
    expect(batches.takes({ path, headers: [] })).toBe(true)
    expect(batches.takes({ path: `${prefix}/images/generations`, headers: [] })).toBe(false)
    expect(batches.takes({ path: '/v2/chat/completions', headers: [] })).toBe(false)
    expect(batches.line({ customId: 'r7', path, body: '{"model":"m","n":1.0}' })).toBe(
      '{"custom_id":"r7","method":"POST","url":"/v1/chat/completions","body":{"model":"m","n":1.0}}',
    )
  })

  test('asks for whole answers, also of models that are asked for streams one by one', () => {
    const body = '{"model":"m","stream":true,"n":1,"stream_options":{"include_usage":true}}'
    const quoted = '{"model":"m","stop":"\\"stream\\":true","nested":{"stream":true}, "n":1}'
    const lineOf = (text: string) => batches.line({ customId: 'r7', path: `${prefix}/chat/completions`, body: text })

    expect(JSON.parse(lineOf(body))).toMatchObject({ body: { model: 'm', n: 1 } })
    expect(lineOf(body)).not.toContain('stream')
    expect(lineOf(quoted)).toContain(quoted)
  })

  test('is created from a file, under our name', () => {
    const input = { fileId: 'file-abc', path: `${prefix}/embeddings`, upstream: 'm', name: 'batch_own' }
    const call = batches.create(input, KEY)

    expect({ ...call, body: JSON.parse(call.body as string) as unknown }).toEqual({
      method: 'POST',
      path: `${prefix}/batches`,
      headers: [...HEADERS, ...BEARER],
      body: {
        input_file_id: 'file-abc',
        endpoint: '/v1/embeddings',
        completion_window: '24h',
        metadata: { [nameMember]: 'batch_own' },
      },
    })
    expect(batches.created(answerOf(fixture('in-progress.json')))).toBe('batch_68a1')
    expect(batches.created(answerOf('{}'))).toBeUndefined()
    expect(batches.created(answerOf('<html>'))).toBeUndefined()
  })

  test('is read, cancelled, downloaded and deleted', () => {
    const shown = (call: { method: string; path: string; body: unknown }) => [call.method, call.path, call.body]
    expect(shown(batches.read('batch_1/2', KEY))).toEqual(['GET', `${prefix}/batches/batch_1%2F2`, null])
    expect(shown(batches.cancel('batch_1', KEY))).toEqual(['POST', `${prefix}/batches/batch_1/cancel`, null])
    expect(shown(batches.results('file-out', KEY))).toEqual(['GET', `${prefix}/files/file-out/content`, null])
    const kept = { fileId: 'file-in', batchId: 'batch_1', results: ['file-out', 'file-err'] }
    expect(batches.remove(kept, KEY).map(shown)).toEqual(
      ['file-in', 'file-out', 'file-err'].map((id) => ['DELETE', `${prefix}/files/${id}`, null]),
    )
    expect(batches.remove({ ...kept, fileId: undefined, results: [] }, KEY)).toEqual([])
  })

  test('is found by our name, on a later page too, and not behind the time of its creation', () => {
    const { search } = batches
    expect(search!.call(undefined, KEY).path).toBe(`${prefix}/batches?limit=100`)
    expect(search!.call('batch_9', KEY).path).toBe(`${prefix}/batches?limit=100&after=batch_9`)
    const page = (hasMore: boolean, ...data: object[]) =>
      answerOf(JSON.stringify({ object: 'list', data, has_more: hasMore, last_id: 'batch_last' }))
    const own = { id: 'batch_68a1', created_at: 1_790_000_000, metadata: { [nameMember]: 'batch_own' } }
    const other = { id: 'batch_other', created_at: 1_790_000_000, metadata: null }
    const sought = { name: 'batch_own', sinceMs: 1_789_999_000_000 }
    expect(search!.read(page(true, other, own), sought)).toEqual({ batchId: 'batch_68a1' })
    expect(search!.read(page(true, other), sought)).toEqual({ after: 'batch_last' })
    expect(search!.read(page(false, other), sought)).toEqual({})
    expect(search!.read(page(true, { ...other, created_at: 1 }, own), sought)).toEqual({})
    expect(search!.read(answerOf('{"data":7}'), sought)).toBeUndefined()
  })

  test.each([
    ['in-progress', { state: 'running', results: [] }],
    ['completed', { state: 'ended', isExpired: false, isCancelled: false, results: ['file-out', 'file-err'] }],
    ['expired', { state: 'ended', isExpired: true, isCancelled: false, results: ['file-out', 'file-err'] }],
    ['cancelled', { state: 'ended', isExpired: false, isCancelled: true, results: ['file-out'] }],
    ['failed', { state: 'failed', failure: { code: 'model_not_found' } }],
  ])('reports the batch state %s', (name, expected) => {
    const report = batches.report(answerOf(fixture(`${name}.json`)))

    expect(report).toMatchObject(expected)
    expect(JSON.stringify(report)).not.toContain(KEY)
  })

  test('ignores an unknown state', () => {
    expect(batches.report(answerOf(fixture('completed.json').replace('"completed"', '"paused"')))).toBeUndefined()
    expect(batches.report(answerOf('[]'))).toBeUndefined()
  })

  test('has results as their single calls would have been answered', () => {
    const results = fixture('results.jsonl')
      .trim()
      .split('\n')
      .map((line) => batches.result(line))

    expect(results.map((result) => [result?.customId, result?.kind])).toEqual([
      ['r1', 'answered'],
      ['r0', 'answered'],
      ['r2', 'expired'],
      ['r3', 'cancelled'],
      ['r4', 'answered'],
      ['r5', 'answered'],
    ])
    const told = results.flatMap((result) =>
      result?.kind === 'answered' ? [[result.status, JSON.parse(result.body) as object]] : [],
    )
    expect(told).toMatchObject([
      [200, { choices: [{ message: { content: 'Grüße\n' } }], usage: { total_tokens: 5 } }],
      [400, { error: { code: 'context_length_exceeded' } }],
      [500, { error: { code: 'InternalError' } }],
      [500, { error: { code: 'server_error' } }],
    ])
    for (const line of ['', 'no json', '{}', '{"custom_id":"r1"}', '{"custom_id":7,"response":{"status_code":200}}'])
      expect(batches.result(line)).toBeUndefined()
  })
})

test('a result keeps the digits of arguments that a server sends as an object', () => {
  const called =
    '{"choices":[{"message":{"tool_calls":[{"function":{"name":"f","arguments":{"id":1234567890123456789,"x":1.0}}}]}}]}'
  const line = `{"custom_id":"r0","response":{"status_code":200,"body":${called}}}`

  expect(OPENAI.result(line)).toMatchObject({ kind: 'answered', body: called })
})

test('a file for OpenAI is a form that its vendor deletes after three days', () => {
  const call = OPENAI.upload!.call('batch_own', KEY)
  const { before, between, after } = call.body as LinesBody

  expect([call.method, call.path, call.headers[1]]).toEqual([
    'POST',
    '/v1/files',
    'multipart/form-data; boundary=signalbox-batch_own',
  ])
  expect(`${before}LINE1${between}LINE2${after}`.split('\r\n')).toEqual([
    '--signalbox-batch_own',
    'content-disposition: form-data; name="purpose"',
    '',
    'batch',
    '--signalbox-batch_own',
    'content-disposition: form-data; name="expires_after[anchor]"',
    '',
    'created_at',
    '--signalbox-batch_own',
    'content-disposition: form-data; name="expires_after[seconds]"',
    '',
    '259200',
    '--signalbox-batch_own',
    'content-disposition: form-data; name="file"; filename="batch_own.jsonl"',
    'content-type: application/jsonl',
    '',
    'LINE1\nLINE2\n',
    '--signalbox-batch_own--',
    '',
  ])
  expect((DASHSCOPE.upload!.call('batch_own', KEY).body as LinesBody).before).not.toContain('expires_after')
  expect(OPENAI.upload!.uploaded(answerOf('{"id":"file-1"}'))).toBe('file-1')
})
