import { afterEach, expect, test } from 'vitest'
import { chatBody, type StartedGateway, startGateway } from '../../support/start-gateway.ts'

const CHAT = '/v1/chat/completions'
const MODELS = [
  { id: 'guarded', kind: 'chat', vendor: 'openai', upstream: 'gpt-4o', fallbacks: ['cl-sonnet-4-6'] },
] as const

let started: StartedGateway

afterEach(() => started.close())

const moderation = (mode: string) => ({ model: 'omni-moderation-latest', policy: { input: { mode } } })
const vendorsAsked = () => started.sandbox.requests.map(({ vendor }) => vendor)

test('a request to block goes to no fallback that would not block', async () => {
  started = await startGateway({ models: [...MODELS], billing: 'off' })
  started.sandbox.reply({ when: { vendor: 'openai' }, error: { status: 503 }, times: Number.POSITIVE_INFINITY })
  const blocking = await started.post(CHAT, chatBody('guarded', 'Hi', { moderation: moderation('block') }))

  expect(blocking.status).toBe(503)
  expect(new Set(vendorsAsked())).toEqual(new Set(['openai']))
})

test('a request for scores is answered by the fallback, which reports them as dropped', async () => {
  started = await startGateway({ models: [...MODELS], billing: 'off' })
  started.sandbox.reply({ when: { vendor: 'openai' }, error: { status: 503 }, times: Number.POSITIVE_INFINITY })
  const scoring = await started.post(CHAT, chatBody('guarded', 'Hi', { moderation: moderation('score') }))

  expect(scoring.status).toBe(200)
  expect(scoring.headers.get('x-signalbox-dropped')).toBe('moderation')
  expect(vendorsAsked().at(-1)).toBe('anthropic')
})

test('rejects a request to block before a vendor is called if no vendor of the model blocks', async () => {
  started = await startGateway({ billing: 'off' })
  const response = await started.post(CHAT, chatBody('cl-sonnet-4-6', 'Hi', { moderation: moderation('block') }))

  expect(response.status).toBe(400)
  expect(await response.json()).toMatchObject({
    error: { code: 'unsupported_parameter', param: 'moderation.policy.input.mode' },
  })
  expect(vendorsAsked()).toEqual([])
})
