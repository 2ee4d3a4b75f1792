import { afterEach, expect, test, vi } from 'vitest'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
import { fakeClock } from '../../../src/testing/index.ts'
import { chatBody, type StartedGateway, startGateway } from '../../support/start-gateway.ts'

let started: StartedGateway | undefined
afterEach(async () => {
  vi.restoreAllMocks()
  await started?.close()
  started = undefined
})

function linesOf() {
  const lines: { readonly level: string; readonly text: string; readonly fields: unknown }[] = []
  const at = (level: string) => (text: string, fields?: unknown) => void lines.push({ level, text, fields })
  return { lines, logger: { debug: () => undefined, info: at('info'), warn: at('warn'), error: at('error') } }
}

const down = () => Promise.reject(new Error('connect ECONNREFUSED'))

async function chat(): Promise<number> {
  const response = await started!.post('/v1/chat/completions', chatBody('chat-relayed', 'Hello'))
  await response.arrayBuffer()
  return response.status
}

test('logs one line when the store stops answering and one when it answers again, with the failed requests', async () => {
  const store = memoryStore()
  const clock = fakeClock()
  const { lines, logger } = linesOf()
  started = await startGateway({ store, clock, logger })
  lines.length = 0
  const spies = [vi.spyOn(store.ledger, 'account'), vi.spyOn(store.ledger, 'reserve')]
  for (const spy of spies) spy.mockImplementation(down)

  for (let count = 0; count < 20; count++) expect(await chat()).toBe(503)
  clock.advance(1_000)
  expect(await chat()).toBe(503)
  for (const spy of spies) spy.mockRestore()
  clock.advance(1_000)
  await expect.poll(() => lines.length).toBe(2)

  expect(await chat()).toBe(200)
  const counts = { failedRequests: 21, otherFaults: 0 }
  expect(lines).toMatchObject([
    { level: 'error', text: 'the store does not answer', fields: { error: new Error('connect ECONNREFUSED') } },
    { level: 'info', text: 'the store answers again', fields: { downMs: 2_000, ...counts } },
  ])
  expect(started.events.filter(({ type }) => type.startsWith('store-'))).toMatchObject([
    { type: 'store-unavailable', error: new Error('connect ECONNREFUSED') },
    { type: 'store-recovered', downMs: 2_000, ...counts },
  ])
  expect(started.events.filter(({ type }) => type === 'internal-error')).toHaveLength(21)
})

test('logs the failure of one statement as its own line while the store answers', async () => {
  const store = memoryStore()
  const { lines, logger } = linesOf()
  started = await startGateway({ store, logger })
  lines.length = 0
  vi.spyOn(store.ledger, 'reserve').mockImplementation(down)

  expect([await chat(), await chat()]).toEqual([503, 503])

  await expect.poll(() => lines.map(({ text }) => text)).toEqual(Array(2).fill('a request failed inside the gateway'))
})
