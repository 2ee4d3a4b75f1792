import { afterAll, beforeAll, expect, test } from 'vitest'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'
import { messagesBody } from '../messages/messages-requests.ts'

const SCHEMA = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
const PARAMETERS = { type: 'object', properties: {} }
const messages = [{ role: 'user', content: 'where?' }]

/** Requests for JSON with a function, by API, and the name of the field that says so. */
const REQUESTS: readonly (readonly [path: string, body: (model: string) => object, field: string])[] = [
  [
    '/v1/chat/completions',
    (model) => ({
      model,
      messages,
      tools: [{ type: 'function', function: { name: 'look', parameters: PARAMETERS } }],
      response_format: { type: 'json_schema', json_schema: { name: 'place', schema: SCHEMA } },
    }),
    'response_format',
  ],
  [
    '/v1/messages',
    (model) =>
      messagesBody(model, 'where?', {
        tools: [{ name: 'look', input_schema: PARAMETERS }],
        output_config: { format: { type: 'json_schema', schema: SCHEMA } },
      }),
    'output_config.format',
  ],
  [
    '/v1/responses',
    (model) => ({
      model,
      input: 'where?',
      store: false,
      tools: [{ type: 'function', name: 'look', parameters: PARAMETERS, strict: false }],
      text: { format: { type: 'json_schema', name: 'place', schema: SCHEMA } },
    }),
    'text.format',
  ],
]

let started: StartedGateway

beforeAll(async () => {
  started = await startGateway({ billing: 'off' })
})
afterAll(() => started.close())

const sent = (): Record<string, unknown> => started.sandbox.requests.at(-1)?.body as Record<string, unknown>

test.each(REQUESTS)(
  '%s asks gemini-2.5-pro for JSON by an instruction if functions are offered',
  async (path, body, field) => {
    const response = await started.post(path, body('gemini-2.5-pro'))

    expect([response.status, await response.text()]).toEqual([200, expect.anything()])
    expect(response.headers.get('x-signalbox-dropped')).toBe(field)
    expect(sent()['generationConfig'] ?? {}).not.toHaveProperty('responseMimeType')
    expect(JSON.stringify(sent()['systemInstruction'])).toContain(JSON.stringify(JSON.stringify(SCHEMA)).slice(1, -1))
    expect(sent()['tools']).toHaveLength(1)
  },
)

test.each(REQUESTS)('sends Gemini 3 both functions and the schema of the answer by %s', async (path, body) => {
  const response = await started.post(path, body('gemini-3-flash-preview'))

  expect([response.status, await response.text()]).toEqual([200, expect.anything()])
  expect(response.headers.get('x-signalbox-dropped')).toBeNull()
  expect(sent()).toMatchObject({ generationConfig: { responseJsonSchema: SCHEMA }, tools: [{}] })
})

test('sends gemini-2.5-pro the schema of the answer if no functions are offered', async () => {
  const [, body] = REQUESTS[0]!
  const response = await started.post('/v1/chat/completions', { ...body('gemini-2.5-pro'), tools: [] })

  expect([response.status, await response.text()]).toEqual([200, expect.anything()])
  expect(sent()).toMatchObject({ generationConfig: { responseJsonSchema: SCHEMA } })
})
