import { Anthropic as Anthropic1, toFile } from '@anthropic-ai/sdk'
import { Anthropic as Anthropic0 } from 'anthropic0'
import OpenAI from 'openai'
import { afterEach, describe, expect, test } from 'vitest'
import { fakeClock } from '../../src/testing/index.ts'
import { type StartedGateway, startGateway, TEST_KEY } from '../support/start-gateway.ts'

// Private members keep the two versions' types apart, though every call made here is the same.
const VERSIONS = [
  ['@anthropic-ai/sdk 0.137', Anthropic0 as unknown as typeof Anthropic1],
  ['@anthropic-ai/sdk 1', Anthropic1],
] as const

const open: StartedGateway[] = []
afterEach(async () => {
  for (const started of open.splice(0)) await started.close()
})

async function start(Anthropic: typeof Anthropic1 = Anthropic1) {
  const clock = fakeClock()
  const started = await startGateway({ batches: {}, clock })
  open.push(started)
  const files = new Anthropic({ apiKey: TEST_KEY, baseURL: started.url, maxRetries: 0 }).beta.files
  return { ...started, clock, files }
}

const bytesOf = (text: string, name = 'notes.txt', type = 'text/plain') => toFile(Buffer.from(text), name, { type })

describe.each(VERSIONS)('%s', (_name, Anthropic) => {
  test('uploads a file and reads its metadata in the shape of the SDK', async () => {
    const { files, clock } = await start(Anthropic)

    const file = await files.upload({ file: await bytesOf('hello', 'notes ü.txt') })

    expect(file).toEqual({
      id: expect.stringMatching(/^file_/),
      type: 'file',
      filename: 'notes ü.txt',
      mime_type: 'text/plain',
      size_bytes: 5,
      created_at: new Date(clock.now()).toISOString(),
      expires_at: new Date(clock.now() + 30 * 86_400_000).toISOString(),
      downloadable: true,
    })
    expect(await files.retrieveMetadata(file.id)).toEqual(file)
  })

  test('downloads the bytes of a file with its type', async () => {
    const { files } = await start(Anthropic)
    const { id } = await files.upload({ file: await bytesOf('%PDF-', 'paper.pdf', 'application/pdf') })

    const response = await files.download(id)

    expect([response.headers.get('content-type'), await response.text()]).toEqual(['application/pdf', '%PDF-'])
    expect(response.headers.get('content-disposition')).toBe('attachment')
  })

  test('iterates over several pages of files, newest first', async () => {
    const { files, clock } = await start(Anthropic)
    const ids: string[] = []
    for (const text of ['1', '2', '3', '4', '5']) {
      clock.advance(1_000)
      ids.unshift((await files.upload({ file: await bytesOf(text) })).id)
    }

    const listed: string[] = []
    for await (const { id } of files.list({ limit: 2 })) listed.push(id)

    expect(listed).toEqual(ids)
    expect((await files.list()).hasNextPage()).toBe(false)
  })

  test('deletes a file, and gets NotFoundError for it afterwards', async () => {
    const { files } = await start(Anthropic)
    const { id } = await files.upload({ file: await bytesOf('hello') })

    expect(await files.delete(id)).toEqual({ id, type: 'file_deleted' })

    for (const call of [files.retrieveMetadata(id), files.download(id), files.delete(id)])
      await expect(call).rejects.toBeInstanceOf(Anthropic.NotFoundError)
    await expect(files.retrieveMetadata(id)).rejects.toMatchObject({
      status: 404,
      requestID: expect.stringMatching(/^req_/),
      error: { type: 'error', error: { type: 'not_found_error' } },
    })
  })
})

describe("files in Anthropic's shape", () => {
  test('lists only the given ids, in one page, and leaves out unknown ones', async () => {
    const { files } = await start()
    const first = await files.upload({ file: await bytesOf('1') })
    await files.upload({ file: await bytesOf('2') })

    const page = await files.list({ ids: [first.id, 'file_unknown', first.id] })

    expect([page.data, page.hasNextPage()]).toEqual([[first], false])
  })

  test('rejects a list that has both ids and a cursor, and more than 100 ids', async () => {
    const { files } = await start()
    const many = Array.from({ length: 101 }, (_, index) => `file_${index}`)

    await expect(files.list({ ids: ['file_1'], limit: 1 })).rejects.toMatchObject({ status: 400 })
    await expect(files.list({ ids: many })).rejects.toMatchObject({ status: 400 })
  })

  test('lists no file of a session, because files have no scope', async () => {
    const { files } = await start()
    await files.upload({ file: await bytesOf('1') })

    expect((await files.list({ scope_id: 'session_1' })).data).toEqual([])
  })

  test('lists the page before a file with before_id', async () => {
    const { files, clock, url } = await start()
    const ids: string[] = []
    for (const text of ['1', '2', '3', '4']) {
      clock.advance(1_000)
      ids.unshift((await files.upload({ file: await bytesOf(text) })).id)
    }
    const headers = { 'x-api-key': TEST_KEY, 'anthropic-version': '2023-06-01' }

    const response = await fetch(`${url}/v1/files?before_id=${ids[3]}&limit=2`, { headers })

    expect(response.headers.get('request-id')).toBe(response.headers.get('x-request-id'))
    expect(await response.json()).toMatchObject({
      data: [{ id: ids[1] }, { id: ids[2] }],
      has_more: true,
      first_id: ids[1],
      last_id: ids[2],
    })
  })

  test.each([
    ['', '3599', 400],
    ['', '7776001', 400],
    ['', '3600', 200],
    ['vision', '3600', 400],
  ])('checks the purpose %j and the lifetime of %s seconds of an upload', async (purpose, seconds, status) => {
    const { url } = await start()
    const form = new FormData()
    if (purpose !== '') form.set('purpose', purpose)
    form.set('expires_in_seconds', seconds)
    form.set('file', new Blob(['1']), 'notes.txt')
    const headers = { 'x-api-key': TEST_KEY, 'anthropic-version': '2023-06-01' }

    const response = await fetch(`${url}/v1/files`, { method: 'POST', headers, body: form })

    const answer = (await response.json()) as { created_at: string; expires_at: string }
    expect(response.status).toBe(status)
    if (status === 200) expect(Date.parse(answer.expires_at) - Date.parse(answer.created_at)).toBe(3_600_000)
  })

  test.each([
    ['requests.jsonl', '', 'application/jsonl'],
    ['notes', '', 'application/octet-stream'],
    ['requests.jsonl', 'text/plain;charset=utf-8', 'text/plain'],
    ['notes', 'no media type', 'application/octet-stream'],
  ])('stores the type of %s sent as %j: %s', async (name, type, expected) => {
    const { url } = await start()
    const body = `--b\r\ncontent-disposition: form-data; name="file"; filename="${name}"\r\n${
      type === '' ? '' : `content-type: ${type}\r\n`
    }\r\nx\r\n--b--\r\n`
    const headers = {
      'x-api-key': TEST_KEY,
      'anthropic-version': '2023-06-01',
      'content-type': 'multipart/form-data; boundary=b',
    }

    const response = await fetch(`${url}/v1/files`, { method: 'POST', headers, body })

    expect(await response.json()).toMatchObject({ mime_type: expected })
  })

  test("shows a batch's files to both clients, each in the client's own shape", async () => {
    const { files, url } = await start()
    const client = new OpenAI({ apiKey: TEST_KEY, baseURL: `${url}/v1`, maxRetries: 0 })
    const uploaded = await files.upload({ file: await bytesOf('{}', 'requests.jsonl', 'application/jsonl') })

    expect(await client.files.retrieve(uploaded.id)).toMatchObject({ object: 'file', bytes: 2, purpose: 'batch' })
    const { id } = await client.files.create({ file: await bytesOf('{}', 'more.jsonl', ''), purpose: 'batch' })
    expect(await files.retrieveMetadata(id)).toMatchObject({ type: 'file', mime_type: 'application/jsonl' })
  })
})
