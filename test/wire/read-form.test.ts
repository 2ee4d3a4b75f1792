import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { GatewayError } from '../../src/core/errors.ts'
import { type FormLimits, readForm } from '../../src/wire/form.ts'
import type { Form } from '../../src/wire/write-form.ts'
import { BOUNDARY, cut, FORM_TYPE, field, file, type WrittenPart, writeForm } from './support/write-form.ts'

const read = (parts: readonly WrittenPart[], limits?: Partial<FormLimits>): Promise<Form> =>
  readForm(FORM_TYPE, [writeForm(parts)], limits)

/** The one part of a form of one part. */
async function readOne(headers: string, content: string | Uint8Array = 'x'): Promise<Form[number] | undefined> {
  return (await read([[headers, content]]))[0]
}

async function fault(reading: Promise<unknown>): Promise<{ code: string; status: number; message: string }> {
  const error = await reading.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!GatewayError.isInstance(error)) throw new Error('the form was read', { cause: error })
  return { code: error.code, status: error.status, message: error.message }
}

const refused = (text: RegExp) => ({ code: 'invalid_request', status: 400, message: expect.stringMatching(text) })
const contentOf = (part: Form[number] | undefined): Buffer | undefined =>
  part?.kind === 'file' ? Buffer.concat(part.chunks) : undefined

describe('a form', () => {
  test('keeps the order, names, file names and types of its parts', async () => {
    const form = await read([
      [field('model'), 'gpt-image-1'],
      [file('image[]', 'one.png'), 'first'],
      [field('prompt'), 'a cat\nwith a hat 🎩'],
      [file('image[]', 'two.webp', 'Image/WebP; q=1'), 'second'],
      [field('x-unknown'), ''],
    ])

    expect(form).toEqual([
      { kind: 'field', name: 'model', value: 'gpt-image-1' },
      expect.objectContaining({ kind: 'file', name: 'image[]', filename: 'one.png', contentType: 'image/png' }),
      { kind: 'field', name: 'prompt', value: 'a cat\nwith a hat 🎩' },
      expect.objectContaining({ kind: 'file', name: 'image[]', filename: 'two.webp', contentType: 'Image/WebP; q=1' }),
      { kind: 'field', name: 'x-unknown', value: '' },
    ])
    expect([contentOf(form[1]), contentOf(form[3])].map(String)).toEqual(['first', 'second'])
  })

  test('may use any name, and repeat it', async () => {
    const names = ['__proto__', 'constructor', '__proto__', 'toString', 'prompt', 'prompt']
    const form = await read(names.map((name) => [field(name), 'x']))

    expect(form.map((part) => part.name)).toEqual(names)
    expect(({} as Record<string, unknown>)['x']).toBeUndefined()
  })

  test('without parts is empty', async () => {
    expect(await read([])).toEqual([])
  })

  test('may have text before its first and after its last boundary', async () => {
    const body = Buffer.concat([Buffer.from('before\r\n'), writeForm([[field('a'), 'b']]), Buffer.from('after')])

    expect(await readForm(FORM_TYPE, [body])).toEqual([{ kind: 'field', name: 'a', value: 'b' }])
  })

  test('may be followed by much more than itself', async () => {
    const body = Buffer.concat([
      writeForm([
        [field('a'), 'b'],
        [file('i', 'a.png'), 'x'],
      ]),
      Buffer.alloc(3_000_000, '\r\n--'),
    ])

    expect(await readForm(FORM_TYPE, [body])).toHaveLength(2)
    expect(await readForm(FORM_TYPE, cut(body, 10_000))).toHaveLength(2)
  })

  test('has the same parts however its body is cut, and its files are views of the body', async () => {
    const content = Buffer.from(`\r\n--${BOUNDARY.slice(0, 6)}\r\n\r\n--x\r`.repeat(20))
    const body = writeForm([
      [file('image', 'a.png'), content],
      [field('prompt'), 'ünï'],
    ])
    for (const size of [1, 2, 3, 7, 16, 64, body.length]) {
      const form = await readForm(FORM_TYPE, cut(body, size))

      expect(contentOf(form[0])).toEqual(content)
      expect(form[0]).toMatchObject({ byteLength: content.length })
      expect(form[1]).toEqual({ kind: 'field', name: 'prompt', value: 'ünï' })
    }
  })

  test('returns its files without copying them if it arrives in one chunk', async () => {
    const body = writeForm([[file('image', 'a.png'), Buffer.alloc(2_000_000, 7)]])
    const part = (await readForm(FORM_TYPE, [body]))[0]

    expect(part).toMatchObject({ kind: 'file', byteLength: 2_000_000 })
    if (part?.kind !== 'file') throw new Error('no file')
    expect(part.chunks.every((chunk) => chunk.buffer === body.buffer)).toBe(true)
  })

  test('yields turns of the event loop if it is long', async () => {
    let turns = 0
    let isReading = true
    const count = (): void => {
      turns++
      if (isReading) setImmediate(count)
    }
    setImmediate(count)
    await read([[file('image', 'a.png'), Buffer.alloc(16 * 1024 * 1024)]])
    isReading = false

    expect(turns).toBeGreaterThan(14)
  })

  test('takes plain byte arrays, as web requests give them', async () => {
    const form = await readForm(FORM_TYPE, [new Uint8Array(writeForm([[file('image', 'a.png'), 'abc']]))])

    expect(contentOf(form[0])).toEqual(Buffer.from('abc'))
  })

  test('is not mixed up with forms of other clients', async () => {
    const forms = await Promise.all(Array.from({ length: 20 }, (_, index) => read([[field('n'), String(index)]])))

    expect(forms.map((form) => form[0])).toEqual(
      Array.from({ length: 20 }, (_, index) => ({ kind: 'field', name: 'n', value: String(index) })),
    )
  })
})

describe('the head of a part', () => {
  test.each([
    ['a file name in UTF-8', file('image', 'größe 猫.png'), { filename: 'größe 猫.png' }],
    ['an empty file name', file('image', ''), { kind: 'file', filename: '' }],
    ['escapes as browsers write them', file('a%22b', 'x%0D%0Ay%22.png'), { name: 'a"b', filename: 'x\r\ny".png' }],
    ['quotes as curl and Go write them', file('image', 'a\\"b; c.png'), { filename: 'a"b; c.png' }],
    ['a name that ends with a backslash', file('image\\', 'C:\\new\\'), { name: 'image\\', filename: 'new' }],
    ['a path', file('image', '/home/someone/private/a.png'), { filename: 'a.png' }],
    ['a path out of its folder', file('image', '../../etc/passwd'), { filename: 'passwd' }],
    ['a path of Windows', file('image', 'C:\\Users\\someone\\a b.png'), { filename: 'a b.png' }],
    ['a path that names no file', file('image', '../..'), { kind: 'file', filename: '' }],
    ['an RFC 5987 path', `${field('i')}; filename*=UTF-8''a%2F%C3%A4.png`, { filename: 'ä.png' }],
    ['names without quotes', 'Content-Disposition: form-data; name=image; filename=a.png', { filename: 'a.png' }],
    [
      'an RFC 5987 file name, before the plain one',
      `${field('image')}; filename="x.png"; filename*=UTF-8''gr%C3%B6%C3%9Fe.png`,
      { filename: 'größe.png' },
    ],
    ['an RFC 5987 file name in Latin 1', `${field('i')}; filename*=iso-8859-1'de'%E4.png`, { filename: 'ä.png' }],
    ['no type', `${field('image')}; filename="a.png"`, { contentType: 'application/octet-stream' }],
    ['no file name, but the type of a picture', `${field('image')}\r\nContent-Type: image/png`, { filename: '' }],
    [
      'no file name, but the type of bytes',
      `${field('a')}\r\nContent-Type: application/octet-stream`,
      { filename: '' },
    ],
    ['no file name and the type of text', `${field('a')}\r\nContent-Type: text/plain; charset=utf-8`, { value: 'x' }],
    ['no file name and the type of JSON', `${field('a')}\r\nContent-Type: application/json`, { value: 'x' }],
    ['headers in other letters', 'CONTENT-DISPOSITION: Form-Data; NAME="a"', { value: 'x' }],
    ['a folded header', 'Content-Disposition: form-data;\r\n name="a"', { name: 'a', value: 'x' }],
    ['a plain transfer encoding', `${field('a')}\r\nContent-Transfer-Encoding: Binary`, { value: 'x' }],
    ['headers nobody asked for', `${field('a')}\r\nContent-Length: 1\r\nX-Own: é`, { value: 'x' }],
  ])('may have %s', async (_title, headers, expected) => {
    expect(await readOne(headers)).toMatchObject(expected)
  })

  test.each([
    ['no Content-Disposition', 'Content-Type: text/plain', /Content-Disposition/],
    ['another disposition', 'Content-Disposition: attachment; name="a"', /Content-Disposition/],
    ['no name', 'Content-Disposition: form-data', /Content-Disposition/],
    ['two names', 'Content-Disposition: form-data; name="a"; name="b"', /Content-Disposition/],
    ['two dispositions', `${field('a')}\r\n${field('b')}`, /Content-Disposition/],
    ['an open quote', 'Content-Disposition: form-data; name="a', /Content-Disposition/],
    ['no header at all', '', /Content-Disposition/],
    ['an encoding of its content', `${field('a')}\r\nContent-Transfer-Encoding: base64`, /Content-Transfer-Encoding/],
    ['a broken RFC 5987 file name', `${field('a')}; filename*=UTF-8''%C`, /RFC 5987/],
    ['an RFC 5987 file name in no charset', `${field('a')}; filename*=nothing''a`, /charset/],
    ['control characters in its type', `${file('a', 'b', 'image/png\0')}`, /control characters/],
    ['an unknown charset', `${field('a')}\r\nContent-Type: text/plain; charset=nothing`, /charset/],
  ])('is refused with %s', async (_title, headers, text) => {
    expect(await fault(readOne(headers))).toEqual(refused(text))
  })

  test('is rejected if it is not UTF-8', async () => {
    const body = Buffer.from(writeForm([[field('a\xff'), 'x']]).toString('utf8'), 'latin1')

    expect(await fault(readForm(FORM_TYPE, [body]))).toEqual(refused(/UTF-8/))
  })
})

describe('the content of a part', () => {
  test("is read in the charset of the field's type", async () => {
    const headers = `${field('a')}\r\nContent-Type: text/plain; charset=iso-8859-1`

    expect(await readOne(headers, Buffer.from('\xe4', 'latin1'))).toMatchObject({ value: 'ä' })
  })

  test('is rejected in a field if it is not text', async () => {
    expect(await fault(readOne(field('a'), Buffer.from([0x61, 0xff])))).toEqual(refused(/UTF-8/))
  })

  test('may be empty in a file', async () => {
    expect(await readOne(file('image', 'a.png'), '')).toMatchObject({ kind: 'file', chunks: [], byteLength: 0 })
  })

  test('may be many times its boundary but for one letter, in linear time', async () => {
    const content = Buffer.from(`\r\n--${BOUNDARY.slice(0, -1)}`.repeat(200_000))
    const form = await readForm(FORM_TYPE, cut(writeForm([[file('image', 'a.png'), content]]), 65_536))

    expect(contentOf(form[0])?.equals(content)).toBe(true)
  })
})

describe('a form is refused', () => {
  const whole = writeForm([
    [field('a'), 'b'],
    [file('image', 'a.png'), 'content'],
    [field('c'), 'd'],
  ])

  test('wherever it is cut short', async () => {
    // Without the line break after the closing boundary it is whole.
    for (let length = 0; length < whole.length - 2; length++) {
      expect(await fault(readForm(FORM_TYPE, [whole.subarray(0, length)])), `cut at ${length}`).toEqual(refused(/form/))
    }
    expect(await readForm(FORM_TYPE, [whole.subarray(0, -2)])).toHaveLength(3)
  })

  test.each([
    ['multipart/form-data'],
    ['multipart/form-data; boundary='],
    ['multipart/form-data; boundary=""'],
    [`multipart/form-data; boundary=${'a'.repeat(71)}`],
    ['multipart/form-data; boundary="a\r\nb"'],
    ['multipart/form-data; boundary=a; boundary=b'],
    ['multipart/mixed; boundary=a-boundary'],
    ['application/json'],
    [''],
  ])('when its type is %j', async (contentType) => {
    expect(await fault(readForm(contentType, [whole]))).toEqual(refused(/Content-Type/))
  })

  test('when its boundary is another', async () => {
    expect(await fault(readForm('multipart/form-data; boundary=other', [whole]))).toEqual(refused(/ends before/))
  })

  test('when its headers do not end', async () => {
    const body = Buffer.from(`--${BOUNDARY}\r\n${field('a')}\r\n--${BOUNDARY}--\r\n`)

    expect(await fault(readForm(FORM_TYPE, [body]))).toEqual(refused(/headers/))
  })
})

describe('a limit', () => {
  const fields = (count: number): WrittenPart[] =>
    Array.from({ length: count }, (_, index) => [field(`f${index}`), 'x'])
  const files = (count: number): WrittenPart[] => Array.from({ length: count }, () => [file('image', 'a.png'), 'x'])
  const lines = (count: number): string =>
    [field('a'), ...Array.from({ length: count }, (_, index) => `X-${index}: y`)].join('\r\n')

  test('lets a form through that just keeps it', async () => {
    expect(await read(fields(100))).toHaveLength(100)
    expect(await read(files(20))).toHaveLength(20)
    expect(await read(fields(3), { parts: 3, fieldBytes: 1, nameBytes: 2 })).toHaveLength(3)
    expect(await readOne(field('n'.repeat(200)), 'x'.repeat(4_194_304))).toMatchObject({ kind: 'field' })
    expect(await readOne(`${field('a')}\r\nX: ${'y'.repeat(16_000)}`)).toMatchObject({ kind: 'field' })
  })

  test.each<[string, WrittenPart[], Partial<FormLimits>, RegExp]>([
    ['fields', fields(101), {}, /more than 100 fields/],
    ['fields, by far', fields(50_000), {}, /more than 100 fields/],
    ['files', files(21), {}, /more than 20 files/],
    ['parts', [...fields(2), ...files(2)], { parts: 3 }, /more than 3 parts/],
    ['parts, by far', fields(50_000), { fields: 100_000 }, /more than 200 parts/],
    ['bytes of a field', [[field('a'), 'x'.repeat(4_194_305)]], {}, /more than 4194304 bytes/],
    ['bytes of a name', [[field('ü'.repeat(101)), 'x']], {}, /more than 200 bytes/],
    ['bytes of one header', [[`${field('a')}\r\nX: ${'y'.repeat(200_000)}`, 'x']], {}, /16384 bytes/],
    ['bytes of many headers', [[lines(10_000), 'x']], {}, /16384 bytes/],
    ['bytes of a folded header', [[`${field('a')}\r\nX: y${'\r\n y'.repeat(60_000)}`, 'x']], {}, /16384 bytes/],
    ['lines of headers', [[lines(63), 'x']], {}, /63 lines/],
  ])('throws an error for %s, and cuts nothing', async (_title, parts, limits, text) => {
    for (const size of [Number.MAX_SAFE_INTEGER, 1000]) {
      const body = writeForm(parts)
      expect(await fault(readForm(FORM_TYPE, cut(body, Math.min(size, body.length)), limits))).toEqual(refused(text))
    }
  })

  test('stops the reading: what comes after it is not looked at', async () => {
    let looked = 0
    const chunk = writeForm(fields(101))
    const chunks = {
      *[Symbol.iterator]() {
        for (; looked < 1_000; looked++) yield chunk
      },
    }

    expect(await fault(readForm(FORM_TYPE, chunks as Iterable<Buffer> as readonly Buffer[]))).toMatchObject({
      status: 400,
    })
    expect(looked).toBe(0)
  })
})

test('bytes of any kind are read or refused, and nothing is left running', async () => {
  const pieces = fc.constantFrom(
    `--${BOUNDARY}`,
    '\r\n',
    '--',
    '\r',
    field('a'),
    file('b', 'c'),
    'Content-Type: image/png',
    ': ;="\\%22',
    '\r\n\r\n',
    'é',
    '\0',
  )
  await fc.assert(
    fc.asyncProperty(fc.array(pieces, { maxLength: 30 }), fc.integer({ min: 1, max: 40 }), async (texts, size) => {
      const body = Buffer.from(texts.join(''))
      const outcome = await readForm(FORM_TYPE, cut(body, size)).catch((error: unknown) => error)

      expect(Array.isArray(outcome) || (GatewayError.isInstance(outcome) && outcome.code === 'invalid_request')).toBe(
        true,
      )
    }),
    { numRuns: 500 },
  )
})
