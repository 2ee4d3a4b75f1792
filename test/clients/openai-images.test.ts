import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { drawPicture } from '../../src/testing/sandbox/files/draw-image.ts'
import { imageHeader } from '../../src/wire/image-header.ts'
import { type StartedGateway, startGateway } from '../support/start-gateway.ts'
import { OPENAI_VERSIONS, type OpenAIClient, openaiClient } from './support/openai-clients.ts'

let started: StartedGateway

beforeAll(async () => {
  started = await startGateway()
})
beforeEach(() => started.sandbox.reset())
afterAll(() => started.close())

function pngFile(name: string, seed: string, size = 256): File {
  const bytes = drawPicture({ width: size, height: size, format: 'png', seed })
  return new File([Buffer.from(bytes)], name, { type: 'image/png' })
}

/** Returns the header of an image in base64. */
function headerOf(base64: string | null | undefined): unknown {
  return imageHeader([Buffer.from(base64 ?? '', 'base64')])
}

/** The form that arrived at the vendor, as text. */
function sentForm(): string {
  return Buffer.from(started.sandbox.requests[0]?.bytes ?? []).toString('latin1')
}

describe.each(OPENAI_VERSIONS)('%s', (_name, OpenAI) => {
  let client: OpenAIClient

  beforeAll(() => {
    client = openaiClient(OpenAI, started.url)
  })

  test('returns an image of the requested size and format from images.generate', async () => {
    const answer = await client.images.generate({
      model: 'gp-image-2',
      prompt: 'a paper boat on a desk',
      size: '1536x1024',
      quality: 'low',
      output_format: 'webp',
    })

    expect(headerOf(answer.data?.[0]?.b64_json)).toMatchObject({ format: 'webp', width: 1536, height: 1024 })
    expect(answer.usage?.total_tokens).toBeGreaterThan(0)
    expect(started.sandbox.requests[0]?.body).toMatchObject({ model: 'gpt-image-2', size: '1536x1024' })
  })

  test('does not order an image twice with images.generate if its vendor may be generating it, despite retries', async () => {
    started.sandbox.fault({ kind: 'reset', times: 5 })
    const patient = openaiClient(OpenAI, started.url, { maxRetries: 2 })
    const error: unknown = await patient.images
      .generate({ model: 'gp-image-2', prompt: 'a paper boat' })
      .catch((cause: unknown) => cause)

    expect(error).toBeInstanceOf(OpenAI.InternalServerError)
    expect(started.sandbox.requests).toHaveLength(1)
  })

  test('streams partial images and then the whole one with images.generate', async () => {
    const stream = await client.images.generate({
      model: 'gp-image-2',
      prompt: 'a paper boat',
      stream: true,
      partial_images: 2,
    })
    const types: string[] = []
    let last = ''
    for await (const event of stream) {
      types.push(event.type)
      last = event.b64_json
    }

    expect(types.at(-1)).toBe('image_generation.completed')
    expect(types.filter((type) => type === 'image_generation.partial_image')).toHaveLength(2)
    expect(headerOf(last)).toMatchObject({ format: 'png' })
  })

  test('images.edit sends one file under its own name', async () => {
    const answer = await client.images.edit({
      model: 'gp-image-2',
      image: pngFile('harbour.png', 'one'),
      prompt: 'add a gull',
      size: '1024x1024',
    })

    expect(headerOf(answer.data?.[0]?.b64_json)).toMatchObject({ format: 'png', width: 1024, height: 1024 })
    expect(sentForm()).toContain('name="image"; filename="harbour.png"')
    expect(sentForm()).toContain('gpt-image-2')
  })

  test('images.edit sends several files with their names, types and order', async () => {
    await client.images.edit({
      model: 'gp-image-1',
      image: [pngFile('first.png', 'one'), pngFile('second.png', 'two')],
      prompt: 'put both on one shelf',
      quality: 'high',
    })

    const form = sentForm()
    expect(form.match(/name="image\[\]"; filename="[^"]+"/g)).toEqual([
      'name="image[]"; filename="first.png"',
      'name="image[]"; filename="second.png"',
    ])
    expect(form.match(/Content-Type: image\/png/gi)).toHaveLength(2)
  })

  test('images.edit takes a mask of the same size', async () => {
    const answer = await client.images.edit({
      model: 'gp-image-2',
      image: pngFile('picture.png', 'one'),
      mask: pngFile('mask.png', 'mask'),
      prompt: 'replace the sky',
    })

    expect(answer.data).toHaveLength(1)
    expect(sentForm()).toContain('name="mask"; filename="mask.png"')
  })

  test('images.edit streams', async () => {
    const stream = await client.images.edit({
      model: 'gp-image-2',
      image: pngFile('picture.png', 'one'),
      prompt: 'more light',
      stream: true,
      partial_images: 1,
    })
    const types: string[] = []
    for await (const event of stream) types.push(event.type)

    expect(types).toEqual(['image_edit.partial_image', 'image_edit.completed'])
  })

  test.each([
    [
      'qw-image-2.0',
      'InvalidParameter',
      /^400 prompt: is of another model's request; write it as input: \{ "messages"/,
    ],
    ['gmn-2.5-flash-image', 'invalid_request', /^400 prompt: is of another model's request; write it as input$/],
  ])('images.generate at %s, which is asked otherwise, says how', async (model, code, message) => {
    const error = await client.images.generate({ model, prompt: 'a crane' }).catch((cause: unknown) => cause)

    expect(error).toMatchObject({ status: 400, code, param: 'prompt', message: expect.stringMatching(message) })
    expect(started.sandbox.requests).toEqual([])
  })

  test('images.edit with a mask of another size is refused with invalid_mask', async () => {
    const edit = client.images.edit({
      model: 'gp-image-2',
      image: pngFile('picture.png', 'one', 256),
      mask: pngFile('mask.png', 'mask', 128),
      prompt: 'x',
    })

    await expect(edit).rejects.toMatchObject({ status: 400, code: 'invalid_mask', type: 'invalid_request_error' })
    expect(started.sandbox.requests).toEqual([])
  })

  test('an edit is repeated by the SDK under one Idempotency-Key although its boundary differs', async () => {
    const edit = () =>
      client.images.edit(
        { model: 'gp-image-2', image: pngFile('picture.png', 'one'), prompt: 'more light' },
        { headers: { 'Idempotency-Key': `edit ${_name}` } },
      )

    const first = await edit()
    const second = await edit()

    expect(second).toEqual(first)
    expect(started.sandbox.requests).toHaveLength(1)
  })
})
