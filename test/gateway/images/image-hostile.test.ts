import { Buffer } from 'node:buffer'
import { connect } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type StartedGateway, startGateway, TEST_KEY } from '../../support/start-gateway.ts'
import { expectNothingSent } from './image-error-shapes.ts'
import { EDITS, editBody, generation, IMAGES, interaction, multimodal, png } from './image-requests.ts'

const BOUNDARY = 'a-boundary'
const MEGABYTE = 1024 * 1024

let started: StartedGateway

beforeEach(async () => {
  started = await startGateway()
})
// Whatever came before, an ordinary request is answered as if nothing had been.
afterEach(async () => {
  const answer = await started.post(IMAGES, multimodal('a paper boat'))
  await answer.arrayBuffer()
  await started.close()
  expect(answer.status).toBe(200)
})

type Piece = string | Uint8Array

const part = (head: string, body: Piece): Piece[] => [`--${BOUNDARY}\r\n${head}\r\n\r\n`, body, '\r\n']
const field = (name: string, value: string): Piece[] => part(`content-disposition: form-data; name="${name}"`, value)
const file = (name: string, bytes: Uint8Array, extra = ''): Piece[] =>
  part(`content-disposition: form-data; name="${name}"; filename="a.png"\r\ncontent-type: image/png${extra}`, bytes)
const bytesOf = (pieces: readonly Piece[]): Buffer<ArrayBuffer> =>
  Buffer.concat(pieces.map((piece) => Buffer.from(piece as string)))

/** A proper edit with these parts added. */
function form(added: readonly Piece[] = []): Buffer<ArrayBuffer> {
  const usual = [...field('model', 'gp-image-2'), ...field('prompt', 'more light'), ...field('quality', 'low')]
  return bytesOf([...usual, ...file('image', png(16)), ...added, `--${BOUNDARY}--\r\n`])
}

function post(body: Buffer<ArrayBuffer>, contentType = `multipart/form-data; boundary=${BOUNDARY}`): Promise<Response> {
  return fetch(`${started.url}${EDITS}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TEST_KEY}`, 'content-type': contentType },
    body,
  })
}

/** A PNG that says it is as large as its format allows. */
function hugePng(): Uint8Array<ArrayBuffer> {
  const bytes = png(16)
  new DataView(bytes.buffer).setUint32(16, 0xffffffff)
  new DataView(bytes.buffer).setUint32(20, 0xffffffff)
  return bytes
}

const MANY = (count: number): Piece[] => Array.from({ length: count }, (_, index) => field(`f${index}`, 'x')).flat()
const LONG = 'x'.repeat(200 * 1024)
const FOLDED = `\r\nx-long: ${'\r\n y'.repeat(60_000)}`

describe('forms that are made to hurt are refused with 400 and cost nothing', () => {
  const cases: readonly (readonly [string, () => Buffer<ArrayBuffer>, RegExp, string | null])[] = [
    ['50,000 fields', () => form(MANY(50_000)), /more than \d+ (fields|parts)/, null],
    ['101 fields', () => form(MANY(101)), /more than 100 fields/, null],
    [
      '21 files',
      () => form(Array.from({ length: 21 }, () => file('other', png(16))).flat()),
      /more than 20 files/,
      null,
    ],
    [
      'a field of more than four megabytes',
      () => form(field('note', 'x'.repeat(4 * MEGABYTE + 1))),
      /more than 4194304 bytes/,
      'note',
    ],
    ['200 kB of headers in one line', () => form(file('image[]', png(16), `\r\nx-long: ${LONG}`)), /headers/, null],
    ['240 kB of headers in folded lines', () => form(file('image[]', png(16), FOLDED)), /headers/, null],
    ['a name of 200 kB', () => form(field(LONG.slice(0, 8000), 'x')), /name of more than 200 bytes/, null],
    [
      'a picture of 4,294,967,295 pixels squared',
      () => form(file('image[]', hugePng())),
      /claims to have 4294967295x4294967295/,
      'image[1]',
    ],
    ['a mask of the same size', () => form(file('mask', hugePng())), /PNG image/, 'mask'],
    ['a model given twice', () => form(field('model', 'gp-image-1')), /more than once/, 'model'],
    ['a prompt that is a file', () => form(file('prompt', png(16))), /not a file/, 'prompt'],
    ['a picture that is text', () => form(field('image', 'aGVsbG8=')), /must be a file/, 'image'],
    ['nothing at all', () => Buffer.alloc(0), /closing boundary/, null],
  ]

  test.each(cases)('%s', async (_name, body, message, param) => {
    const answer = await post(body())
    const { error } = (await answer.json()) as { error: { message: string; param: string | null } }

    expect(answer.status).toBe(400)
    expect(error.message).toMatch(message)
    expect(error.message.length).toBeLessThan(500)
    expect(error.param).toBe(param)
    await expectNothingSent(started)
  })

  test('a form that is cut anywhere', async () => {
    const whole = form()
    const lengths = Array.from({ length: 40 }, (_, index) => Math.floor((whole.byteLength * index) / 40))
    const statuses: number[] = []
    for (const length of [...lengths, whole.byteLength - 5]) {
      const answer = await post(whole.subarray(0, length))
      await answer.arrayBuffer()
      statuses.push(answer.status)
    }

    expect(new Set(statuses)).toEqual(new Set([400]))
    await expectNothingSent(started)
  })

  test.each([
    'multipart/form-data',
    'multipart/form-data; boundary=',
    `multipart/form-data; boundary=${'b'.repeat(71)}`,
    'multipart/form-data; boundary="a\\"b"',
    'multipart/form-data; boundary=other',
  ])('a Content-Type of %s', async (contentType) => {
    const answer = await post(form(), contentType)

    expect(answer.status).toBe(400)
    expect((await answer.json()).error.type).toBe('invalid_request_error')
    await expectNothingSent(started)
  })
})

describe('names from the prototype', () => {
  const NAMES = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', '__proto__[polluted]'] as const

  test.each(NAMES)('%s as the name of a field or file is a name like any other', async (name) => {
    const answer = await post(form([...field(name, 'polluted'), ...file(name, png(16))]))
    await answer.arrayBuffer()

    expect(answer.status).toBe(200)
    expect(Buffer.from(started.sandbox.requests[0]?.bytes ?? []).toString('latin1')).toContain(`name="${name}"`)
    expect(Object.prototype).not.toHaveProperty('polluted')
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
  })

  test.each(NAMES.flatMap((name) => [[IMAGES, name] as const, [EDITS, name] as const]))(
    'on %s there is no model %s',
    async (path, name) => {
      const answer = await started.post(path, { ...editBody('x'), model: name })
      await answer.arrayBuffer()

      expect(answer.status).toBe(path === IMAGES ? 400 : 404)
      expect(started.sandbox.requests).toEqual([])
    },
  )

  test.each<[string, string, object]>([
    ['multimodal', IMAGES, multimodal('a boat')],
    ['interactions', IMAGES, interaction('a mug')],
    ['generations', IMAGES, generation('a boat')],
    ['edits', EDITS, editBody('more light')],
  ])('members of those names in a body of the shape %s change nothing', async (_name, path, body) => {
    const text = JSON.stringify(body).replace(
      '{',
      '{"__proto__":{"n":7,"stream":true},"constructor":{"prototype":{"n":7}},',
    )
    const answer = await fetch(`${started.url}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${TEST_KEY}`, 'content-type': 'application/json' },
      body: text,
    })
    await answer.arrayBuffer()

    expect([200, 400]).toContain(answer.status)
    expect(answer.headers.get('content-type')).not.toContain('event-stream')
    expect(({} as Record<string, unknown>)['n']).toBeUndefined()
  })
})

describe('on the wire', () => {
  interface Sent {
    readonly head: readonly string[]
    readonly pieces: readonly Piece[]
    /** Close our side when everything is written. */
    readonly closes?: boolean
  }

  /** Writes to a bare socket, piece by piece, and gives what came back until the other side closed. */
  function exchange({ head, pieces, closes = false }: Sent): Promise<string> {
    const { hostname, port } = new URL(started.url)
    return new Promise((resolve) => {
      const socket = connect(Number(port), hostname)
      let text = ''
      socket.on('data', (chunk) => {
        text += chunk.toString('latin1')
      })
      socket.on('error', () => undefined)
      socket.on('close', () => resolve(text))
      const lines = [
        `POST ${EDITS} HTTP/1.1`,
        `host: ${hostname}`,
        `authorization: Bearer ${TEST_KEY}`,
        'connection: close',
        ...head,
      ]
      socket.write(`${lines.join('\r\n')}\r\n\r\n`)
      for (const piece of pieces) socket.write(piece)
      if (closes) socket.end()
    })
  }

  const FORM_TYPE = `content-type: multipart/form-data; boundary=${BOUNDARY}`
  const chunked = (bytes: Uint8Array): Piece[] => [`${bytes.byteLength.toString(16)}\r\n`, bytes, '\r\n']

  test('a Content-Length that promises more than comes ends with the connection, and nothing is sent', async () => {
    const body = form()
    const text = await exchange({
      head: [FORM_TYPE, `content-length: ${body.byteLength + 100}`],
      pieces: [body],
      closes: true,
    })

    expect(text).not.toContain('200 OK')
    await expectNothingSent(started)
  })

  test('cuts the form at a Content-Length that is too small, and does not read the rest as a request', async () => {
    const body = form()
    const text = await exchange({ head: [FORM_TYPE, `content-length: ${body.byteLength - 40}`], pieces: [body] })

    expect(text).toMatch(/^HTTP\/1\.1 400 /)
    expect(text).not.toContain('200 OK')
    await expectNothingSent(started)
  })

  test('two lengths that differ are refused by the server itself', async () => {
    const text = await exchange({
      head: [FORM_TYPE, 'content-length: 10', 'transfer-encoding: chunked'],
      pieces: ['0\r\n\r\n'],
    })

    expect(text).toMatch(/^HTTP\/1\.1 400 /)
    await expectNothingSent(started)
  })

  test('a chunked form arrives whole, however it is cut', async () => {
    const body = form()
    const pieces = Array.from(body, (_, index) => chunked(body.subarray(index, index + 1))).flat()
    const text = await exchange({
      head: [FORM_TYPE, 'transfer-encoding: chunked'],
      pieces: [bytesOf(pieces), '0\r\n\r\n'],
    })

    expect(text).toMatch(/^HTTP\/1\.1 200 /)
    expect(started.sandbox.requests).toHaveLength(1)
  })

  test('answers a chunked body with 413 as soon as it exceeds the limit', async () => {
    const block = chunked(Buffer.alloc(MEGABYTE, 'x'))
    const text = await exchange({
      head: [FORM_TYPE, 'transfer-encoding: chunked'],
      pieces: [...Array.from({ length: 33 }, () => block).flat()],
    })

    expect(text).toMatch(/^HTTP\/1\.1 413 /)
    expect(text).toContain('"code":"body_too_large"')
    expect(started.sandbox.requests).toEqual([])
  })

  test('ends the connection if chunk sizes are not numbers', async () => {
    const text = await exchange({ head: [FORM_TYPE, 'transfer-encoding: chunked'], pieces: ['zz\r\nx\r\n'] })

    expect(text).not.toContain('200 OK')
    expect(started.sandbox.requests).toEqual([])
  })
})
