import { Buffer } from 'node:buffer'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/core/clock.ts'
import { DASHSCOPE_IMAGES } from '../../../src/testing/sandbox/dashscope/dashscope.ts'
import { faultQueue } from '../../../src/testing/sandbox/fault.ts'
import { PICTURE_FILES, STORAGE_ERRORS } from '../../../src/testing/sandbox/files/stored-files.ts'
import { fileReply, type SandboxOperation } from '../../../src/testing/sandbox/sandbox-operation.ts'
import { playSteps, replyQueue } from '../../../src/testing/sandbox/scripted-reply.ts'
import { answeredCall, type SocketServer, socketServer } from '../../../src/testing/sandbox/transports.ts'
import type { Json } from './support/running-sandbox.ts'

const PATH = '/api/v1/services/aigc/multimodal-generation/generation'
const NOW_MS = Date.UTC(2026, 10, 20)
const IMAGE = { image: 'https://cdn.example.net/1.png' }

/** Bytes that are not text: most of them are not valid UTF-8. */
const EVERY_BYTE = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))
const ECHO: SandboxOperation = {
  vendor: 'files',
  operation: 'echo',
  errors: STORAGE_ERRORS,
  needsJson: false,
  matches: ({ path }) => path === '/echo',
  promptText: (_body, { bytes }) => Buffer.from(bytes).toString('latin1'),
  answer: ({ method, bytes }) => fileReply('application/x-bytes', method === 'GET' ? EVERY_BYTE : bytes),
}

const faults = faultQueue()
let nowMs = NOW_MS
let server: SocketServer

beforeAll(async () => {
  const sources = {
    operations: [DASHSCOPE_IMAGES, PICTURE_FILES, ECHO],
    faults,
    replies: replyQueue(),
    eventDelayMs: 0,
    now: () => nowMs,
  }
  server = await socketServer(0, (incoming, connection) => {
    playSteps(answeredCall(incoming, sources).steps, connection, systemClock)
  })
})
beforeEach(() => {
  faults.clear()
  nowMs = NOW_MS
})
afterAll(() => server.close())

interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly json: Json
}

const KEY = { authorization: 'Bearer sk-test-1234' }

async function post(body: unknown, headers: Record<string, string> = KEY): Promise<Answer> {
  const response = await fetch(server.origin + PATH, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  return { status: response.status, headers: response.headers, json: await response.json() }
}

function body(model: string, content: unknown[] = [{ text: 'A red bridge' }], parameters?: object): object {
  return {
    model,
    input: { messages: [{ role: 'user', content }] },
    ...(parameters === undefined ? {} : { parameters }),
  }
}

const linksOf = (answer: Answer): string[] =>
  answer.json.output.choices[0].message.content.map((block: { image: string }) => block.image)

describe('an image of DashScope', () => {
  test('is a link that looks signed and holds for a day', async () => {
    const answer = await post(body('qwen-image-2.0', undefined, { size: '1664*928' }))

    const [link = ''] = linksOf(answer)
    expect(answer.status).toBe(200)
    expect(answer.json).toEqual({
      request_id: expect.stringMatching(/.+/),
      output: { choices: [{ finish_reason: 'stop', message: { role: 'assistant', content: [{ image: link }] } }] },
      usage: { image_count: 1, width: 1664, height: 928 },
    })
    expect(link).toMatch(/\/sandbox-files\/[0-9a-f]{24}-1664x928\.png\?Expires=\d+&OSSAccessKeyId=sandbox&Signature=.+/)
    expect(new URL(link).origin).toBe(server.origin)
    expect(Number(new URL(link).searchParams.get('Expires'))).toBe(NOW_MS / 1000 + 86_400)
  })

  test('is drawn despite other members next to its messages, because the model decides the kind of a request', async () => {
    const given = body('qwen-image-2.0') as { input: object }
    const answer = await post({ ...given, input: { ...given.input, text: 'a text to speak, for another model' } })

    expect([answer.status, linksOf(answer)]).toEqual([200, [expect.stringContaining('.png')]])
  })

  test('opens without a key, and is a file of the right type and size', async () => {
    const [link = ''] = linksOf(await post(body('qwen-image-max', undefined, { size: '1280*720' })))
    const response = await fetch(link)
    const bytes = Buffer.from(await response.arrayBuffer())

    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'image/png'])
    expect(response.headers.get('content-length')).toBe(String(bytes.length))
    expect(bytes.subarray(1, 4).toString('latin1')).toBe('PNG')
    expect([bytes.readUInt32BE(16), bytes.readUInt32BE(20)]).toEqual([1280, 720])
  })

  test('cannot be opened once its link has run out', async () => {
    const [link = ''] = linksOf(await post(body('qwen-image-max')))
    nowMs += 86_400_000 + 1
    const response = await fetch(link)

    expect(response.status).toBe(403)
    expect(await response.text()).toContain('<Message>Request has expired.</Message>')
  })

  test('is the same for the same request, and another for another', async () => {
    const path = async (words: string) =>
      new URL(linksOf(await post(body('qwen-image-max', [{ text: words }])))[0] ?? '').pathname

    expect(await path('a')).toBe(await path('a'))
    expect(await path('a')).not.toBe(await path('b'))
  })

  test.each<[model: string, content: unknown[], width: number, height: number]>([
    ['qwen-image-2.0', [{ text: 'x' }], 2048, 2048],
    ['qwen-image-2.0-pro', [IMAGE, { text: 'x' }], 1024, 1024],
    ['qwen-image-max', [{ text: 'x' }], 1664, 928],
    ['qwen-image-edit-plus-2025-12-15', [IMAGE, IMAGE, { text: 'x' }], 1024, 1024],
  ])('has the usual size of %s by default', async (model, content, width, height) => {
    expect((await post(body(model, content))).json.usage).toEqual({ image_count: 1, width, height })
  })

  test('can be one of several where the model makes several', async () => {
    const answer = await post(body('qwen-image-edit-max', [IMAGE, { text: 'x' }], { n: 3 }))

    expect(new Set(linksOf(answer)).size).toBe(3)
    expect(answer.json.usage.image_count).toBe(3)
  })
})

describe('DashScope refuses', () => {
  const hi = { text: 'hi' }
  test.each<[what: string, request: object | string, code: string, message: string]>([
    ['no JSON', '{', 'InvalidParameter', 'We could not parse the JSON body of your request.'],
    ['no model', { input: {} }, 'BadRequest.EmptyModel', 'Required parameter "model" missing from request.'],
    ['no messages', { model: 'qwen-image-max', input: {} }, 'InvalidParameter', 'No messages found in input'],
    [
      'two messages',
      { model: 'qwen-image-max', input: { messages: [hi, hi] } },
      'InvalidParameter',
      'messages length only support 1',
    ],
    ['an edit without an image', body('qwen-image-edit'), 'InvalidParameter', 'lack of image or text'],
    ['an image without a text', body('qwen-image-edit', [IMAGE]), 'InvalidParameter', 'lack of image or text'],
    ['two texts', body('qwen-image-edit', [IMAGE, hi, hi]), 'InvalidParameter', 'content length only support 4'],
    [
      'an image for text to image',
      body('qwen-image-max', [IMAGE, hi]),
      'InvalidParameter',
      'content length only support 1',
    ],
    [
      'an image it cannot load',
      body('qwen-image-edit', [{ image: 'x' }, hi]),
      'InvalidParameter',
      'download image failed',
    ],
    [
      'two pictures of max',
      body('qwen-image-max', [hi], { n: 2 }),
      'InvalidParameter',
      'num_images_per_prompt must be 1.',
    ],
    [
      'seven pictures of 2.0',
      body('qwen-image-2.0', [hi], { n: 7 }),
      'InvalidParameter',
      'n must be in [1, 6]: parameters.n',
    ],
    [
      'a size of qwen-image-edit',
      body('qwen-image-edit', [IMAGE, hi], { size: '1024*1024' }),
      'InvalidParameter',
      'size is not supported: parameters.size',
    ],
    [
      'a size that plus lacks',
      body('qwen-image-plus', [hi], { size: '1024*1024' }),
      'InvalidParameter',
      'size is not supported: parameters.size',
    ],
    [
      'a size too large',
      body('qwen-image-2.0', [hi], { size: '4096*4096' }),
      'InvalidParameter',
      'size is not supported: parameters.size',
    ],
    [
      'what its filter dislikes',
      body('qwen-image-max', [{ text: 'x [[fault:blocked]]' }]),
      'DataInspectionFailed',
      'Input data may contain inappropriate content.',
    ],
    [
      'an account in arrears',
      body('qwen-image-max', [{ text: 'x [[fault:quota]]' }]),
      'Arrearage',
      'Access denied, please make sure your account is in good standing.',
    ],
  ])('%s', async (_, request, code, message) => {
    const answer = await post(request)

    expect(answer.status).toBe(400)
    expect(answer.json).toEqual({ code, message, request_id: answer.headers.get('x-request-id') })
  })

  test('a missing key, an unknown model, and a request for a task', async () => {
    const withoutKey = await post(body('qwen-image-max'), {})
    const unknown = await post(body('qwen-picture'))
    const asTask = await post(body('qwen-image-max'), { ...KEY, 'x-dashscope-async': 'enable' })

    expect([withoutKey.status, withoutKey.json.code]).toEqual([401, 'InvalidApiKey'])
    expect([unknown.status, unknown.json.code]).toEqual([404, 'ModelNotFound'])
    expect([asTask.status, asTask.json.code]).toEqual([403, 'AccessDenied'])
  })

  test('public ids of the gateway, so that an untranslated one is noticed', async () => {
    expect((await post(body('qw-image-max'))).status).toBe(404)
  })
})

describe('faults', () => {
  const struck = (mark: string) => post(body('qwen-image-max', [{ text: `x [[fault:${mark}]]` }]))

  test('come in the words of the native API', async () => {
    const limited = await struck('status=429,retry-after=7')
    const disguised = await struck('error-event')
    const reported = await struck('usage=-1')
    const unreported = await struck('no-usage')

    expect([limited.status, limited.json.code, limited.headers.get('retry-after')]).toEqual([
      429,
      'Throttling.RateQuota',
      '7',
    ])
    expect([disguised.status, disguised.json.code, disguised.json.output]).toEqual([200, 'InternalError', undefined])
    expect(reported.json.usage).toEqual({ image_count: -1, width: -1, height: -1 })
    expect(unreported.json).not.toHaveProperty('usage')
  })

  test('strike files too', async () => {
    faults.add({ kind: 'status', status: 404, vendor: 'files', operation: 'picture' })
    const missing = await fetch(`${server.origin}/sandbox-files/seed-64x64.png`)

    expect([missing.status, missing.headers.get('content-type')]).toEqual([404, 'application/xml'])
  })

  test.each(['seed-0x64.png', 'seed-64x99999.png', 'seed-64x64.gif', 'a%2Fb-64x64.png', '-64x64.png'])(
    'no file is called %s',
    async (name) => {
      expect((await fetch(`${server.origin}/sandbox-files/${name}`)).status).toBe(404)
    },
  )
})

describe('an operation that does not speak JSON', () => {
  const url = () => `${server.origin}/echo`
  const bytesOf = async (response: Response) => Buffer.from(await response.arrayBuffer())

  test('answers a fetch with bytes of any type, untouched', async () => {
    const response = await fetch(url())

    expect([response.status, response.headers.get('content-type'), response.headers.get('content-length')]).toEqual([
      200,
      'application/x-bytes',
      '256',
    ])
    expect(await bytesOf(response)).toEqual(EVERY_BYTE)
  })

  test('gets a form as it was sent, with the text that contains its fault marks', async () => {
    const sent = Buffer.from('--b\r\ncontent-disposition: form-data; name="x"\r\n\r\n\u00e9\r\n--b--\r\n', 'latin1')
    const init = { method: 'POST', headers: { 'content-type': 'multipart/form-data; boundary=b' } }

    expect(await bytesOf(await fetch(url(), { ...init, body: sent }))).toEqual(sent)
    expect((await fetch(url(), { ...init, body: '[[fault:status=503]]' })).status).toBe(503)
  })

  test('has its bytes cut and damaged by faults like a text', async () => {
    faults.add({ kind: 'end-early' })
    const half = await bytesOf(await fetch(url()))
    faults.add({ kind: 'cut', bytes: 7 })
    const inPieces = await bytesOf(await fetch(url()))
    faults.add({ kind: 'reset-mid-stream' })

    expect(half).toEqual(EVERY_BYTE.subarray(0, 128))
    expect(inPieces).toEqual(EVERY_BYTE)
    await expect(fetch(url()).then(bytesOf)).rejects.toThrow()
  })
})
