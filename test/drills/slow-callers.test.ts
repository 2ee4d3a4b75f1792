import { Agent } from 'node:http'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { makeCall } from './support/drill-calls.ts'
import { type DrillProcess, drillPrograms } from './support/drill-process.ts'
import { type FaultVendor, startFaultVendor } from './support/fault-vendor.ts'
import type { GatewayMeasures } from './support/gateway-process.ts'
import type { SlowCallersMeasures, SlowCallersOrder } from './support/slow-callers-program.ts'

const isLong = process.env['DRILL'] === 'long'
const SLOW_READERS = isLong ? 1_000 : 100
const SLOW_WRITERS = isLong ? 1_000 : 100
const CLOSED_CALLERS = 4
/** Enough for a percentile that one pause of the machine does not make. */
const CALLS_A_ROUND = isLong ? 1_000 : 200
/** The fastest of several rounds counts, because the machine also does other work. */
const ROUNDS = 3
/** A 99th percentile below it is no harm, whatever it is without slow callers. */
const HARMLESS_MS = isLong ? 20 : 50
/** On a machine with neighbours, the same work twice differs by a factor of 2. */
const MAX_RATIO = isLong ? 2 : 4
/** One stream's pieces on their way through the gateway, and its connections. */
const MAX_BYTES_PER_READER = 256 * 1024

const start = drillPrograms(['gateway-program', 'slow-callers-program'])
const TIMEOUTS = { connectMs: 5_000, firstByteMs: 120_000, idleMs: 60_000, totalMs: 600_000 }

let healthyVendor: FaultVendor
let slow: DrillProcess<{ readonly origin: string }, SlowCallersMeasures>
type Gateway = DrillProcess<{ readonly url: string }, GatewayMeasures>
let gateway: Gateway
/** A gateway without slow callers. Both are measured at the same time, so that other work of the machine meets both. */
let control: Gateway | undefined
let agent: Agent

beforeEach(async () => {
  agent = new Agent({ keepAlive: true })
  healthyVendor = await startFaultVendor({ isFaulty: false })
  slow = await start('slow-callers-program', {})
})
afterEach(async () => {
  agent.destroy()
  await healthyVendor.close()
  await Promise.all([gateway, slow, control].map((child) => child?.end('SIGKILL')))
  control = undefined
})

async function startGateway(requestTimeoutMs?: number): Promise<Gateway> {
  return start('gateway-program', {
    vendors: [
      { id: 'quick', origin: healthyVendor.origin },
      { id: 'large', origin: slow.ready.origin },
    ],
    routes: [
      { name: 'quick', vendors: ['quick'] },
      { name: 'large', vendors: ['large'] },
    ],
    timeouts: TIMEOUTS,
    requestTimeoutMs,
  })
}

const tell = (order: SlowCallersOrder): Promise<SlowCallersMeasures> => slow.ask(order)

/** Measures the latency of healthy callers of each gateway: the fastest of several rounds, in milliseconds. */
async function healthyP99s(gateways: readonly Gateway[]): Promise<number[]> {
  const lowest = gateways.map(() => Number.POSITIVE_INFINITY)
  for (let round = 0; round < ROUNDS; round++) {
    const p99s = await Promise.all(gateways.map(({ ready }) => p99OfRound(ready.url)))
    for (const [index, p99] of p99s.entries()) lowest[index] = Math.min(lowest[index]!, p99)
  }
  return lowest
}

async function p99OfRound(url: string): Promise<number> {
  const durations: number[] = []
  const caller = async (): Promise<void> => {
    while (durations.length < CALLS_A_ROUND) {
      const call = durations.push(0)
      const answer = await makeCall(url, agent, { call, form: 'chat', route: 'quick', fault: undefined })
      expect(answer.outcome).toEqual({ kind: 'whole' })
      durations[call - 1] = answer.durationMs
    }
  }
  await Promise.all(Array.from({ length: CLOSED_CALLERS }, caller))
  durations.sort((one, other) => one - other)
  return durations[Math.floor(durations.length * 0.99)]!
}

describe(`${SLOW_READERS} slow readers and ${SLOW_WRITERS} slow writers`, () => {
  test('leave healthy callers their answers, hold the vendors back instead of memory, and leave nothing behind', {
    timeout: isLong ? 300_000 : 60_000,
  }, async () => {
    gateway = await startGateway()
    control = await startGateway()
    await healthyP99s([gateway, control])
    const idle = await gateway.ask('measure')

    await tell({ order: 'open', url: gateway.ready.url, readers: SLOW_READERS, writers: SLOW_WRITERS })
    await expect
      .poll(async () => (await tell({ order: 'measure' })).begun, { timeout: 60_000, interval: 100 })
      .toBe(SLOW_READERS)
    const [besideP99, controlP99] = (await healthyP99s([gateway, control])) as [number, number]
    const during = await gateway.ask('measure')
    const slowDuring = await tell({ order: 'measure' })
    await tell({ order: 'leave' })
    agent.destroy()

    expect(besideP99).toBeLessThan(Math.max(MAX_RATIO * controlP99, HARMLESS_MS))
    expect(slowDuring).toMatchObject({ sentWhole: 0, closed: 0, statuses: { 'reader 200': SLOW_READERS } })
    expect(during.callsUnderWay).toBe(SLOW_READERS)
    const grownBytes = during.heapBytes - idle.heapBytes
    expect(grownBytes).toBeLessThan(MAX_BYTES_PER_READER * (SLOW_READERS + SLOW_WRITERS))
    await expect
      .poll(
        async () => {
          const { sockets, callsUnderWay, held } = await gateway.ask('measure')
          return { sockets, callsUnderWay, held }
        },
        { timeout: 20_000, interval: 100 },
      )
      .toEqual({ sockets: 0, callsUnderWay: 0, held: '0' })
  })

  test('cuts slow writers off by the time limit of the server, and holds nothing for them', {
    timeout: 60_000,
  }, async () => {
    gateway = await startGateway(1_000)
    const before = await gateway.ask('measure')

    await tell({ order: 'open', url: gateway.ready.url, readers: 0, writers: SLOW_WRITERS })
    await expect
      .poll(async () => (await tell({ order: 'measure' })).closed, { timeout: 20_000, interval: 100 })
      .toBe(SLOW_WRITERS)

    const { statuses } = await tell({ order: 'measure' })
    expect(statuses).toEqual({ 'writer 408': SLOW_WRITERS })
    await expect.poll(async () => (await gateway.ask('measure')).sockets, { timeout: 10_000 }).toBe(0)
    const after = await gateway.ask('measure')
    expect({ balance: after.balance, held: after.held, endings: after.endings }).toEqual({
      balance: before.balance,
      held: '0',
      endings: {},
    })
  })
})
