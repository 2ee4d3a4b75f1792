import { describe, expect, test } from 'vitest'
import { createCatalog } from '../../src/catalog/catalog.ts'
import { BUILT_IN_MODELS } from '../../src/catalog/models/built-in-models.ts'
import { GatewayError } from '../../src/core/errors.ts'
import type { Endpoint } from '../../src/endpoints/endpoint.ts'
import { imageReferencesSchema } from '../../src/endpoints/image-edits/image-edit-request.ts'
import { multimodalImageEndpoint, multimodalImageSchema } from '../../src/endpoints/images/images-endpoint.ts'
import { interactionSchema } from '../../src/endpoints/images/interactions/interaction-schema.ts'
import { chatRequestFromMessages } from '../../src/endpoints/messages/chat-request-from-messages.ts'
import { advisorsOf } from '../../src/endpoints/messages/messages-estimate.ts'
import {
  type ContentBlock,
  countTokensSchema,
  type MessagesRequest,
  messagesSchema,
} from '../../src/endpoints/messages/messages-request.ts'
import { videoEndpoint } from '../../src/endpoints/videos/video-endpoint.ts'
import { extraFeatures } from '../../src/vendors/anthropic/messages-operation.ts'

const catalog = createCatalog(BUILT_IN_MODELS)

/** More than the maximum number of arguments of a function call. */
const MANY = 300_000
const many = <Item>(item: Item): Item[] => new Array<Item>(MANY).fill(item)

function refusal(endpoint: Endpoint, body: Record<string, unknown>): unknown {
  try {
    return endpoint.parse(body, catalog.find(String(body['model']))!)
  } catch (error) {
    return error
  }
}

describe('a list of nothing but faults is left at the first of them, so that faults take no memory', () => {
  const zeros = new Array<number>(1_000).fill(0)
  const user = (content: unknown) => [{ role: 'user', content }]
  const messages = { model: 'm', max_tokens: 1, messages: user('x') }

  test.each([
    ['messages', messagesSchema(), { ...messages, messages: zeros }],
    ['blocks of a message', messagesSchema(), { ...messages, messages: user(zeros) }],
    ['blocks of a system prompt', messagesSchema(), { ...messages, system: zeros }],
    ['tools', messagesSchema(), { ...messages, tools: zeros }],
    ['stop sequences', messagesSchema(), { ...messages, stop_sequences: zeros }],
    ['messages to be counted', countTokensSchema(), { model: 'm', messages: zeros }],
    ['multimodal messages', multimodalImageSchema(), { model: 'm', input: { messages: zeros } }],
    ['multimodal blocks', multimodalImageSchema(), { model: 'm', input: { messages: user(zeros) } }],
    ['blocks of an interaction', interactionSchema(), { model: 'm', input: zeros }],
    ['tools of an interaction', interactionSchema(), { model: 'm', input: 'x', tools: zeros }],
    ['pictures of an edit', imageReferencesSchema(), { images: zeros }],
  ])('%s', (_name, schema, body) => {
    const issues = schema.safeParse(body).error?.issues ?? []

    expect(JSON.stringify(issues).match(/"path"/g)?.length).toBeLessThan(10)
  })

  test('rejects a long list normally and names the first fault', () => {
    const body = { model: 'qw-image-2.0', input: { messages: [{ role: 'user', content: many(0) }] } }
    const error = refusal(multimodalImageEndpoint as Endpoint, body)

    expect(error).toMatchObject({ status: 400, param: expect.stringMatching(/^input\.messages\[0\]\.content/) })
  })
})

describe('a Messages request with very many blocks is translated like a short one', () => {
  const url = { type: 'url', url: 'https://example.com/a.png' }
  const request = (content: ContentBlock[]) => ({ model: 'm', max_tokens: 1, messages: [{ role: 'user', content }] })

  test.each([
    ['results', many({ type: 'tool_result', tool_use_id: 'a' }), MANY],
    ['pictures in a result', [{ type: 'tool_result', content: many({ type: 'image', source: url }) }], 2],
    [
      'blocks in a document',
      [{ type: 'document', source: { type: 'content', content: many({ type: 'text', text: 'a' }) } }],
      1,
    ],
  ])('%s', (_name, content, messages) => {
    expect(chatRequestFromMessages(request(content)).request.messages).toHaveLength(messages)
  })
})

test.each([
  ['features', (request: MessagesRequest) => extraFeatures(request, () => undefined), 'type', 'odd_20260101'],
  ['advisors', advisorsOf, 'model', 'advisor_20260301'],
])('very many tools that a turn defines have their places at once: %s', (_name, read, member, type) => {
  const tool = { type: 'tool_definition', definition: { type, model: 'm' } }
  const content = many({ type: 'tool_addition', tool })
  const found = read({ model: 'm', max_tokens: 1, messages: [{ role: 'system', content }] })

  expect(found).toHaveLength(MANY)
  expect(found.at(-1)?.param).toBe(`messages[0].content[${MANY - 1}].tool.definition.${member}`)
})

describe('a video request with very many addresses is refused before they are looked at', () => {
  test.each([
    ['wv2.6-t2v', { prompt: 'x', reference_urls: many('https://example.com/a.png') }, 'input.reference_urls'],
    [
      'wv2.6-t2v',
      { prompt: 'x', reference_video_urls: many('https://example.com/a.mp4') },
      'input.reference_video_urls',
    ],
    [
      'wv2.7-t2v',
      { prompt: 'x', media: many({ type: 'reference_image', url: 'https://example.com/a' }) },
      'input.media',
    ],
  ])('%s', (model, input, param) => {
    const error = refusal(videoEndpoint as Endpoint, { model, input })

    expect(GatewayError.isInstance(error)).toBe(true)
    expect(error).toMatchObject({ status: 400, param })
  })
})

describe('a refusal repeats no more of what was sent than people read', () => {
  const long = '7'.repeat(100_000)

  test.each([
    ['wv2.7-t2v', { prompt: 'x' }, { resolution: long }],
    ['wv2.7-t2v', { prompt: 'x' }, { ratio: long }],
    ['wv2.6-t2v', { prompt: 'x' }, { size: long }],
    ['wv2.7-i2v', { prompt: 'x', media: [{ type: long, url: 'https://example.com/a.png' }] }, {}],
  ])('%s', (model, input, parameters) => {
    const error = refusal(videoEndpoint as Endpoint, { model, input, parameters })

    expect(GatewayError.isInstance(error)).toBe(true)
    expect((error as GatewayError).message.length).toBeLessThan(1_000)
  })
})
