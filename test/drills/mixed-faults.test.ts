import { Agent } from 'node:http'
import { isDeepStrictEqual } from 'node:util'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type DrillAnswer, type DrillCall, makeCall } from './support/drill-calls.ts'
import { WHOLE_COSTS } from './support/drill-models.ts'
import { drillPrograms } from './support/drill-process.ts'
import { FAULT_TIMEOUTS, isLong } from './support/fault-drill-settings.ts'
import { gatewayFor, hasFault, type Mix, type MixVendors, plannedOutcome, planOf } from './support/fault-plan.ts'
import { CONNECTION_FAULTS, startFaultVendor, startUnreachableVendor } from './support/fault-vendor.ts'
import type { GatewayMeasures } from './support/gateway-process.ts'
import { slopeOf } from './support/slope.ts'

const AT_ONCE = isLong ? 100 : 40
/** Calls between two measurements. */
const BATCH = 250
/** Until every kind of fault has been met often enough for its code to be compiled. */
const WARM_UP_BATCHES = 8
/** The heap goes on settling for some 20,000 calls, and then falls. A call that leaves its record behind leaves more. */
const MAX_BYTES_PER_CALL = 256
/** Connections that are not used go within it. */
const QUIET_WITHIN_MS = 20_000

const MIXES: readonly Mix[] = [
  { name: 'at vendors without a second one', hasSecond: false, faultShare: 0.75 },
  // Retries are a share of the requests; of more faults than that, some could not be made good elsewhere.
  { name: 'with a healthy second vendor', hasSecond: true, faultShare: 0.08 },
]

const start = drillPrograms(['gateway-program'])
let vendors: MixVendors
let agent: Agent

beforeEach(async () => {
  vendors = {
    faulty: await startFaultVendor({ isFaulty: true }),
    healthy: await startFaultVendor({ isFaulty: false }),
    unreachable: await Promise.all(CONNECTION_FAULTS.map(startUnreachableVendor)),
  }
})
afterEach(async () => {
  const { faulty, healthy, unreachable } = vendors
  await Promise.all([faulty, healthy, ...unreachable].map((vendor) => vendor.close()))
})

async function makeAll(url: string, calls: readonly DrillCall[]): Promise<DrillAnswer[]> {
  agent = new Agent({ keepAlive: true })
  const answers: DrillAnswer[] = new Array(calls.length)
  let next = 0
  const caller = async (): Promise<void> => {
    while (next < calls.length) {
      const index = next++
      answers[index] = await makeCall(url, agent, calls[index]!)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, caller))
  agent.destroy()
  return answers
}

type Ask = (question: 'measure') => Promise<GatewayMeasures>

/** Waits until no call is under way, nothing is held, and no more connections are open than before the first call. */
async function untilQuiet(ask: Ask, { sockets }: GatewayMeasures): Promise<GatewayMeasures> {
  let last = await ask('measure')
  const rest = async (): Promise<Partial<GatewayMeasures>> => {
    last = await ask('measure')
    return { sockets: last.sockets, callsUnderWay: last.callsUnderWay, held: last.held }
  }
  await expect.poll(rest, { timeout: QUIET_WITHIN_MS, interval: 100 }).toEqual({ sockets, callsUnderWay: 0, held: '0' })
  return last
}

describe('mixed faults', () => {
  test.each(MIXES)(
    '$name leave right answers in time, exact money, and nothing behind',
    {
      timeout: isLong ? 1_200_000 : 90_000,
    },
    async (mix) => {
      const calls = planOf(mix)
      const gateway = await start<{ readonly url: string }, GatewayMeasures>(
        'gateway-program',
        gatewayFor(mix, vendors),
      )
      const before = await gateway.ask('measure')
      const answers: DrillAnswer[] = []
      const heap: [calls: number, bytes: number][] = []

      for (let done = 0; done < calls.length; done += BATCH) {
        answers.push(...(await makeAll(gateway.ready.url, calls.slice(done, done + BATCH))))
        heap.push([done, (await untilQuiet(gateway.ask, before)).heapBytes])
      }

      const after = await gateway.ask('measure')
      await gateway.end('SIGKILL')
      const { struck } = vendors.faulty
      const wrong = calls.flatMap((call, index) => {
        const expected = plannedOutcome(mix, call, struck)
        const { outcome } = answers[index]!
        return isDeepStrictEqual(outcome, expected) ? [] : [{ call, expected, outcome }]
      })
      expect(wrong).toEqual([])
      const slowest = (fault: boolean): number =>
        Math.max(...answers.flatMap(({ durationMs }, index) => (hasFault(calls[index]!) === fault ? [durationMs] : [])))
      // The time that the machine needs for healthy calls applies to the others as well.
      expect(slowest(true)).toBeLessThan(FAULT_TIMEOUTS.totalMs + 1_000 + slowest(false))
      // Else most calls went past the faults, and little would be shown.
      expect(struck.size).toBeGreaterThan(calls.length * mix.faultShare * 0.3)
      expect(Object.values(after.endings).reduce((sum, count) => sum + count, 0)).toBe(calls.length)
      expect(after.journal).toBe(after.balance)
      expect(BigInt(before.balance) - BigInt(after.balance)).toBe(BigInt(after.charged))
      const isWhole = ({ outcome }: DrillAnswer): boolean => outcome.kind === 'whole'
      const forWhole = calls.reduce(
        (sum, { form }, index) => (isWhole(answers[index]!) ? sum + WHOLE_COSTS[form] : sum),
        0n,
      )
      const broken = answers.filter(({ outcome }) => outcome.kind === 'broken').length
      const forBroken = BigInt(after.charged) - forWhole
      expect(forBroken).toBeGreaterThanOrEqual(BigInt(broken))
      expect(forBroken).toBeLessThanOrEqual(BigInt(broken) * 5n * WHOLE_COSTS.stream)
      if (isLong) expect(slopeOf(heap.slice(WARM_UP_BATCHES)), JSON.stringify(heap)).toBeLessThan(MAX_BYTES_PER_CALL)
    },
  )
})
