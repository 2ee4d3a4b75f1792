import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import type { RoutingOptions } from '../../src/routing/candidate.ts'
import { openaiCompatible } from '../../src/vendors/openai-compatible/openai-compatible.ts'
import { chatBody, type StartedGateway, startGateway } from '../support/start-gateway.ts'

const CALLS = 1000
const AT_ONCE = 20

let servers: Server[] = []
let started: StartedGateway | undefined

afterEach(async () => {
  await started?.close()
  for (const server of servers) {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  servers = []
})

interface StandIn {
  readonly baseURL: string
  attempts: number
  /** Status of each answer, or `undefined` to reset the connection. */
  status: number | undefined
}

/** A vendor that counts its attempts and fails them all, until it is told to answer. */
async function standIn(status: number | undefined): Promise<StandIn> {
  const stand: { baseURL: string; attempts: number; status: number | undefined } = { baseURL: '', attempts: 0, status }
  const server = createServer((request, response) => {
    stand.attempts += 1
    request.resume()
    request.on('end', () => {
      if (stand.status === undefined) {
        request.socket.destroy()
        return
      }
      response.writeHead(stand.status, { 'content-type': 'application/json' })
      response.end(stand.status === 200 ? ANSWER : '{"error":{"message":"down"}}')
    })
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  stand.baseURL = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  return stand
}

const ANSWER = JSON.stringify({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'up',
  choices: [{ index: 0, message: { role: 'assistant', content: 'hello' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
})

async function callTimes(calls: number): Promise<Map<number, number>> {
  const statuses = new Map<number, number>()
  let left = calls
  const work = async (): Promise<void> => {
    while (left-- > 0) {
      const response = await started!.post('/v1/chat/completions', chatBody('routed', 'hello'))
      await response.arrayBuffer()
      statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  return statuses
}

async function start(stands: readonly StandIn[], keysPerVendor: number, routing: RoutingOptions = {}): Promise<void> {
  const apiKey = Array.from({ length: keysPerVendor }, (_none, index) => `key-${index}`)
  const vendors = stands.map(({ baseURL }, index) =>
    openaiCompatible({ id: `vendor-${index}`, baseURL, apiKey, models: [] }),
  )
  const routes = vendors.map(({ id }) => ({ vendor: id }))
  started = await startGateway({
    vendors,
    models: [{ id: 'routed', kind: 'chat', vendor: 'vendor-0', upstream: 'up', routes }],
    billing: 'off',
    routing,
  })
}

const sum = (stands: readonly StandIn[]): number => stands.reduce((total, { attempts }) => total + attempts, 0)

describe.each([
  ['answers 503', 503],
  ['resets every connection', undefined],
] as const)('a vendor that %s', (_name, status) => {
  test('gets at most 1,100 attempts for 1,000 calls', { timeout: 60_000 }, async () => {
    const stand = await standIn(status)
    await start([stand], 1)

    const statuses = await callTimes(CALLS)

    expect(statuses).toEqual(new Map([[503, CALLS]]))
    expect(stand.attempts).toBeGreaterThanOrEqual(CALLS)
    expect(stand.attempts).toBeLessThanOrEqual(1100)
    // Once it is ejected, no request asks it a second time, whatever the budget allows.
    expect(stand.attempts).toBeLessThanOrEqual(CALLS + AT_ONCE)
  })
})

test('two dead vendors with two keys each get at most 1,100 attempts together', { timeout: 60_000 }, async () => {
  const stands = [await standIn(503), await standIn(undefined)]
  await start(stands, 2)

  await callTimes(CALLS)

  expect(sum(stands)).toBeGreaterThanOrEqual(CALLS)
  expect(sum(stands)).toBeLessThanOrEqual(1100)
})

test('costs no caller an answer if a dead vendor has a live alternative, and rarely calls the dead one', {
  timeout: 60_000,
}, async () => {
  const stands = [await standIn(undefined), await standIn(200)]
  await start(stands, 1)
  // A quiet gateway has few retries; in use it has saved some.
  stands[0]!.status = 200
  await callTimes(CALLS)
  const before = stands[0]!.attempts
  stands[0]!.status = undefined

  const statuses = await callTimes(CALLS)

  expect(before).toBe(CALLS / 2)
  expect(statuses).toEqual(new Map([[200, CALLS]]))
  expect(stands[0]!.attempts - before).toBeLessThan(5 + AT_ONCE)
})

test('the last vendor that is left is asked although it failed, and answers again at once', {
  timeout: 60_000,
}, async () => {
  const stands = [await standIn(503), await standIn(503)]
  await start(stands, 1)
  await callTimes(100)
  stands[1]!.status = 200

  const statuses = await callTimes(100)

  // One of two callers at a time may still meet the dead one, until the live one has answered once.
  expect(statuses.get(200) ?? 0).toBeGreaterThan(100 - AT_ONCE - 2)
  expect(started?.gateway.routes().vendors.map(({ keys }) => keys[0]?.circuit)).toEqual(['open', 'closed'])
})
