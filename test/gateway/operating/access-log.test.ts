import { afterEach, expect, test } from 'vitest'
import { GatewayError } from '../../../src/core/errors.ts'
import type { GatewayEvent } from '../../../src/core/events.ts'
import type { Logger } from '../../../src/core/logger.ts'
import { accessLog } from '../../../src/gateway/access-log.ts'
import { createGateway } from '../../../src/gateway/gateway.ts'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
import { chatBody, type StartedGateway, startGateway, TEST_ACCOUNT } from '../../support/start-gateway.ts'

let started: StartedGateway | undefined
afterEach(async () => {
  await started?.close()
  started = undefined
})

type Line = readonly [message: string, fields: Record<string, unknown> | undefined]

function collector(): { readonly logger: Logger; readonly lines: Line[] } {
  const lines: Line[] = []
  const log = (message: string, fields?: Record<string, unknown>): void => void lines.push([message, fields])
  return { logger: { debug: log, info: log, warn: log, error: log }, lines }
}

test('each request that calls a model has one line, with its cost in dollars and no prompt', async () => {
  const { logger, lines } = collector()
  started = await startGateway({ onEvent: accessLog(logger) })

  const answer = await started.post('/v1/chat/completions', chatBody('chat-relayed', 'a prompt that nobody logs'))
  await answer.text()
  const refused = await started.post('/v1/chat/completions', chatBody('no-such-model', 'Hello'))
  await refused.text()

  expect(lines).toMatchObject([
    [
      'request completed',
      {
        requestId: answer.headers.get('x-request-id'),
        endpoint: 'chat',
        accountId: TEST_ACCOUNT,
        model: 'chat-relayed',
        vendor: 'openai',
        status: 200,
        inputTokens: expect.any(Number),
        outputTokens: expect.any(Number),
        cost: expect.stringMatching(/^0\.\d+$/),
        durationMs: expect.any(Number),
      },
    ],
    ['request refused', { requestId: refused.headers.get('x-request-id'), status: 404, code: 'model_not_found' }],
  ])
  expect(JSON.stringify(lines)).not.toContain('a prompt that nobody logs')
})

test('a task has a line when it ends, with its cost in dollars', () => {
  const { logger, lines } = collector()
  const listen = accessLog(logger, { sample: 0 })
  const task = { requestId: 'req_1', taskId: 'task_1', accountId: 'acct_1', keyId: 'key_1', model: 'm', vendor: 'v' }
  const tags = ['team:a']
  const end = { ...{ endpoint: 'videos', durationMs: 9_000 }, usage: { videoSeconds: 4 } }

  const charged = { costNanoDollars: 300_000_000n, dueNanoDollars: 400_000_000n, code: undefined }
  listen({ type: 'task-ended', ...task, ...end, ...charged, state: 'completed', tags })
  const free = { costNanoDollars: 0n, dueNanoDollars: 0n, usage: undefined, code: 'upstream_rejected' }
  listen({ type: 'task-ended', ...task, ...end, ...free, state: 'failed', tags: [] })

  expect(lines).toEqual([
    ['task completed', { ...task, endpoint: 'videos', durationMs: 9_000, tags, cost: '0.3', due: '0.4' }],
    ['task failed', { ...task, endpoint: 'videos', durationMs: 9_000, code: 'upstream_rejected', cost: '0' }],
  ])
})

const ended = (ending: 'completed' | 'failed'): GatewayEvent => ({
  type: 'request-ended',
  requestId: 'req_1',
  endpoint: 'chat',
  accountId: 'acct_1',
  keyId: 'key_1',
  model: 'm',
  vendor: 'v',
  ending,
  status: 200,
  code: undefined,
  usage: undefined,
  costNanoDollars: 0n,
  dueNanoDollars: 0n,
  durationMs: 1,
  tags: [],
})

test.each([
  [0, 0],
  [0.01, 10],
  [0.25, 250],
  [1, 1000],
])(
  'logs a share of %d of the completed requests as %d lines in a thousand, and all failed ones',
  (sample, expected) => {
    const { logger, lines } = collector()
    const listen = accessLog(logger, { sample })

    for (let count = 0; count < 1000; count++) listen(ended('completed'))
    expect(Math.abs(lines.length - expected)).toBeLessThanOrEqual(1)

    lines.length = 0
    for (let count = 0; count < 10; count++) listen(ended('failed'))
    expect(lines).toHaveLength(10)
  },
)

test.each([-0.1, 1.1, Number.NaN])('a share of %d is refused', (sample) => {
  expect(() => accessLog(collector().logger, { sample })).toThrow(RangeError)
})

test('shows the reason of a failed start in its message, but not to callers of requests', async () => {
  const store = memoryStore()
  const cause = new AggregateError([new Error('connect ECONNREFUSED 10.0.0.7:5432')], '')
  store.start = () => Promise.reject(cause)
  await using gateway = createGateway({ vendors: [], billing: 'off', store })

  const error = await gateway.start().catch((fault: unknown) => fault)
  const answer = await gateway.fetch(new Request('http://host.test/v1/models'))

  expect(GatewayError.isInstance(error)).toBe(true)
  expect(error).toMatchObject({ code: 'store_unavailable', cause })
  expect((error as Error).message).toBe('The store cannot be opened: connect ECONNREFUSED 10.0.0.7:5432')
  expect(answer.status).toBe(503)
  expect(await answer.text()).not.toContain('10.0.0.7')
})
