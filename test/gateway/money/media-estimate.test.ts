import { Buffer } from 'node:buffer'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { PriceRow } from '../../../src/catalog/prices/prices.ts'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { type StartedGateway, startGateway, TEST_ACCOUNT } from '../../support/start-gateway.ts'
import { testPrices } from '../../support/test-prices.ts'
import { dataUrl, gifFile, jpegFile, mp3File, pdfFile, pngFile, wavFile } from '../../wire/media-files.ts'

const PRINCIPAL = { accountId: TEST_ACCOUNT, keyId: 'key_1', tier: 'paid' } as const
const MODELS = [
  { id: 'eyes-openai', kind: 'chat', vendor: 'openai', upstream: 'gpt-4o' },
  { id: 'eyes-mini', kind: 'chat', vendor: 'openai', upstream: 'gpt-4o-mini' },
  { id: 'eyes-new', kind: 'chat', vendor: 'openai', upstream: 'gpt-5.4' },
  { id: 'eyes-qwen', kind: 'chat', vendor: 'dashscope', upstream: 'qwen3-vl-plus' },
  { id: 'ears', kind: 'chat', vendor: 'openai', upstream: 'gpt-4o-audio-preview' },
  {
    id: 'eyes-anywhere',
    kind: 'chat',
    vendor: 'openai',
    routes: [
      { vendor: 'openai', upstream: 'gpt-4o' },
      { vendor: 'anthropic', upstream: 'claude-opus-4-7' },
    ],
  },
] as const
const NAMES = [...MODELS.map(({ id }) => id), 'cl-opus-4-7', 'cl-sonnet-4-6', 'gmn-2.5-pro']
const priced = (model: string): PriceRow[] => [
  { model, meter: 'input_token', amount: '3.00', per: 1_000_000 },
  { model, meter: 'output_token', amount: '15.00', per: 1_000_000 },
]
const HEARD: PriceRow = { model: 'ears', meter: 'input_audio_token', amount: '40.00', per: 1_000_000 }

let started: StartedGateway

const start = async (options: Partial<GatewayOptions> = {}): Promise<void> => {
  started = await startGateway({
    models: [...MODELS],
    prices: { currency: 'USD', prices: [...NAMES.flatMap(priced), HEARD] },
    ...options,
  })
}

beforeEach(() => start())
afterEach(() => started.close())

/** Input tokens that a chat with these parts is held for, and its whole hold in dollars. */
async function chat(model: string, ...parts: unknown[]): Promise<{ tokens: number; cost: number }> {
  const body = { model, max_tokens: 1, messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }, ...parts] }] }
  return estimated('chat', body)
}

async function message(model: string, ...blocks: unknown[]): Promise<{ tokens: number; cost: number }> {
  return estimated('messages', { model, max_tokens: 1, messages: [{ role: 'user', content: blocks }] })
}

async function estimated(endpoint: string, body: unknown): Promise<{ tokens: number; cost: number }> {
  const { usage, cost } = await started.gateway.estimate(PRINCIPAL, { endpoint, body })
  return { tokens: usage.inputTokens ?? 0, cost: Number(cost) }
}

const imagePart = (url: string, detail?: string): unknown => ({ type: 'image_url', image_url: { url, detail } })
const base64Block = (type: string, mediaType: string, file: Buffer): unknown => ({
  type,
  source: { type: 'base64', media_type: mediaType, data: file.toString('base64') },
})
const LARGE = pngFile(1_200, 1_000, 4_000_000)
/** About a hundred tokens of JSON and text around the media. */
const TEXT = 120

describe('an image of 4 MB in the request', () => {
  // Before: $5.59, and 1.8 million tokens of the token limit. The vendor bills $0.0048.
  test('is held for what its vendor bills for its size, in a message', async () => {
    const { tokens, cost } = await message('cl-sonnet-4-6', base64Block('image', 'image/png', LARGE))

    expect(tokens).toBeGreaterThanOrEqual(1_600)
    expect(tokens).toBeLessThan(1_600 + TEXT)
    expect(cost).toBeLessThan(0.0053)
  })

  test.each([
    ['cl-sonnet-4-6', 1_600],
    ['cl-opus-4-7', 1_600],
    ['gmn-2.5-pro', 4 * 258],
    ['eyes-openai', 85 + 170 * 4],
    ['eyes-mini', 2_833 + 5_667 * 4],
    ['eyes-new', Math.ceil(38 * 32 * 1.62)],
    ['eyes-qwen', 43 * 36 + 2],
    ['eyes-anywhere', 1_600],
  ])('is held in a chat with %s for %i tokens', async (model, expected) => {
    const { tokens } = await chat(model, imagePart(dataUrl('image/png', LARGE)))

    expect(tokens).toBeGreaterThanOrEqual(expected)
    expect(tokens).toBeLessThan(expected + TEXT)
  })

  test('takes as many tokens of the limit', async () => {
    await started.close()
    await start({ limits: { tokensPerMinute: 10_000 }, prices: testPrices })
    const body = {
      model: 'cl-sonnet-4-6',
      max_tokens: 10,
      messages: [{ role: 'user', content: [base64Block('image', 'image/png', LARGE)] }],
    }

    const statuses: number[] = []
    for (let count = 0; count < 3; count++) statuses.push((await started.post('/v1/messages', body)).status)

    // Before, the first one used the whole minute, and the second got 429.
    expect(statuses).not.toContain(429)
  })

  test('is found behind a colour profile, in other formats, and in the result of a tool', async () => {
    const jpeg = await chat('eyes-openai', imagePart(dataUrl('image/jpeg', jpegFile(512, 512, 700_000))))
    const gif = await chat('eyes-openai', imagePart(dataUrl('image/gif', gifFile(400, 400))))
    const inResult = await message('cl-sonnet-4-6', {
      type: 'tool_result',
      tool_use_id: 'toolu_1',
      content: [base64Block('image', 'image/png', LARGE)],
    })

    expect(jpeg.tokens).toBeLessThan(85 + 170 * 4 + TEXT)
    expect(gif.tokens).toBeLessThan(85 + 170 + TEXT)
    expect(inResult.tokens).toBeLessThan(1_600 + TEXT)
  })

  test('is held as an image, and not as text, if a tool of a response created it', async () => {
    const made = { type: 'image_generation_call', id: 'ig_1', status: 'completed', result: LARGE.toString('base64') }
    const { tokens } = await estimated('responses', { model: 'eyes-new', max_output_tokens: 16, input: [made] })

    expect(tokens).toBeGreaterThanOrEqual(Math.ceil(38 * 32 * 1.62))
    expect(tokens).toBeLessThan(Math.ceil(38 * 32 * 1.62) + TEXT)
  })

  test('hides no text that repeats its data, which was held for nothing', async () => {
    const url = dataUrl('image/png', pngFile(100, 100, 30_000))
    const twice = await chat('eyes-openai', imagePart(url), imagePart(url))
    const repeated = await chat('eyes-openai', imagePart(url), { type: 'text', text: url })

    expect(twice.tokens).toBeLessThan(2 * (85 + 170) + TEXT)
    expect(repeated.tokens).toBeGreaterThanOrEqual(url.length / 3)
  })

  test('costs as much as the largest image if its size cannot be read', async () => {
    const { tokens } = await chat('cl-opus-4-7', imagePart(dataUrl('image/png', Buffer.alloc(50_000, 7))))

    expect(tokens).toBeGreaterThanOrEqual(4_784)
    expect(tokens).toBeLessThan(4_784 + TEXT)
  })

  test('looked at with less detail costs less, and with more detail more', async () => {
    const picture = dataUrl('image/png', pngFile(4_000, 3_000))

    expect((await chat('eyes-openai', imagePart(picture, 'low'))).tokens).toBeLessThan(85 + TEXT)
    expect((await chat('eyes-new', imagePart(picture, 'original'))).tokens).toBeGreaterThan(16_000)
    expect((await chat('eyes-new', imagePart(picture, 'high'))).tokens).toBeLessThan(2_500 * 1.62 + TEXT)
  })

  test('still counts the text next to it, even the same text', async () => {
    const data = pngFile(10, 10, 3_000).toString('base64')
    const alone = await chat('eyes-openai', imagePart(`data:image/png;base64,${data}`))
    const withText = await chat('eyes-openai', imagePart(`data:image/png;base64,${data}`), { type: 'text', text: data })

    expect(withText.tokens - alone.tokens).toBeGreaterThanOrEqual(Math.floor(data.length / 3))
  })
})

describe('sound in the request', () => {
  const sound = (file: Buffer, format: string): unknown => ({
    type: 'input_audio',
    input_audio: { data: file.toString('base64'), format },
  })

  test.each([
    ['ears', wavFile(60), 'wav', 600],
    ['ears', mp3File(60, { coverBytes: 90_000 }), 'mp3', 600],
    ['ears', Buffer.alloc(48_000 * 60), 'pcm16', 600],
    ['gmn-2.5-pro', wavFile(60), 'wav', 60 * 32],
    ['eyes-qwen', mp3File(60), 'mp3', 60 * 25],
  ])('is held at %s for its length', async (model, file, format, expected) => {
    const { tokens } = await chat(model, sound(file, format))

    expect(tokens).toBeGreaterThanOrEqual(expected)
    expect(tokens).toBeLessThan(expected + TEXT)
  })

  test('is held at the price of its own meter', async () => {
    const { cost } = await chat('ears', sound(wavFile(60), 'wav'))

    expect(cost).toBeGreaterThanOrEqual((600 * 40) / 1_000_000)
    expect(cost).toBeLessThan((600 * 40 + TEXT * 43) / 1_000_000)
  })
})

describe('a document in the request', () => {
  const file = (pdf: Buffer): unknown => ({
    type: 'file',
    file: { filename: 'a.pdf', file_data: dataUrl('application/pdf', pdf) },
  })

  test.each([
    ['cl-sonnet-4-6', 10 * 4_600],
    ['gmn-2.5-pro', 10 * 258],
    ['eyes-openai', 10 * (1_500 + 85 + 170 * 6)],
  ])('is held in a chat with %s by its pages', async (model, expected) => {
    const { tokens } = await chat(model, file(pdfFile(10, { byteLength: 2_000_000 })))

    expect(tokens).toBeGreaterThanOrEqual(expected)
    expect(tokens).toBeLessThan(expected + TEXT)
  })

  test('is held by its size where its pages cannot be read, and for no more than the model reads', async () => {
    const small = pdfFile(10, { isCompressed: true, byteLength: 40_000 })
    const large = pdfFile(10, { isCompressed: true, byteLength: 9_000_000 })

    expect((await message('cl-sonnet-4-6', base64Block('document', 'application/pdf', small))).tokens).toBeLessThan(
      10 * 4_600 + TEXT,
    )
    expect((await message('cl-sonnet-4-6', base64Block('document', 'application/pdf', large))).tokens).toBeLessThan(
      1_000_000 + TEXT,
    )
  })

  test('holds a text document as text', async () => {
    const { tokens } = await message('cl-sonnet-4-6', base64Block('document', 'text/plain', Buffer.alloc(30_000, 'a')))

    expect(tokens).toBeGreaterThanOrEqual(10_000)
    expect(tokens).toBeLessThan(10_000 + TEXT)
  })
})

describe('an input whose size only the vendor knows', () => {
  const URL_SOURCE = { type: 'url', url: 'https://cdn.example.net/a' }
  const FILE_SOURCE = { type: 'file', file_id: 'file_1' }

  test.each<[string, unknown, number]>([
    ['cl-sonnet-4-6', { type: 'image', source: URL_SOURCE }, 1_600],
    ['cl-opus-4-7', { type: 'image', source: FILE_SOURCE }, 4_784],
    ['cl-sonnet-4-6', { type: 'document', source: URL_SOURCE }, 1_000_000],
    ['cl-sonnet-4-6', { type: 'document', source: FILE_SOURCE }, 1_000_000],
    ['gmn-2.5-pro', { type: 'document', source: FILE_SOURCE }, 1_048_576],
  ])('is held in a message to %s: %j for %i tokens', async (model, block, expected) => {
    const { tokens } = await message(model, block)

    expect(tokens).toBeGreaterThanOrEqual(expected)
    expect(tokens).toBeLessThan(expected + TEXT)
  })

  test.each<[string, unknown, number]>([
    ['eyes-openai', imagePart('https://cdn.example.net/a.png'), 85 + 170 * 8],
    ['eyes-openai', { type: 'file', file: { file_id: 'file_1' } }, 128_000],
    ['eyes-qwen', { type: 'video_url', video_url: { url: 'https://cdn.example.net/a.mp4' } }, 200_000],
    ['eyes-qwen', { type: 'input_audio', input_audio: { data: 'https://cdn.example.net/a.wav' } }, 200_000],
    ['eyes-openai', { type: 'document_url', document_url: 'https://cdn.example.net/a.pdf' }, 128_000],
  ])('is held in a chat with %s: %j for %i tokens', async (model, part, expected) => {
    const { tokens } = await chat(model, part)

    expect(tokens).toBeGreaterThanOrEqual(expected)
    expect(tokens).toBeLessThan(expected + TEXT)
  })

  test('is held for one context, however many there are', async () => {
    const block = { type: 'document', source: URL_SOURCE }

    expect((await message('cl-sonnet-4-6', block, block, block)).tokens).toBeLessThan(1_000_000 + 2 * TEXT)
  })

  test('is held for what an option says, for all models or for one', async () => {
    await started.close()
    await start({ unknownInputTokens: { document: 30_000, models: { 'cl-opus-4-7': { document: 9_000 } } } })
    const block = { type: 'document', source: URL_SOURCE }

    expect((await message('cl-sonnet-4-6', block)).tokens).toBeLessThan(30_000 + TEXT)
    expect((await message('cl-opus-4-7', block)).tokens).toBeLessThan(9_000 + TEXT)
  })

  test('is also held in a stored conversation', async () => {
    await started.close()
    await start({ prices: testPrices })
    const body = { model: 'gmn-2.5-flash-image', input: 'a cat' }
    const first = await estimated('images', body)
    const next = await estimated('images', { ...body, previous_interaction_id: 'v1_1' })

    // Before: the same as the first turn, though the vendor reads all turns again.
    expect(next.tokens - first.tokens).toBe(65_536)
  })

  test.each<[string, object]>([
    ['messages', { mcp_servers: [{ type: 'url', url: 'https://mcp.example.net', name: 'x' }] }],
    ['responses', { tools: [{ type: 'mcp', server_label: 'x', server_url: 'https://mcp.example.net' }] }],
    ['responses', { input: [{ type: 'additional_tools', tools: [{ type: 'mcp', server_label: 'x' }] }] }],
  ])("holds answers of the caller's own servers as one context (%s %j)", async (endpoint, more) => {
    const body = { messages: [{ role: 'user', content: 'hi' }], input: 'hi', ...more }
    const model = endpoint === 'messages' ? 'cl-sonnet-4-6' : 'eyes-openai'
    const { tokens } = await estimated(endpoint, { model, max_tokens: 1, max_output_tokens: 16, ...body })

    expect(tokens).toBeGreaterThanOrEqual(endpoint === 'messages' ? 1_000_000 : 128_000)
  })

  test("holds pages that the vendor fetches at the tool's limit", async () => {
    const fetching = async (tool: object): Promise<number> =>
      (
        await estimated('messages', {
          model: 'cl-sonnet-4-6',
          max_tokens: 1,
          messages: [{ role: 'user', content: 'hi' }],
          tools: [{ type: 'web_fetch_20250910', name: 'web_fetch', ...tool }],
        })
      ).tokens

    expect(await fetching({ max_uses: 2, max_content_tokens: 5_000 })).toBeLessThan(10_000 + TEXT)
    expect(await fetching({})).toBeGreaterThanOrEqual(1_000_000)
  })
})

test.each([
  [{ unknownInputTokens: { film: 1 } }, 'unknownInputTokens.film is unknown'],
  [
    { unknownInputTokens: { models: { m: { image: -1 } } } },
    'unknownInputTokens.models.m.image must be a whole number',
  ],
  [{ unpricedFeatures: ['Beta!'] }, 'unpricedFeatures must be a list of names'],
])('options that mean nothing are refused at the start: %j', async (options, text) => {
  await expect(startGateway(options as Partial<GatewayOptions>)).rejects.toThrow(text)
})
