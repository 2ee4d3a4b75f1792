import { createHmac } from 'node:crypto'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { azureOpenai } from '../../../src/vendors/azure-openai/azure-openai.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import { presets } from '../../../src/vendors/presets/presets.ts'
import { type StartedGateway, startGateway, TEST_ACCOUNT } from '../../support/start-gateway.ts'
import { type ResponsesVendor, responsesVendor } from '../responses/responses-vendor.ts'

const KEY = 'a-secret-of-the-operator'
const IDENTIFIER = createHmac('sha256', KEY)
  .update(JSON.stringify([TEST_ACCOUNT, null]))
  .digest('hex')

let vendor: ResponsesVendor
let started: StartedGateway

beforeEach(async () => {
  vendor = await responsesVendor()
  const vendors = [openai({ apiKey: 'vendor-key', baseURL: vendor.origin, safetyIdentifierKey: KEY })]
  started = await startGateway({ vendors, billing: 'off' })
})

afterEach(async () => {
  await started.close()
  await vendor.close()
})

const sent = (): Record<string, unknown> => JSON.parse(vendor.calls[0]!.body) as Record<string, unknown>

test.each([
  ['/v1/responses', { input: 'hi' }],
  ['/v1/chat/completions', { messages: [{ role: 'user', content: 'hi' }] }],
])('sends a keyed hash of account and end user to the vendor of %s', async (path, content) => {
  await started.post(path, { model: 'chat-relayed', ...content })
  expect(sent()).toMatchObject({ safety_identifier: IDENTIFIER })
  expect(sent()).not.toHaveProperty('user')
})

test('replaces the identifiers that a caller wrote, so that it cannot pose as another end user', async () => {
  const posing = { safety_identifier: 'someone else', user: 'someone else' }
  await started.post('/v1/responses', { model: 'chat-relayed', input: 'hi', ...posing })
  expect(sent()).toMatchObject({ safety_identifier: IDENTIFIER, user: IDENTIFIER })
  expect(vendor.calls[0]!.body).not.toContain('someone else')
})

test('rejects a short key at start', () => {
  expect(() => openai({ safetyIdentifierKey: 'short' })).toThrow('safetyIdentifierKey must be a string of at least 16')
})

const MODEL_ROW = { kind: 'chat', upstream: 'their-model', limits: { maxOutputTokens: 100 } } as const

test.each([
  ['Azure', (origin: string) => azureOpenai({ endpoint: origin, apiKey: 'vendor-key', safetyIdentifierKey: KEY })],
  [
    'a preset',
    (baseURL: string) => openaiCompatible(presets.huggingface, { baseURL, apiKey: 'key', safetyIdentifierKey: KEY }),
  ],
  [
    'another server',
    (baseURL: string) =>
      openaiCompatible({ id: 'own', baseURL, apiKey: 'key', models: [], responses: true, safetyIdentifierKey: KEY }),
  ],
] as const)('sends the identifiers of chats and Responses to %s', async (_name, make) => {
  await started.close()
  const asked = make(vendor.origin)
  const models = [{ ...MODEL_ROW, id: 'served', vendor: asked.id }]
  started = await startGateway({ vendors: [asked], models, billing: 'off' })
  const posing = { user: 'someone else', safety_identifier: 'someone else' }
  await started.post('/v1/responses', { model: 'served', input: 'hi', ...posing })
  await started.post('/v1/chat/completions', {
    model: 'served',
    messages: [{ role: 'user', content: 'hi' }],
    ...posing,
  })

  const bodies = vendor.calls.map(({ body }) => JSON.parse(body) as Record<string, unknown>)
  expect(bodies.map((body) => body['safety_identifier'])).toEqual([IDENTIFIER, IDENTIFIER])
  expect(vendor.calls.map(({ body }) => body).join()).not.toContain('someone else')
})
