import { Agent } from 'node:http'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openaiCompatible } from '../../src/vendors/openai-compatible/openai-compatible.ts'
import { type StartedGateway, startGateway, TEST_ACCOUNT } from '../support/start-gateway.ts'
import { type DrillAnswer, type DrillCall, makeCall } from './support/drill-calls.ts'
import { drillModels, drillPrices, WHOLE_COSTS } from './support/drill-models.ts'
import {
  ANSWERED_WITHIN_MS,
  FAULT_TIMEOUTS,
  isConnectionFault,
  isLarge,
  isLong,
} from './support/fault-drill-settings.ts'
import { expectedOutcome, type Fault } from './support/fault-expectations.ts'
import {
  CONNECTION_FAULTS,
  type FaultVendor,
  startFaultVendor,
  startUnreachableVendor,
} from './support/fault-vendor.ts'
import type { CallForm } from './support/right-answer.ts'
import { VENDOR_FAULTS } from './support/vendor-faults.ts'

const FORMS: readonly CallForm[] = ['chat', 'stream', 'embeddings', 'image']

let vendors: FaultVendor[]
let agent: Agent
let started: StartedGateway

beforeEach(() => {
  agent = new Agent({ keepAlive: true })
})
afterEach(async () => {
  agent.destroy()
  await started.close()
  await Promise.all(vendors.map((vendor) => vendor.close()))
})

/** A gateway with the vendor that has the fault, alone and in front of a healthy one. */
async function startWith(fault: Fault): Promise<void> {
  const faulty = isConnectionFault(fault)
    ? await startUnreachableVendor(fault)
    : await startFaultVendor({ isFaulty: true })
  const healthy = await startFaultVendor({ isFaulty: false })
  vendors = [faulty, healthy]
  const vendor = (id: string, { origin }: FaultVendor) =>
    openaiCompatible({ id, baseURL: `${origin}/v1`, apiKey: `key-of-${id}`, models: [] })
  started = await startGateway({
    vendors: [vendor('alone', faulty), vendor('first', faulty), vendor('second', healthy)],
    models: [...drillModels('alone', ['alone']), ...drillModels('pair', ['first', 'second'])],
    prices: drillPrices(['alone', 'pair']),
    // Slow reads are to be given up because of their size. The drill tests what another vendor does after a fault; other tests cover
    // that by default none is called after a timeout.
    routing: { retryAfterTimeout: true },
    timeouts: isLarge(fault) ? { ...FAULT_TIMEOUTS, totalMs: 60_000 } : FAULT_TIMEOUTS,
  })
}

const endingsOf = ({ requestId }: DrillAnswer) =>
  started.events.flatMap((event) => (event.type === 'request-ended' && event.requestId === requestId ? [event] : []))

/** Makes a call, and holds it against what is promised about it. */
async function expectRight(drillCall: DrillCall, fault: Fault): Promise<void> {
  const { form, route } = drillCall
  const answer = await makeCall(started.url, agent, drillCall)

  const what = `${form} by ${route}`
  const expected = expectedOutcome(fault, form, route === 'pair')
  expect(answer.outcome, what).toEqual(expected)
  if (!isLarge(fault)) expect(answer.durationMs, what).toBeLessThan(ANSWERED_WITHIN_MS)
  // A stream reaches its end before it is settled.
  await expect.poll(() => endingsOf(answer).length).toBe(1)
  const cost = endingsOf(answer)[0]!.costNanoDollars
  if (expected.kind === 'broken') {
    // The prompt, estimated from above, and the output received so far.
    expect(cost, what).toBeGreaterThan(0n)
    expect(cost, what).toBeLessThan(5n * WHOLE_COSTS[form])
  } else expect(cost, what).toBe(expected.kind === 'whole' ? WHOLE_COSTS[form] : 0n)
}

describe('every call to a vendor with one fault has the right answer and bill, in time', () => {
  test.each<Fault>([...CONNECTION_FAULTS, ...VENDOR_FAULTS])('%s', { timeout: 120_000 }, async (fault) => {
    await startWith(fault)
    const isBrief = isLarge(fault) && !isLong
    const forms = isBrief ? (['chat', 'stream'] as const) : FORMS
    const routes = isBrief ? ['alone'] : ['alone', 'pair']
    const mark = isConnectionFault(fault) ? undefined : fault
    const calls = forms.flatMap((form) => routes.map((route) => ({ form, route, fault: mark })))

    if (isLarge(fault)) for (const [call, each] of calls.entries()) await expectRight({ call, ...each }, fault)
    else await Promise.all(calls.map((each, call) => expectRight({ call, ...each }, fault)))

    const entries = await started.gateway.accounts.ledger(TEST_ACCOUNT)
    const charges = entries.flatMap(({ holdId }) => holdId ?? [])
    const balance = entries.reduce((sum, { amount }) => sum + amount, 0n)
    expect(new Set(charges).size).toBe(charges.length)
    expect(await started.account()).toEqual({ held: 0n, balance })
    expect(started.gateway.routes().vendors.map(({ inFlight }) => inFlight)).toEqual([0, 0, 0])
  })
})
