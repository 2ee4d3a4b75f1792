import { afterEach, expect, test } from 'vitest'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'

const PATH = '/v1/messages/count_tokens'

let started: StartedGateway

afterEach(() => started.close())

const REQUEST = {
  system: 'Be brief.',
  messages: [{ role: 'user', content: 'How many?' }],
  tools: [{ name: 'first', description: 'D', input_schema: { type: 'object', properties: {} } }],
}

test('Gemini counts the whole request: system prompt and functions too', async () => {
  started = await startGateway()
  const response = await started.post(PATH, { model: 'gmn-2.5-flash', ...REQUEST })

  const { path, body } = await started.sandbox.nextRequest()
  expect(await response.json()).toEqual({ input_tokens: expect.any(Number) })
  expect(path).toBe('/v1beta/models/gemini-2.5-flash:countTokens')
  expect(body).toMatchObject({
    generateContentRequest: {
      model: 'models/gemini-2.5-flash',
      systemInstruction: { parts: [{ text: 'Be brief.' }] },
      contents: [{ role: 'user', parts: [{ text: 'How many?' }] }],
      tools: [{ functionDeclarations: [{ name: 'first' }] }],
    },
  })
})

test('a limit on tokens is untouched by counting', async () => {
  started = await startGateway({ limits: { tokensPerMinute: 1000 } })
  const responses = []
  for (const model of ['gmn-2.5-flash', 'cl-sonnet-4-6', 'chat-relayed']) {
    const text = 'word '.repeat(2000)
    responses.push(await started.post(PATH, { model, messages: [{ role: 'user', content: text }] }))
  }

  expect(responses.map(({ status }) => status)).toEqual([200, 200, 200])
  expect(responses.map(({ headers }) => headers.get('x-ratelimit-remaining-tokens'))).toEqual(['1000', '1000', '1000'])
})

test.each([
  ['gmn-2.5-flash', 'status=503', 529, 'overloaded_error'],
  ['cl-sonnet-4-6', 'status=529', 529, 'overloaded_error'],
  ['cl-sonnet-4-6', 'status=500', 503, 'api_error'],
  ['gmn-2.5-flash', 'garbage', 502, 'api_error'],
  ['cl-sonnet-4-6', 'garbage', 502, 'api_error'],
])('%s: a count that fails (%s) is an error, never a number', async (model, fault, status, type) => {
  started = await startGateway()
  const content = `[[fault:${fault}]] hello`
  const response = await started.post(PATH, { model, messages: [{ role: 'user', content }] })

  expect(response.status).toBe(status)
  expect(await response.json()).toMatchObject({ type: 'error', error: { type } })
})

test('what could not be translated cannot be counted either', async () => {
  started = await startGateway()
  const content = [{ type: 'image', source: { type: 'file', file_id: 'file_1' } }]
  const response = await started.post(PATH, { model: 'gmn-2.5-flash', messages: [{ role: 'user', content }] })

  expect(response.status).toBe(400)
  expect(started.sandbox.requests).toHaveLength(0)
})
