import { afterEach, expect, test } from 'vitest'
import type { Logger } from '../../src/core/logger.ts'
import type { Observer } from '../../src/core/observer.ts'
import { prometheus } from '../../src/metrics/index.ts'
import { startGateway, TEST_ACCOUNT, TEST_KEY } from '../support/start-gateway.ts'
import { type StartedMcp, startMcp } from './support/start-mcp.ts'
import { callTool, errorIn } from './support/tool-result.ts'

const CHAT = { model: 'chat-relayed', messages: [{ role: 'user', content: 'hello' }] }

const FACTS = {
  tool: 'mine',
  method: 'tools/call',
  accountId: TEST_ACCOUNT,
  keyId: 'k',
  header: () => undefined,
  metadata: () => undefined,
}

let started: StartedMcp

afterEach(() => started.close())

/** Observer that records its notifications, and returns `name` for each tool call. */
function noting(name: string, notes: unknown[]): Observer {
  return {
    toolCallStarted({ tool, accountId }) {
      notes.push([name, 'tool', tool, accountId])
      return name
    },
    toolCallEnded: (toolCall, { outcome, code }) => void notes.push([name, 'end', toolCall, outcome, code]),
    requestStarted: ({ endpoint }, toolCall) => void notes.push([name, 'request', endpoint, toolCall]),
  }
}

test('each observer gets what it returned for a tool call with its requests and its end', async () => {
  const notes: unknown[] = []
  started = await startMcp({
    gateway: { observe: [noting('a', notes), { event: () => undefined }, noting('b', notes)] },
  })
  await callTool(await started.connect(), 'chat_complete', CHAT)
  await (await started.post('/v1/chat/completions', CHAT)).text()

  expect(notes).toEqual([
    ['a', 'tool', 'chat_complete', TEST_ACCOUNT],
    ['b', 'tool', 'chat_complete', TEST_ACCOUNT],
    ['a', 'request', 'chat', 'a'],
    ['b', 'request', 'chat', 'b'],
    ['a', 'end', 'a', 'completed', undefined],
    ['b', 'end', 'b', 'completed', undefined],
    ['a', 'request', 'chat', undefined],
    ['b', 'request', 'chat', undefined],
  ])
})

test('an observer that throws is logged, and neither the call nor the others notice it', async () => {
  const notes: unknown[] = []
  const logged: unknown[] = []
  const log = (message: string, fields?: object): void => void logged.push([message, fields])
  const logger: Logger = { debug() {}, info() {}, warn() {}, error: log }
  const broken: Observer = {
    toolCallStarted() {
      throw new Error('at the start')
    },
    toolCallEnded() {
      throw new Error('at the end')
    },
  }
  started = await startMcp({ gateway: { observe: [broken, noting('b', notes)], logger } })
  const result = await callTool(await started.connect(), 'get_balance', {})

  expect(result.isError).toBe(false)
  expect(notes.map((note) => (note as unknown[])[1])).toEqual(['tool', 'end'])
  expect(logged).toEqual([
    ['an observer threw', { method: 'toolCallStarted', error: new Error('at the start') }],
    ['an observer threw', { method: 'toolCallEnded', error: new Error('at the end') }],
  ])
})

test('omits a message id that is too long for telemetry', async () => {
  const ids: unknown[] = []
  const observer: Observer = { toolCallStarted: ({ messageId }) => void ids.push(messageId) }
  started = await startMcp({ gateway: { observe: [observer] } })
  for (const id of ['short', 7, 'x'.repeat(129)]) {
    const params = { name: 'get_balance', arguments: {} }
    const answer = await fetch(started.mcpUrl, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${TEST_KEY}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params }),
    })
    expect(answer.status).toBe(200)
    await answer.text()
  }

  expect(ids).toEqual(['short', '7', undefined])
})

test('has no notification of tool calls without an observer for them', async () => {
  started = await startMcp({ gateway: { observe: [prometheus()] } })
  const silent = await startGateway()
  const client = await started.connect()

  expect(started.gateway.beginToolCall).toBeUndefined()
  expect(silent.gateway.beginToolCall).toBeUndefined()
  expect(errorIn(await callTool(client, 'chat_complete', { ...CHAT, model: 'unheard-of' }))['code']).toBe(
    'model_not_found',
  )
  await silent.close()
})

test('lets a handler of the host report its own tool calls, which end once and belong to one gateway', async () => {
  const notes: unknown[] = []
  started = await startMcp({ gateway: { observe: [noting('a', notes)] } })
  const other = await startGateway({ observe: [noting('b', [])] })
  const toolCall = started.gateway.beginToolCall?.(FACTS)
  const principal = { accountId: TEST_ACCOUNT, keyId: 'k', tier: 'paid' } as const
  if (toolCall === undefined) throw new Error('nobody listens')
  await started.gateway.client(principal, { toolCall }).chat.completions.create(CHAT as never)
  toolCall.ended('failed', 'internal_error')
  toolCall.ended('completed')

  expect(notes).toEqual([
    ['a', 'tool', 'mine', TEST_ACCOUNT],
    ['a', 'request', 'chat', 'a'],
    ['a', 'end', 'a', 'failed', 'internal_error'],
  ])
  expect(() => other.gateway.client(principal, { toolCall })).toThrow('beginToolCall of the same gateway')
  await other.close()
})
