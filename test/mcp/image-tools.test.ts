import { Buffer } from 'node:buffer'
import type { Client } from '@modelcontextprotocol/client'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { imageHeader } from '../../src/wire/image-header.ts'
import { png } from '../gateway/images/image-requests.ts'
import { type StartedMcp, startMcp } from './support/start-mcp.ts'
import { callTool, errorIn, type ToolResult } from './support/tool-result.ts'

const PICTURE = { data: Buffer.from(png(64)).toString('base64'), mime_type: 'image/png' }
const LINK = { url: 'https://cdn.example.net/one.png', mime_type: 'image/png' }

let started: StartedMcp
let client: Client

beforeAll(async () => {
  started = await startMcp()
  client = await started.connect()
})
beforeEach(() => started.sandbox.reset())
afterAll(() => started.close())

/** Members of vendors' bodies that tests name. */
interface SentBody {
  readonly input: { readonly messages: readonly [{ readonly content: unknown }] }
  readonly parameters: unknown
  readonly response_format: unknown
  readonly previous_interaction_id: unknown
  readonly images: unknown
}

/** The body that the vendor received. */
function sent(): SentBody {
  return started.sandbox.requests[0]?.body as SentBody
}

function pictureSizes({ content }: ToolResult) {
  return content
    .filter((block) => block.type === 'image')
    .map(({ data, mimeType }) => {
      const header = imageHeader([Buffer.from(String(data), 'base64')])
      return { mimeType, format: header?.format, width: header?.width }
    })
}

describe('generate_image', () => {
  test('writes the multimodal shape and gives links', async () => {
    const result = await callTool(client, 'generate_image', {
      model: 'qw-image-2.0',
      prompt: 'a boat',
      size: '1664*928',
      seed: 7,
      negative_prompt: 'people',
      extra: { parameters: { watermark: true, seed: 8 } },
    })

    expect(sent().input.messages).toEqual([{ role: 'user', content: [{ text: 'a boat' }] }])
    expect(sent().parameters).toEqual({ size: '1664*928', seed: 7, negative_prompt: 'people', watermark: true })
    expect(result.structured).toMatchObject({ model: 'qw-image-2.0', images: [{ kind: 'url' }] })
    expect(result.content[0]).toMatchObject({ type: 'resource_link', uri: result.structured.images[0].url })
  })

  test('sends images as URLs to models that edit', async () => {
    const result = await callTool(client, 'generate_image', {
      model: 'qw-image-edit-plus',
      prompt: 'more light',
      reference_images: [LINK],
    })

    expect(sent().input.messages[0].content).toEqual([{ image: LINK.url }, { text: 'more light' }])
    expect(result.isError).toBe(false)
  })

  test('writes the interactions shape, gives image blocks, and goes on from an answer', async () => {
    const model = 'gmn-3.1-flash-image-preview'
    const first = await callTool(client, 'generate_image', {
      model,
      prompt: 'a boat',
      size: '512px',
      aspect_ratio: '16:9',
      reference_images: [PICTURE],
    })
    const body = sent()
    started.sandbox.reset()
    const second = await callTool(client, 'generate_image', {
      model,
      prompt: 'at night',
      previous_interaction_id: first.structured.interaction_id,
    })

    expect(body.input).toEqual([
      { type: 'image', ...PICTURE },
      { type: 'text', text: 'a boat' },
    ])
    // The vendor writes the smallest tier without its unit.
    expect(body.response_format).toMatchObject({ type: 'image', image_size: '512', aspect_ratio: '16:9' })
    expect(first.structured).toMatchObject({ model, status: 'completed', images: [{ kind: 'inline' }] })
    expect(first.content[0]).toMatchObject({ type: 'image' })
    expect(first.text).not.toContain(String(first.content[0]?.['data']).slice(0, 100))
    expect(sent().previous_interaction_id).toBe(first.structured.interaction_id)
    expect(second.isError).toBe(false)
  })

  test("writes OpenAI's shape and gives image blocks with their media type", async () => {
    const result = await callTool(client, 'generate_image', {
      model: 'gp-image-2',
      prompt: 'a boat',
      size: '1024x1024',
      n: 2,
      quality: 'low',
      extra: { output_format: 'jpeg' },
    })

    expect(sent()).toMatchObject({ prompt: 'a boat', size: '1024x1024', n: 2, quality: 'low', output_format: 'jpeg' })
    expect(pictureSizes(result)).toEqual([
      { mimeType: 'image/jpeg', format: 'jpeg', width: 1024 },
      { mimeType: 'image/jpeg', format: 'jpeg', width: 1024 },
    ])
    expect(result.structured.images).toEqual([
      { kind: 'inline', mime_type: 'image/jpeg' },
      { kind: 'inline', mime_type: 'image/jpeg' },
    ])
  })

  test.each([
    ['qw-image-2.0', { quality: 'low' }, 'quality'],
    ['qw-image-edit', { reference_images: [PICTURE] }, 'reference_images'],
    ['gmn-2.5-flash-image', { n: 2 }, 'n'],
    ['gp-image-2', { seed: 1 }, 'seed'],
    ['gp-image-2', { background: 'transparent' }, 'background'],
  ])('%s has no place for an argument, and says so', async (model, args, param) => {
    const result = await callTool(client, 'generate_image', { model, prompt: 'a boat', ...args })

    expect(errorIn(result)).toMatchObject({ code: 'unsupported_parameter', param })
    expect(started.sandbox.requests).toEqual([])
  })

  test('names an unknown model, whatever else is requested', async () => {
    const args = { model: 'no-such-model', prompt: 'a boat' }
    const plain = await callTool(client, 'generate_image', args)
    const further = await callTool(client, 'generate_image', {
      ...args,
      aspect_ratio: '16:9',
      reference_images: [PICTURE],
    })

    expect(errorIn(further)).toEqual(errorIn(plain))
    expect(errorIn(plain)).toMatchObject({ message: expect.stringContaining('no-such-model'), param: 'model' })
  })

  test('rejects an image that is neither bytes nor an https URL', async () => {
    const calls = [{}, { ...PICTURE, url: LINK.url }, { url: 'http://cdn.example.net/one.png' }, { data: 'AAAA' }]

    for (const entry of calls) {
      const args = { model: 'gmn-3-pro-image-preview', prompt: 'a boat', reference_images: [entry] }
      const result = await callTool(client, 'generate_image', args)
      expect(String(errorIn(result)['param'])).toMatch(/^reference_images\[0\]/)
    }
    expect(started.sandbox.requests).toEqual([])
  })

  test('an interaction of another account is answered like one that does not exist', async () => {
    const { id: accountId } = await started.gateway.accounts.create()
    await started.gateway.accounts.credit(accountId, '10')
    const { key } = await started.gateway.keys.create({ accountId })
    const stranger = await started.connect({ apiKey: key })
    const model = 'gmn-3.1-flash-image-preview'
    const mine = await callTool(client, 'generate_image', { model, prompt: 'a secret' })
    started.sandbox.reset()

    const foreign = await callTool(stranger, 'generate_image', {
      model,
      prompt: 'what was it?',
      previous_interaction_id: mine.structured.interaction_id,
    })
    const unknown = await callTool(stranger, 'generate_image', {
      model,
      prompt: 'what was it?',
      previous_interaction_id: 'v1_nothing',
    })

    expect(errorIn(foreign)).toMatchObject({ status: 404 })
    expect(foreign.text).toBe(unknown.text)
    expect(started.sandbox.requests).toEqual([])
  })
})

describe('edit_image', () => {
  test('edits an image sent as bytes', async () => {
    const result = await callTool(client, 'edit_image', {
      model: 'gp-image-2',
      prompt: 'more light',
      images: [PICTURE],
      output_format: 'webp',
    })

    expect(result.isError, result.text).toBe(false)
    expect(pictureSizes(result)).toMatchObject([{ mimeType: 'image/webp', format: 'webp' }])
  })

  test('passes an address on for the vendor to fetch', async () => {
    const result = await callTool(client, 'edit_image', { model: 'gp-image-2', prompt: 'more light', images: [LINK] })

    expect(sent().images).toEqual([{ image_url: LINK.url }])
    expect(result.isError, result.text).toBe(false)
  })

  test('a mask of another size is refused as the endpoint does', async () => {
    const mask = { data: Buffer.from(png(32)).toString('base64'), mime_type: 'image/png' }

    const result = await callTool(client, 'edit_image', {
      model: 'gp-image-2',
      prompt: 'more light',
      images: [PICTURE],
      mask,
    })

    expect(errorIn(result)).toMatchObject({ code: 'invalid_mask', status: 400, param: 'mask' })
  })
})

test.each([
  ['generate_image', { extra: { stream: true } }, 'extra.stream'],
  ['edit_image', { images: [LINK], stream: true }, 'stream'],
])('%s refuses a stream before it costs anything', async (tool, args, param) => {
  const before = await started.account()
  const result = await callTool(client, tool, { model: 'gp-image-2', prompt: 'a boat', ...args })

  expect(errorIn(result)).toMatchObject({ code: 'invalid_request', param })
  expect(started.sandbox.requests).toEqual([])
  expect(await started.account()).toEqual(before)
})
