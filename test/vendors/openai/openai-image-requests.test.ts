import { Buffer } from 'node:buffer'
import { describe, expect, it } from 'vitest'
import type { ImageEditRequest } from '../../../src/endpoints/image-edits/image-edit-request.ts'
import type { OpenAIImageRequest } from '../../../src/endpoints/images/openai/openai-image-request.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import { readForm } from '../../../src/wire/form.ts'
import type { FormFile } from '../../../src/wire/write-form.ts'
import { bodyBytes, formCall, jsonCall } from './openai-image-calls.ts'

const vendor = openai({ apiKey: 'sk-test-0123456789abcdef' })
const images = vendor.images!['generations']!
const edits = vendor.imageEdits!

const sent = (text: string) => {
  const wire = images.toWire(jsonCall<OpenAIImageRequest>(text))
  return { text: bodyBytes(wire.body).toString('utf8'), dropped: wire.dropped }
}

describe('text to image at OpenAI', () => {
  it('is posted with the key, and with the stream accepted that was asked for', () => {
    const whole = images.toWire(jsonCall<OpenAIImageRequest>('{"model":"gp-image-2","prompt":"a"}'))
    const streamed = images.toWire(jsonCall<OpenAIImageRequest>('{"model":"gp-image-2","prompt":"a","stream":true}'))

    expect(whole.path).toBe('/v1/images/generations')
    expect(whole.headers).toEqual([
      'content-type',
      'application/json',
      'accept',
      'application/json',
      'accept-encoding',
      'identity',
      'authorization',
      'Bearer test-key-0123456789',
    ])
    expect(streamed.headers).toContain('text/event-stream')
  })

  it('sends the bytes of the caller with only the model replaced', () => {
    const text =
      '{ "prompt":"a \\u00e9 \\"model\\"" ,"size" : "1536x864","n":1.0, "model":"gp-image-2","odd":{"model":"x"} }\n'

    expect(sent(text)).toEqual({ text: text.replace('"gp-image-2"', '"gpt-image-2"'), dropped: [] })
  })

  it.each<[string, string, string, string[]]>([
    ['hd becomes high', '"quality":"hd","n":2', '"quality":"high","n":2', []],
    ['standard becomes medium', '"n":2,"quality":"standard"', '"n":2,"quality":"medium"', []],
    ['other qualities stay', '"quality":"low"', '"quality":"low"', []],
    ['url goes and is reported', '"response_format":"url","n":2', '"n":2', ['response_format']],
    ['b64_json, which all get anyway, goes', '"n":2,"response_format":"b64_json"', '"n":2', []],
    ['null goes too', '"n":2,"response_format":null,"user":"u"', '"n":2,"user":"u"', []],
    ['both at once', '"response_format":"url","quality":"hd"', '"quality":"high"', ['response_format']],
  ])('%s', (_, fields, changed, dropped) => {
    expect(sent(`{"model":"gp-image-2","prompt":"a",${fields}}`)).toEqual({
      text: `{"model":"gpt-image-2","prompt":"a",${changed}}`,
      dropped,
    })
  })

  it.each([
    ['a member twice', '{"model":"gp-image-2","prompt":"a","quality":"low","quality":"hd"}'],
    ['an escaped name', '{"model":"gp-image-2","prompt":"a","qualit\\u0079":"hd"}'],
  ])('leaves no doubt about what counts when there is %s', (_, text) => {
    expect(JSON.parse(sent(text).text)).toEqual({ model: 'gpt-image-2', prompt: 'a', quality: 'high' })
    expect(sent(text).text.match(/qualit/g)).toHaveLength(1)
  })

  it('keeps every field for an unknown model', () => {
    const text = '{"model":"own","prompt":"a","response_format":"url","quality":"hd","size":"auto"}'

    expect(sent(text)).toEqual({ text: text.replace('"own"', '"own-pictures"'), dropped: [] })
  })

  it('is offered by servers that speak the same dialect', () => {
    const other = openaiCompatible({ id: 'other', baseURL: 'https://host.example/api', apiKey: 'k', models: [] })
    const call = jsonCall<OpenAIImageRequest>('{"model":"own","prompt":"a"}')

    expect(other.images?.['generations']?.toWire(call).path).toBe('/api/images/generations')
    expect(other.imageEdits?.toWire(formCall([])).path).toBe('/api/images/edits')
  })
})

describe('an edit at OpenAI, as a form', () => {
  const file = (name: string, filename: string, contentType: string): FormFile => {
    const chunks = [Buffer.from([0x89, 0, 13, 10, 255]), Buffer.from('\r\n--not a boundary')]
    return { kind: 'file', name, filename, contentType, chunks, byteLength: 23 }
  }
  const field = (name: string, value: string) => ({ kind: 'field', name, value }) as const
  const fieldsOf = async (form: Parameters<typeof formCall>[0]) => {
    const wire = edits.toWire(formCall(form))
    const parts = await readForm(wire.headers[1]!, [bodyBytes(wire.body)])
    const fields = parts.map((part) => (part.kind === 'field' ? [part.name, part.value] : [part.name, part.filename]))
    return { fields, dropped: wire.dropped }
  }

  it('keeps names, file names, types, order and unknown fields, and copies no file', async () => {
    const form = [
      field('prompt', 'é\r\n"x"'),
      file('image[]', 'a "b" é.png', 'image/png'),
      field('model', 'gp-image-2'),
      file('image[]', 'b.jpg', 'image/jpeg'),
      field('tag', '1'),
      field('tag', '2'),
      file('markup', 'm', 'application/x-markup'),
      file('mask', 'mask.png', 'image/png'),
    ]

    const wire = edits.toWire(formCall(form))

    expect(wire.path).toBe('/v1/images/edits')
    expect(wire.headers.filter((_, index) => index % 2 === 0)).toEqual([
      'content-type',
      'accept',
      'accept-encoding',
      'authorization',
    ])
    expect(wire.headers[1]).toMatch(/^multipart\/form-data; boundary=\S+$/)
    const pieces = wire.body as readonly Uint8Array[]
    for (const part of form) if (part.kind === 'file') expect(pieces).toContain(part.chunks[0])
    const read = await readForm(wire.headers[1]!, [bodyBytes(wire.body)])
    expect(read.map((part) => ({ ...part, chunks: bytesOf(part) }))).toEqual(
      form.map((part) => ({
        ...part,
        ...(part.name === 'model' ? { value: 'gpt-image-2' } : {}),
        chunks: bytesOf(part),
      })),
    )
  })

  it.each([
    [['image', 'image'], 'image[]'],
    [['image[0]', 'image[1]', 'image'], 'image[]'],
    [['image[]', 'image'], 'image[]'],
    [['image[]'], 'image'],
    [['image[0]'], 'image'],
    [['image'], 'image'],
  ])('writes images named %j as %s, in their order', async (given, sent) => {
    const files = given.map((name, index) => file(name, `${index}.png`, 'image/png'))

    expect((await fieldsOf([...files, field('model', 'gp-image-2')])).fields).toEqual([
      ...given.map((_, index) => [sent, `${index}.png`]),
      ['model', 'gpt-image-2'],
    ])
  })

  const image = ['image', 'a.png']
  const url = ['response_format', 'url']

  it.each<[string, Record<string, string>, string[][], string[]]>([
    [
      'gp-image-2: hd becomes high',
      { model: 'gp-image-2', quality: 'hd' },
      [['model', 'gpt-image-2'], ['quality', 'high'], image],
      [],
    ],
    [
      'gp-image-1: url goes and is reported',
      { model: 'gp-image-1', response_format: 'url', n: '2' },
      [['model', 'gpt-image-1'], ['n', '2'], image],
      ['response_format'],
    ],
    [
      'gp-image-1: b64_json goes',
      { response_format: 'b64_json', model: 'gp-image-1' },
      [['model', 'gpt-image-1'], image],
      [],
    ],
    [
      'de-2: base64, the default here, is asked for',
      { model: 'de-2' },
      [['model', 'dall-e-2'], image, ['response_format', 'b64_json']],
      [],
    ],
    ['de-2: url stays', { model: 'de-2', response_format: 'url' }, [['model', 'dall-e-2'], url, image], []],
    [
      'de-2: auto, which the vendor does not know, goes',
      { size: 'auto', quality: 'auto', background: 'auto', model: 'de-2', response_format: 'url' },
      [['model', 'dall-e-2'], url, image],
      [],
    ],
    [
      'de-2: a quality it does not have goes and is reported',
      { quality: 'hd', model: 'de-2', response_format: 'url' },
      [['model', 'dall-e-2'], url, image],
      ['quality'],
    ],
    [
      'de-2: its only quality stays',
      { quality: 'standard', model: 'de-2', response_format: 'url' },
      [['quality', 'standard'], ['model', 'dall-e-2'], url, image],
      [],
    ],
  ])('%s', async (_, fields, expected, dropped) => {
    const form = Object.entries(fields).map(([name, value]) => field(name, value))

    expect(await fieldsOf([...form, file('image', 'a.png', 'image/png')])).toEqual({ fields: expected, dropped })
  })

  function bytesOf(part: { readonly kind: string; readonly chunks?: readonly Uint8Array[] }): string {
    return part.kind === 'file' ? Buffer.concat(part.chunks ?? []).toString('hex') : ''
  }
})

describe('an edit at OpenAI, as JSON', () => {
  it('stays JSON, with unchanged images', () => {
    const text =
      '{"images":[{"image_url":"data:image/png;base64,iVBOR\\/w=="}, {"file_id":"f"}],"model":"gp-image-2","prompt":"a","quality":"hd"}'
    const wire = edits.toWire(jsonCall<ImageEditRequest>(text))

    expect(bodyBytes(wire.body).toString()).toBe(
      text.replace('"gp-image-2"', '"gpt-image-2"').replace('"hd"', '"high"'),
    )
    expect(wire.headers[1]).toBe('application/json')
  })

  it('gets what is missing in front', () => {
    const wire = edits.toWire(jsonCall<ImageEditRequest>('{"model":"de-2","prompt":"a","images":[]}'))

    expect(bodyBytes(wire.body).toString()).toBe(
      '{"response_format":"b64_json","model":"dall-e-2","prompt":"a","images":[]}',
    )
  })
})
