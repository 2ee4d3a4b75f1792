import { afterAll, beforeAll, expect, test } from 'vitest'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'

let started: StartedGateway

beforeAll(async () => {
  started = await startGateway({ billing: 'off' })
})
afterAll(() => started.close())

const MODELS = ['cl-sonnet-4-6', 'gmn-2.5-flash', 'chat-qwen', 'chat-relayed']

test.each(MODELS)('reports the text of reasoning items as dropped at %s', async (model) => {
  const item = { type: 'reasoning', summary: [{ type: 'summary_text', text: 'I think' }] }
  const input = [
    { role: 'user', content: 'hi' },
    item,
    { role: 'assistant', content: 'ho' },
    { role: 'user', content: 'so' },
  ]
  const answer = await started.post('/v1/responses', { model, input, store: false })

  expect(answer.status).toBe(200)
  // The vendor of the dialect gets the item.
  expect(answer.headers.get('x-signalbox-dropped')).toBe(model === 'chat-relayed' ? null : 'input.reasoning')
})

test.each(MODELS.slice(1))('reports the text of thinking blocks as dropped at %s', async (model) => {
  const thinking = { type: 'thinking', thinking: 'I think', signature: '' }
  const messages = [
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: [thinking, { type: 'text', text: 'ho' }] },
    { role: 'user', content: 'so' },
  ]
  const answer = await started.post('/v1/messages', { model, messages, max_tokens: 100 })

  expect(answer.status).toBe(200)
  expect(answer.headers.get('x-signalbox-dropped')).toBe('messages.thinking')
})
