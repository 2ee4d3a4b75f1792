import { describe, expect, test } from 'vitest'
import type { Form } from '../../../src/wire/write-form.ts'
import { ask, edit, editJson, generate, pictureFile, pictureIn } from './openai-images-calls.ts'

describe('text to image', () => {
  test('answers with real images of the requested size and format, and with tokens', () => {
    const { status, json } = generate({ n: 2, size: '1536x864', quality: 'low', output_format: 'webp' })

    expect(status).toBe(200)
    expect(json.data.map((item: { b64_json: string }) => pictureIn(item.b64_json))).toEqual(
      Array(2).fill('webp 1536x864'),
    )
    expect(json.data[0].b64_json).not.toBe(json.data[1].b64_json)
    const tokens = 2 * Math.ceil((272 * 1536 * 864) / 1024 ** 2)
    expect(json).toMatchObject({
      created: 1_795_168_800,
      background: 'opaque',
      output_format: 'webp',
      quality: 'low',
      size: '1536x864',
      usage: {
        input_tokens: 3,
        input_tokens_details: { text_tokens: 3, image_tokens: 0 },
        output_tokens: tokens,
        output_tokens_details: { image_tokens: tokens, text_tokens: 0 },
        total_tokens: tokens + 3,
      },
    })
  })

  test('answers for the older models with links, in their sizes and styles', () => {
    const { json } = generate({ model: 'dall-e-3', size: '1792x1024', quality: 'hd', style: 'natural' })

    expect(Object.keys(json)).toEqual(['created', 'data'])
    expect(json.data[0].url).toContain('-1792x1024.png')
    expect(generate({ model: 'dall-e-2', n: 2 }).json.data).toHaveLength(2)
  })

  test('chooses where it may', () => {
    const { json } = generate({ size: 'auto' })

    expect(pictureIn(json.data[0].b64_json)).toBe('png 1024x1024')
    expect(json).toMatchObject({ size: '1024x1024', quality: 'medium', output_format: 'png' })
  })

  test('streams unfinished images and then the finished one', () => {
    const { status, text, events } = generate({ stream: true, partial_images: 2, size: '1024x1024', quality: 'high' })

    expect(status).toBe(200)
    expect(events.map((event) => [event.type, event.partial_image_index])).toEqual([
      ['image_generation.partial_image', 0],
      ['image_generation.partial_image', 1],
      ['image_generation.completed', undefined],
    ])
    expect(text).toMatch(/^event: image_generation\.partial_image\ndata: \{"type":/)
    expect(events.map((event) => pictureIn(event.b64_json))).toEqual(Array(3).fill('png 1024x1024'))
    expect(events[2]).toMatchObject({ size: '1024x1024', quality: 'high', usage: { output_tokens: 4160 + 200 } })
  })

  test.each<[string, object, string | null, RegExp]>([
    ['no model', { model: '' }, 'model', /must provide a model/],
    ['no prompt', { prompt: undefined }, 'prompt', /Missing required parameter: 'prompt'/],
    ['response_format', { response_format: 'b64_json' }, 'response_format', /Unknown parameter/],
    [
      'a size that 16 does not divide',
      { size: '1792x936' },
      'size',
      /^Invalid size '1792x936'\. Width and height must both be divisible by 16\.$/,
    ],
    ['a size that is too wide', { size: '3200x1024' }, 'size', /ratio/],
    ['a size that is too large', { size: '3840x3840' }, 'size', /pixel limit/],
    ['2K', { size: '2K' }, 'size', /Supported values/],
    ['a free size on an older model', { model: 'gpt-image-1', size: '1536x864' }, 'size', /Supported values/],
    ['a model that makes no pictures', { model: 'gpt-4o' }, 'model', /does not exist/],
    ['xhigh on gpt-image-2', { quality: 'xhigh' }, 'quality', /Supported values/],
    ['style', { style: 'vivid' }, 'style', /Unknown parameter/],
    ['two pictures on dall-e-3', { model: 'dall-e-3', n: 2 }, null, /must provide n=1/],
    ['a small picture on dall-e-3', { model: 'dall-e-3', size: '512x512' }, 'size', /'1792x1024'/],
    ['a stream on dall-e-3', { model: 'dall-e-3', stream: true }, 'stream', /not supported with this model/],
    ['a style of nobody', { model: 'dall-e-3', style: 'bold' }, 'style', /'vivid', 'natural'/],
    ['moderation on dall-e-2', { model: 'dall-e-2', moderation: 'low' }, 'moderation', /Unknown parameter/],
    ['a long prompt on dall-e-2', { model: 'dall-e-2', prompt: 'a'.repeat(1001) }, 'prompt', /too long/],
    ['hd', { quality: 'hd' }, 'quality', /Supported values are: 'low', 'medium', 'high', 'auto'/],
    ['a transparent jpeg', { background: 'transparent', output_format: 'jpeg' }, 'background', /JPEG/],
    ['eleven pictures', { n: 11 }, 'n', /between 1 and 10/],
    ['four unfinished pictures', { stream: true, partial_images: 4 }, 'partial_images', /between 0 and 3/],
    ['a prompt that its filter finds unsafe', { prompt: '[[fault:blocked]]' }, null, /safety system/],
  ])('is refused for %s', (_, fields, param, message) => {
    const { status, json } = generate(fields)

    expect(status).toBe(400)
    expect(json.error).toMatchObject({ type: 'invalid_request_error', param, message: expect.stringMatching(message) })
  })

  test('is refused without a key', () => {
    expect(ask('/v1/images/generations', 'application/json', Buffer.from('{}'), '').status).toBe(401)
  })

  test('goes wrong on request', () => {
    expect(generate({ prompt: '[[fault:status=503]]' }).status).toBe(503)
    expect(generate({ prompt: '[[fault:no-usage]]' }).json.usage).toBeUndefined()
    expect(generate({ prompt: '[[fault:usage=-1]]' }).json.usage.output_tokens).toBe(-1)
    expect(generate({ prompt: '[[fault:error-event]]', stream: true, partial_images: 1 }).events.at(-1)).toHaveProperty(
      'error',
    )
  })
})

describe('an edit', () => {
  const image = pictureFile('image')

  test('accepts a form with images and a mask, and counts them', () => {
    const { status, json } = edit({ n: '2', size: '1024x1536', quality: 'low' }, [
      pictureFile('image[]'),
      pictureFile('image[]', 32, 'jpeg'),
      pictureFile('mask'),
    ])

    expect(status).toBe(200)
    expect(json.data.map((item: { b64_json: string }) => pictureIn(item.b64_json))).toEqual(
      Array(2).fill('png 1024x1536'),
    )
    expect(json.usage).toMatchObject({
      input_tokens: 3 + 3 * 194,
      input_tokens_details: { text_tokens: 3, image_tokens: 3 * 194 },
      output_tokens: 2 * 408,
    })
  })

  test('takes JSON with data: URLs and file ids', () => {
    const { status, json } = editJson({ images: [{ file_id: 'file-1' }], mask: { file_id: 'file-2' }, n: 1 })

    expect(status).toBe(200)
    expect(json.usage.input_tokens_details.image_tokens).toBe(2 * 194)
  })

  test('streams events of its own name', () => {
    const { events } = edit({ stream: 'true', partial_images: '1' }, [image])

    expect(events.map((event) => event.type)).toEqual(['image_edit.partial_image', 'image_edit.completed'])
  })

  test('answers for dall-e-2 with links, or base64 on request, and without tokens', () => {
    const linked = edit({ model: 'dall-e-2', size: '256x256', n: '2' }, [image]).json
    const whole = edit({ model: 'dall-e-2', response_format: 'b64_json' }, [image]).json

    expect(Object.keys(linked)).toEqual(['created', 'data'])
    expect(linked.data[0].url).toMatch(/^http:\/\/127\.0\.0\.1:4000\/sandbox-files\/[\w.]+-256x256\.png\?/)
    expect(linked.data[1].url).not.toBe(linked.data[0].url)
    expect(pictureIn(whole.data[0].b64_json)).toBe('png 1024x1024')
  })

  test.each<[string, Record<string, string>, Form, string, RegExp]>([
    ['no picture', {}, [], 'image', /Missing required parameter/],
    ['dall-e-3', { model: 'dall-e-3' }, [image], 'model', /must be 'dall-e-2'/],
    ['seventeen pictures', {}, Array(17).fill(pictureFile('image[]')), 'image', /too long/],
    [
      'two pictures on dall-e-2',
      { model: 'dall-e-2' },
      [pictureFile('image[]'), pictureFile('image[]')],
      'image',
      /too long/,
    ],
    ['two pictures without brackets', {}, [image, image], 'image', /^Duplicate parameter: 'image'/],
    [
      'a file that is no picture',
      {},
      [{ ...image, chunks: [Buffer.from('GIF89a')], byteLength: 6 } as Form[number]],
      'image',
      /unsupported mimetype/,
    ],
    ['a mask of another size', {}, [image, pictureFile('mask', 8)], 'mask', /mask size does not match/],
    ['a mask of another format', {}, [image, pictureFile('mask', 16, 'webp')], 'mask', /must be a PNG/],
    ['response_format', { response_format: 'url' }, [image], 'response_format', /Unknown parameter/],
    [
      'output_format on dall-e-2',
      { model: 'dall-e-2', output_format: 'png' },
      [image],
      'output_format',
      /Unknown parameter/,
    ],
    ['auto on dall-e-2', { model: 'dall-e-2', size: 'auto' }, [image], 'size', /Supported values/],
    ['hd on dall-e-2', { model: 'dall-e-2', quality: 'hd' }, [image], 'quality', /Supported values/],
    ['a count that is no number', { n: 'two' }, [image], 'n', /expected a number/],
  ])('is refused for %s', (_, fields, files, param, message) => {
    const { status, json } = edit(fields, files)

    expect(status).toBe(400)
    expect(json.error).toMatchObject({ param, message: expect.stringMatching(message) })
  })

  test('is refused for JSON on dall-e-2, and for a body that is neither', () => {
    expect(editJson({ model: 'dall-e-2', images: [{ file_id: 'f' }] }).status).toBe(400)
    expect(ask('/v1/images/edits', 'text/plain', Buffer.from('hello')).status).toBe(400)
    expect(ask('/v1/images/edits', 'multipart/form-data; boundary=b', Buffer.from('--b\r\nbroken')).status).toBe(400)
  })

  test('reads fault marks in the prompt of a form', () => {
    expect(edit({ prompt: '[[fault:status=429]]' }, [image]).status).toBe(429)
  })
})
