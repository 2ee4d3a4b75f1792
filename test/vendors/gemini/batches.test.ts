import { describe, expect, test } from 'vitest'
import { gemini } from '../../../src/vendors/gemini/gemini.ts'
import { vertex } from '../../../src/vendors/gemini/vertex.ts'
import type { LinesBody, NativeBatches } from '../../../src/vendors/vendor.ts'
import { answerWith, batchFixtures } from '../support/batch-fixtures.ts'
import { chatCall, embeddingsCall, vendor } from './gemini-call.ts'

const KEY = 'test-key-0001'
const FIXTURES = batchFixtures(new URL('./fixtures/batches/', import.meta.url))
const NAME = 'batches/leg9wy9p5df66syjxke2eq4xfjqcwp47ejv3'
const HEADERS = ['x-goog-api-key', KEY, 'accept-encoding', 'identity']

const batches = vendor.batches as NativeBatches
const single = vendor.chat!.toWire(chatCall())

describe('requests about batches of contents', () => {
  test('the upload is one body of metadata and JSON lines with keys', () => {
    const { body, ...call } = batches.upload!.call('signalbox_1', KEY)
    const { before, between, after } = body as LinesBody
    const lines = ['r1', 'r2'].map((customId) =>
      batches.line({ customId, path: single.path, body: String(single.body) }),
    )
    const boundary = 'signalbox-batch'
    const request = JSON.parse(String(single.body))

    expect(call).toEqual({
      method: 'POST',
      path: '/upload/v1beta/files?uploadType=multipart',
      headers: [...HEADERS, 'content-type', `multipart/related; boundary=${boundary}`],
    })
    const [empty, metadata, content, end] = (before + lines.join(between) + after).split(`--${boundary}`)
    expect([empty, end]).toEqual(['', '--\r\n'])
    expect(metadata?.split('\r\n')).toEqual([
      '',
      'content-type: application/json; charset=utf-8',
      '',
      JSON.stringify({ file: { displayName: 'signalbox_1', mimeType: 'application/jsonl' } }),
      '',
    ])
    const [, type, blank, jsonl, last] = content?.split('\r\n') ?? []
    expect([type, blank, last]).toEqual(['content-type: application/jsonl', '', ''])
    expect(jsonl?.split('\n').map((line) => JSON.parse(line))).toEqual([
      { key: 'r1', request },
      { key: 'r2', request },
    ])
  })

  test('the creation names the file, and the batch by our name', () => {
    const input = { fileId: 'files/abc', path: single.path, upstream: 'gemini-2.5-flash', name: 'signalbox_1' }
    const { body, ...call } = batches.create(input, KEY)

    expect(call).toEqual({
      method: 'POST',
      path: '/v1beta/models/gemini-2.5-flash:batchGenerateContent',
      headers: [...HEADERS, 'content-type', 'application/json'],
    })
    expect(JSON.parse(String(body))).toEqual({
      batch: { displayName: 'signalbox_1', inputConfig: { fileName: 'files/abc' } },
    })
  })

  test('looks, results, cancelling and deletion have their paths', () => {
    const base = { headers: HEADERS, body: null }

    expect(batches.read(NAME, KEY)).toEqual({ method: 'GET', path: `/v1beta/${NAME}`, ...base })
    expect(batches.cancel(NAME, KEY)).toEqual({ method: 'POST', path: `/v1beta/${NAME}:cancel`, ...base })
    expect(batches.results('files/out', KEY)).toEqual({
      method: 'GET',
      path: '/download/v1beta/files/out:download?alt=media',
      ...base,
    })
    const paths = (kept: Parameters<NativeBatches['remove']>[0]) =>
      batches.remove(kept, KEY).map(({ method, path }) => `${method} ${path}`)
    expect(paths({ fileId: 'files/in', batchId: NAME, results: ['files/out', `files/${'x'.repeat(41)}`] })).toEqual([
      'DELETE /v1beta/files/in',
      'DELETE /v1beta/files/out',
      `DELETE /v1beta/${NAME}`,
    ])
    expect(paths({ fileId: 'files/in', batchId: undefined, results: [] })).toEqual(['DELETE /v1beta/files/in'])
  })

  test('a prefix and a version of the operator hold for uploads and downloads too', () => {
    const proxied = gemini({ apiKey: KEY, baseURL: 'https://proxy.example/google', apiVersion: 'v1' }).batches!

    expect(proxied.upload?.call('n', KEY).path).toBe('/google/upload/v1/files?uploadType=multipart')
    expect(proxied.results('files/out', KEY).path).toBe('/google/download/v1/files/out:download?alt=media')
    expect(proxied.read(NAME, KEY).path).toBe(`/google/v1/${NAME}`)
  })

  test('only contents go into a batch', () => {
    expect(batches.takes(single)).toBe(true)
    expect(batches.takes(vendor.chat!.toWire(chatCall({}, { stream: true })))).toBe(false)
    expect(batches.takes(vendor.embeddings!.toWire(embeddingsCall({})))).toBe(false)
  })

  test('Vertex AI has no such batches', () => {
    expect(vertex({ apiKey: KEY, project: 'my-project-123', location: 'global' }).batches).toBeUndefined()
  })
})

describe('what Gemini says of batches', () => {
  test.each(FIXTURES.reports)('reads $name as exactly its report', ({ answer, report }) => {
    expect(batches.report(answerWith(answer))).toEqual(report)
    expect(batches.created(answerWith(answer))).toBe(NAME)
  })

  test.each(['', 'null', '[]', '{}', '{"name":"batches/../models"}', '{"name":"operations/1","metadata":{}}'])(
    'takes %j for no batch',
    (text) => {
      expect(batches.created(answerWith(text))).toBeUndefined()
      expect(batches.report(answerWith(text))).toBeUndefined()
    },
  )

  test('reads the id of an uploaded file', () => {
    expect(batches.upload?.uploaded(answerWith({ file: { name: 'files/abc', state: 'ACTIVE' } }))).toBe('files/abc')
    for (const answer of ['', {}, { file: {} }, { file: { name: 'https://elsewhere.example/files/abc' } }])
      expect(batches.upload?.uploaded(answerWith(answer))).toBeUndefined()
  })

  test('finds a batch by its name on any page of the list', () => {
    const entry = (id: string, displayName: string) => ({ name: `batches/${id}`, metadata: { displayName } })
    const read = (list: unknown) => batches.search?.read(answerWith(list), { name: 'mine', sinceMs: 0 })

    expect(batches.search?.call(undefined, KEY).path).toBe('/v1beta/batches?pageSize=100')
    expect(batches.search?.call('a b', KEY).path).toBe('/v1beta/batches?pageSize=100&pageToken=a%20b')
    expect(read({ operations: [entry('1', 'other'), entry('2', 'mine')], nextPageToken: 'p2' })).toEqual({
      batchId: 'batches/2',
    })
    expect(read({ operations: [entry('1', 'other')], nextPageToken: 'p2' })).toEqual({ after: 'p2' })
    expect(read({ operations: [entry('1', 'other')] })).toEqual({})
    expect(read({})).toEqual({})
    for (const list of ['', 'null', { operations: {} }, { operations: [{ metadata: { displayName: 'mine' } }] }])
      expect(read(list)).toBeUndefined()
  })

  test.each(FIXTURES.results)('reads the line %s as exactly its result', (line, result) => {
    expect(batches.result(line)).toEqual(result)
  })

  test.each(['', '{', 'null', '{"key":"r1"}', '{"key":1,"response":{}}', '{"response":{}}'])(
    'takes %j for no result',
    (line) => {
      expect(batches.result(line)).toBeUndefined()
    },
  )

  test('an answer of a batch is read as that of a single call, and an error as an error', () => {
    const bodies = FIXTURES.results.map(([line]) => batches.result(line)).filter((entry) => entry?.kind === 'answered')
    const [answer, , refused, unavailable] = bodies.map(({ status, body }) => ({ ...answerWith(body), status }))

    expect(vendor.chat!.fromWire(answer!, chatCall())).toMatchObject({ usage: { inputTokens: 8, outputTokens: 1 } })
    expect(vendor.errorFrom(refused!, 0)).toMatchObject({ kind: 'caller', message: 'bad part' })
    expect(vendor.errorFrom(unavailable!, 0)).toMatchObject({ kind: 'unavailable' })
  })
})
