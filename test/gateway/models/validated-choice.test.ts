import { afterAll, beforeAll, expect, test } from 'vitest'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'

const TOOLS = [{ type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } }]
const messages = [{ role: 'user', content: 'where?' }]

let started: StartedGateway

beforeAll(async () => {
  started = await startGateway({ billing: 'off' })
})
afterAll(() => started.close())

test.each([
  ['gemini-2.5-pro', { toolConfig: { functionCallingConfig: { mode: 'VALIDATED' } } }, null],
  ['gemini-2.0-flash', { toolConfig: { functionCallingConfig: { mode: 'AUTO' } } }, 'tool_choice'],
  ['cl-sonnet-4-6', { tool_choice: { type: 'auto' } }, 'tool_choice'],
])('sends the choice validated to %s, or auto with a report', async (model, sent, dropped) => {
  const response = await started.post('/v1/chat/completions', {
    model,
    messages,
    tools: TOOLS,
    tool_choice: 'validated',
  })

  expect([response.status, await response.text()]).toEqual([200, expect.anything()])
  expect(started.sandbox.requests.at(-1)?.body).toMatchObject(sent)
  expect(response.headers.get('x-signalbox-dropped')).toBe(dropped)
})

test('leaves out the choice validated without tools', async () => {
  for (const model of ['gemini-2.5-pro', 'cl-sonnet-4-6']) {
    const response = await started.post('/v1/chat/completions', { model, messages, tool_choice: 'validated' })

    expect([response.status, await response.text()]).toEqual([200, expect.anything()])
    expect(started.sandbox.requests.at(-1)?.body).not.toHaveProperty('tool_choice')
  }
})
