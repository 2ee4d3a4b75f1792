import { Buffer } from 'node:buffer'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { createCatalog } from '../../src/catalog/catalog.ts'
import type { CatalogModel } from '../../src/catalog/model.ts'
import { BUILT_IN_MODELS } from '../../src/catalog/models/built-in-models.ts'
import { chatSchema } from '../../src/endpoints/chat/chat-schema.ts'
import { type EmbeddingsRequest, embeddingsSchema } from '../../src/endpoints/embeddings/embeddings-request.ts'
import { imageReferencesSchema } from '../../src/endpoints/image-edits/image-edit-request.ts'
import { multimodalImageEndpoint, multimodalImageSchema } from '../../src/endpoints/images/images-endpoint.ts'
import { interactionSchema } from '../../src/endpoints/images/interactions/interaction-schema.ts'
import { pictureSchema } from '../../src/endpoints/images/openai/openai-image-schema.ts'
import { chatRequestFromMessages } from '../../src/endpoints/messages/chat-request-from-messages.ts'
import { messagesSchema } from '../../src/endpoints/messages/messages-request.ts'
import { speechSchema, unusedSpeechFields } from '../../src/endpoints/speech/speech-request.ts'
import { videoSchema } from '../../src/endpoints/videos/video-endpoint.ts'
import { DASHSCOPE_EMBEDDING_RULES, DASHSCOPE_FIELDS, dashscope } from '../../src/vendors/dashscope/dashscope.ts'
import { CHAT_FIELDS as GEMINI } from '../../src/vendors/gemini/chat-to-wire.ts'
import { gemini } from '../../src/vendors/gemini/gemini.ts'
import { MESSAGES_CHAT_FIELDS as ANTHROPIC } from '../../src/vendors/shared/messages-from-chat.ts'
import { OPENAI_FIELDS, OPENAI_REASONING_FIELDS } from '../../src/vendors/shared/openai-chat-dialect.ts'
import { pictureFields } from '../../src/vendors/shared/openai-images.ts'
import { VOYAGE_RULES } from '../../src/vendors/voyage/voyage.ts'
import { interactionCall, interactionsOf } from '../vendors/gemini/interaction-call.ts'
import { callFromRequest, NOW_MS } from '../vendors/shared/vendor-call.ts'
import { fieldTable, schemaFields, verdictOf } from './support/field-table.ts'

const catalog = createCatalog(BUILT_IN_MODELS)

/** Each request's table: what the schema names, and what the API specification lists. */
const REQUESTS: readonly (readonly [heading: string, inSchema: readonly string[], specified: string])[] = [
  [
    'Chat completion request',
    schemaFields(chatSchema()),
    'model messages temperature top_p max_tokens stream stop presence_penalty frequency_penalty tools response_format user',
  ],
  [
    'Chat message',
    Object.keys(messageProperties()),
    'role content content[].text content[].image_url name tool_call_id',
  ],
  ['Messages request', [...schemaFields(messagesSchema()), 'any other'], ''],
  ['Embedding request', schemaFields(embeddingsSchema()), 'model input encoding_format dimensions'],
  [
    'Multimodal image request',
    schemaFields(multimodalImageSchema()),
    'model input input.messages input.messages[].role input.messages[].content[].text ' +
      'input.messages[].content[].image parameters parameters.size parameters.n parameters.seed ' +
      'parameters.watermark parameters.negative_prompt parameters.prompt_extend',
  ],
  [
    'Interactions-style image request',
    schemaFields(interactionSchema()),
    'model input input[].type input[].text input[].mime_type input[].data system_instruction response_format ' +
      'response_format.type response_format.mime_type response_format.image_size response_format.aspect_ratio ' +
      'generation_config generation_config.thinking_level generation_config.temperature previous_interaction_id tools store',
  ],
  ["OpenAI's image request", schemaFields(pictureSchema()), 'size'],
  [
    'Image edit request',
    [...schemaFields(pictureSchema()), ...schemaFields(imageReferencesSchema()), 'image'],
    'image model prompt mask n size quality response_format output_format background user',
  ],
  [
    'Video generation request',
    schemaFields(videoSchema()),
    'model duration resolution aspect_ratio input parameters webhook_url',
  ],
  ['Speech request', schemaFields(speechSchema()), 'model input voice response_format instructions speed'],
]

describe.each(REQUESTS)('the table of: %s', (heading, inSchema, specified) => {
  const table = fieldTable(heading)

  test('lists the fields of the schema and no others', () => {
    // Items of lists are in no schema that can be read; the tests below send them.
    expect(table.fields.filter((field) => !field.includes('[]')).sort()).toEqual([...new Set(inSchema)].sort())
  })

  test('marks the fields of the API specification', () => {
    expect([...table.specified].sort()).toEqual(specified.split(' ').filter(Boolean).sort())
  })
})

test('the table of chat is that of the field rules', () => {
  const table = fieldTable('Chat completion request')
  const rules = { OpenAI: OPENAI_FIELDS, Anthropic: ANTHROPIC, Gemini: GEMINI, DashScope: DASHSCOPE_FIELDS }
  const words = (rule: unknown) => (rule === 'pass' ? 'passed' : rule === 'drop' ? 'dropped' : rule)

  for (const [vendor, fieldRules] of Object.entries(rules)) {
    for (const [field, cell] of table.column(vendor)) {
      const rule = words(Object.entries(fieldRules).find(([name]) => name === field)?.[1])
      // The vendor's id takes the place of the public one even where no rule says so.
      const expected = typeof rule === 'string' && field !== 'model' ? rule : 'mapped'
      expect(verdictOf(cell), `${field} at ${vendor}`).toBe(expected)
    }
  }
  const renamed = table.fields.filter((field) => {
    const [usual, reasoning] = [OPENAI_FIELDS, OPENAI_REASONING_FIELDS].map((fields) => Object.entries(fields))
    return usual?.find(([name]) => name === field)?.[1] !== reasoning?.find(([name]) => name === field)?.[1]
  })
  const saysBoth = [...table.column('OpenAI')].filter(([, cell]) => cell.startsWith('passed, or mapped'))
  expect(saysBoth.map(([field]) => field)).toEqual(renamed)
})

test('the table of messages is what the translation does', () => {
  const table = fieldTable('Messages request').column('other vendors')
  const user = [{ role: 'user', content: 'hi' }]
  const request = {
    ...{ model: 'gmn-2.5-pro', messages: user, max_tokens: 9, system: 'Be brief.', stream: true, temperature: 1 },
    ...{ top_p: 0.5, stop_sequences: ['.'], tools: [{ name: 'f', input_schema: { type: 'object' } }] },
    ...{ tool_choice: { type: 'auto' }, thinking: { type: 'disabled' }, output_config: { effort: 'low' } },
    ...{ metadata: { user_id: 'u1' }, thread: null, 'any other': 1 },
  }
  expect(Object.keys(request).sort()).toEqual([...table.keys()].sort())

  const { request: chat, dropped } = chatRequestFromMessages({ ...request, unheard_of: 1 })

  const expected = [...table].filter(([, cell]) => verdictOf(cell) === 'dropped').map(([field]) => field)
  const refused = [...table].filter(([, cell]) => verdictOf(cell) === 'refused').map(([field]) => field)
  expect([expected, refused]).toEqual([['any other'], ['thread']])
  expect(() => chatRequestFromMessages({ ...request, thread: { type: 'create' } })).toThrow('thread')
  expect(dropped).toEqual(['(unprintable)', 'unheard_of'])
  expect(chat).toMatchObject({ stop: ['.'], reasoning_effort: 'none', user: 'u1', max_tokens: 9 })
})

test('the table of embeddings is that of the field rules', () => {
  const table = fieldTable('Embedding request')
  const request: EmbeddingsRequest = { model: 'm', input: 'a', encoding_format: 'float', dimensions: 8, user: 'u' }
  expect(Object.keys(request).sort()).toEqual([...table.fields].sort())
  const { dropped } = gemini({ apiKey: 'k' }).embeddings!.toWire(callFromRequest(request))

  const expected = (field: string, rule: unknown) =>
    rule === 'drop' ? 'dropped' : typeof rule === 'object' || field === 'model' ? 'mapped' : 'passed'
  for (const field of table.fields) {
    const verdict = (vendor: string) => verdictOf(table.column(vendor).get(field))
    expect(verdict('OpenAI'), field).toBe(expected(field, undefined))
    expect(verdict('DashScope'), field).toBe(expected(field, DASHSCOPE_EMBEDDING_RULES[field]))
    expect(verdict('Voyage'), field).toBe(expected(field, VOYAGE_RULES[field]))
    expect(verdict('Gemini'), field).toBe(dropped.includes(field) ? 'dropped' : 'mapped')
  }
})

test('a multimodal request of all listed fields passes but for the model', () => {
  const parameters = { size: '1664*928', n: 1, seed: 7, watermark: true, negative_prompt: 'fog', prompt_extend: false }
  const content = [{ image: 'https://cdn.example.net/1.png' }, { text: 'a boat' }]
  const body = { model: 'qw-image-2.0', input: { messages: [{ role: 'user', content }] }, parameters }
  const model = modelOf('qw-image-2.0')
  const table = fieldTable('Multimodal image request')
  const request = multimodalImageEndpoint.parse(body, model) as never

  const wire = dashscope({ apiKey: 'k' }).images!.multimodal!.toWire({
    ...{ request, bytes: Buffer.from(JSON.stringify(body)), model, publicModel: body.model, apiKey: 'k' },
    ...{ stream: false, nowMs: NOW_MS },
  })

  expect(JSON.parse(String(wire.body))).toEqual({ ...body, model: 'qwen-image-2.0' })
  expect(wire.dropped).toEqual([])
  for (const field of Object.keys(parameters)) {
    const cell = table.column('DashScope').get(`parameters.${field}`)
    const isMissing = modelOf('qw-image-edit').image?.refusedFields?.includes(field) === true
    expect(cell?.includes('`qw-image-edit`'), field).toBe(isMissing)
  }
})

test('the tables of interactions are what the two ways to the vendor drop', () => {
  const table = fieldTable('Interactions-style image request')
  const fields = {
    ...{
      input: [{ type: 'text', text: 'a' } as const, { type: 'image', mime_type: 'image/png', data: 'AA==' } as const],
    },
    ...{ system_instruction: 's', tools: [{ type: 'function' }, { type: 'google_search' }], store: true, stream: true },
    response_format: { type: 'image', mime_type: 'image/png', image_size: '1K', aspect_ratio: '1:1' } as const,
    generation_config: { thinking_level: 'high', temperature: 1 },
  }
  // The gateway itself takes the tier out of every interaction.
  const droppedBy = (column: string) =>
    [...table.column(column)]
      .filter(([field, cell]) => field !== 'service_tier' && verdictOf(cell) === 'dropped')
      .map(([field]) => field)

  const interactions = interactionsOf().toWire(interactionCall(fields))
  const older = interactionsOf({ images: 'generateContent' }).toWire(interactionCall(fields))

  expect(interactions.dropped).toEqual(['tools[1]'])
  expect(droppedBy('Interactions API')).toEqual([])
  expect([...older.dropped].sort()).toEqual(droppedBy('older API').sort())
  expect(verdictOf(table.column('older API').get('previous_interaction_id'))).toBe('refused')
  expect(() =>
    interactionsOf({ images: 'generateContent' }).toWire(interactionCall({ previous_interaction_id: 'x' })),
  ).toThrow('previous_interaction_id')
})

test.each([
  ['Image edit request', '`gp-image-*`', 'gp-image-2'],
  ['Image edit request', 'de-2', 'de-2'],
  ["OpenAI's image request", 'OpenAI', 'gp-image-2'],
])('%s: the column %s is what the model drops and refuses', (heading, column, id) => {
  const cells = fieldTable(heading).column(column.replaceAll('`', ''))
  const model = modelOf(id)
  const options = { model: id, prompt: 'a', response_format: 'url', quality: 'high', output_format: 'png' }

  const { dropped } = pictureFields(options, model)

  for (const field of dropped) expect(cells.get(field), field).toContain('dropped')
  const refused = [...cells].filter(([, cell]) => verdictOf(cell) === 'refused').map(([field]) => field)
  expect(refused.sort()).toEqual([...(model.image?.refusedFields ?? [])].sort())
  expect(verdictOf(cells.get('response_format'))).toBe(dropped.includes('response_format') ? 'dropped' : 'passed')
})

test('the table of speech is what has no effect', () => {
  const cells = fieldTable('Speech request').column('DashScope')
  const request = Object.fromEntries([...cells.keys()].map((field) => [field, 'x']))

  const dropped = unusedSpeechFields(request as never)

  expect([...cells].filter(([, cell]) => verdictOf(cell) === 'dropped').map(([field]) => field)).toEqual(dropped)
})

function modelOf(id: string): CatalogModel {
  const model = catalog.find(id)
  if (model === undefined) throw new Error(`no such model: ${id}`)
  return model
}

function messageProperties(): Record<string, unknown> {
  const schema = z.toJSONSchema(chatSchema()) as unknown as {
    properties: { messages: { items: { properties: Record<string, unknown> } } }
  }
  return schema.properties.messages.items.properties
}
