import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Sandbox, sandboxVendors } from '../../../src/testing/index.ts'
import { azureOpenai } from '../../../src/vendors/azure-openai/azure-openai.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import { presets } from '../../../src/vendors/presets/presets.ts'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'
import { messagesBody } from '../messages/messages-requests.ts'

const OFF = { thinking: { type: 'disabled' } }
const BUDGET = { thinking: { type: 'enabled', budget_tokens: 31_999 }, max_tokens: 16_000 }
const MAX = { output_config: { effort: 'max' } }
const TOOLS = { tools: [{ name: 'look', input_schema: { type: 'object' } }] }

let sandbox: Sandbox
let started: StartedGateway

beforeAll(async () => {
  sandbox = sandboxVendors()
  const at = (preset: string) => ({ apiKey: 'key-of-preset', baseURL: `https://vendor.example/presets/${preset}/v1` })
  started = await startGateway({
    billing: 'off',
    transport: sandbox.transport(),
    vendors: [
      openai({ apiKey: 'key-of-openai' }),
      azureOpenai({
        apiKey: 'key-of-azure',
        resource: 'a',
        deployments: { mine: 'gpt-5' },
        models: [{ id: 'azure-mine', kind: 'chat', upstream: 'mine' }],
      }),
      openaiCompatible(presets.groq, at('groq')),
      openaiCompatible(presets.xai, at('xai')),
    ],
    models: [],
  })
})
afterAll(async () => {
  await started.close()
  await sandbox.close()
})

/** Effort that the vendor got, and the field that the gateway names as dropped. */
async function sentEffort(path: string, body: object): Promise<[effort: unknown, dropped: string | null]> {
  const response = await started.post(path, body)
  expect([response.status, await response.text()]).toEqual([200, expect.anything()])
  const sent = sandbox.requests.at(-1)?.body as Record<string, unknown>
  const reasoning = sent['reasoning'] as { readonly effort?: unknown } | undefined
  return [reasoning?.effort ?? sent['reasoning_effort'], response.headers.get('x-signalbox-dropped')]
}

describe('thinking and effort of Messages', () => {
  test.each([
    ['gpt-4o', [undefined, null], [undefined, 'thinking'], [undefined, 'thinking']],
    ['gpt-4.1', [undefined, null], [undefined, 'thinking'], [undefined, 'thinking']],
    ['ft:gpt-4o-mini-2024-07-18:mine::a1', [undefined, null], [undefined, 'thinking'], [undefined, 'thinking']],
    ['gpt-5-chat-latest', [undefined, null], [undefined, 'thinking'], [undefined, 'thinking']],
    ['o4-mini', ['low', 'thinking'], ['high', null], ['high', 'thinking']],
    ['o3-2025-04-16', ['low', 'thinking'], ['high', null], ['high', 'thinking']],
    ['gpt-5', ['minimal', 'thinking'], ['high', null], ['high', 'thinking']],
    ['azure-mine', ['minimal', 'thinking'], ['high', null], ['high', 'thinking']],
    ['gpt-5.1', ['none', null], ['high', null], ['high', 'thinking']],
    ['gpt-5.4', ['none', null], ['high', null], ['xhigh', 'thinking']],
    ['gpt-5.4-pro', ['medium', 'thinking'], ['high', null], ['xhigh', 'thinking']],
    ['gpt-6.1-sol', ['low', 'thinking'], ['high', null], ['max', null]],
    ['groq/llama-3.3-70b-versatile', [undefined, null], [undefined, 'thinking'], [undefined, 'thinking']],
    ['groq/openai/gpt-oss-120b', ['low', 'thinking'], ['high', null], ['high', 'thinking']],
    ['grok-4', [undefined, 'thinking'], [undefined, 'thinking'], [undefined, 'thinking']],
    ['grok-4.20-0309-reasoning', [undefined, 'thinking'], [undefined, 'thinking'], [undefined, 'thinking']],
    ['grok-4.3', ['none', null], ['high', null], ['high', 'thinking']],
    ['grok-4.5', ['low', 'thinking'], ['high', null], ['high', 'thinking']],
    ['grok-4.6', ['low', 'thinking'], ['high', null], ['xhigh', 'thinking']],
  ])('sends the nearest effort that %s accepts', async (model, off, budget, max) => {
    expect(await sentEffort('/v1/messages', messagesBody(model, 'hi', OFF))).toEqual(off)
    expect(await sentEffort('/v1/messages', messagesBody(model, 'hi', BUDGET))).toEqual(budget)
    expect(await sentEffort('/v1/messages', messagesBody(model, 'hi', MAX))).toEqual(max)
    expect(await sentEffort('/v1/messages', messagesBody(model, 'hi', { ...OFF, ...TOOLS }))).toEqual(off)
  })

  test.each(['gpt-5', 'o3', 'gpt-6.1-sol'])(
    'leave out a temperature and stop sequences that %s rejects',
    async (model) => {
      const body = { ...MAX, temperature: 0.5, stop_sequences: ['END'] }
      const [, dropped] = await sentEffort('/v1/messages', messagesBody(model, 'hi', body))

      expect(dropped?.split(',').map((name) => name.trim())).toEqual(
        expect.arrayContaining(['temperature', 'stop_sequences']),
      )
      expect(sandbox.requests.at(-1)?.body).not.toHaveProperty('temperature')
      expect(sandbox.requests.at(-1)?.body).not.toHaveProperty('stop')
    },
  )

  test('keeps a temperature and stop sequences at a model that does not reason', async () => {
    const body = { temperature: 0.5, stop_sequences: ['END'] }

    expect(await sentEffort('/v1/messages', messagesBody('gpt-4o', 'hi', body))).toEqual([undefined, null])
    expect(sandbox.requests.at(-1)?.body).toMatchObject({ temperature: 0.5, stop: ['END'] })
  })
})

test('sends the nearest effort of Responses to a model with chat completions only', async () => {
  const model = 'groq/openai/gpt-oss-120b'
  const chats = await startGateway({
    billing: 'off',
    transport: sandbox.transport(),
    vendors: [
      openaiCompatible(presets.groq, {
        apiKey: 'key-of-groq',
        baseURL: 'https://vendor.example/presets/groq/v1',
        responses: false,
      }),
    ],
    models: [],
  })
  const response = await chats.post('/v1/responses', {
    model,
    input: 'hi',
    store: false,
    reasoning: { effort: 'xhigh' },
  })
  await chats.close()

  expect([response.status, response.headers.get('x-signalbox-dropped')]).toEqual([200, 'reasoning.effort'])
  expect(sandbox.requests.at(-1)?.body).toMatchObject({ reasoning_effort: 'high' })
})

test('sends the effort of a chat unchanged', async () => {
  const messages = [{ role: 'user', content: 'hi' }]
  const response = await started.post('/v1/chat/completions', { model: 'gpt-5', messages, reasoning_effort: 'max' })

  expect([response.status, await response.text()]).toEqual([400, expect.stringContaining("'max' is not supported")])
})
