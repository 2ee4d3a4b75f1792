import type { GatewayEvent } from '../../../src/core/events.ts'
import { estimateTokens } from '../../../src/endpoints/token-estimate.ts'
import { createGateway } from '../../../src/gateway/gateway.ts'
import type { DisconnectPolicies } from '../../../src/pipeline/abort-scope.ts'
import { fakeClock } from '../../../src/testing/index.ts'
import { chatBody, TEST_ACCOUNT, TEST_KEY, TEST_MODELS } from '../../support/start-gateway.ts'
import { testPrices } from '../../support/test-prices.ts'
import { DrillCaller } from './drill-caller.ts'
import { drillDrivers } from './drill-drivers.ts'
import { drillTransport, passingVendor, translatingVendor } from './drill-vendor.ts'
import { type Stage, type StageFault, StageGate } from './stage-gate.ts'

/** One request and the one thing that goes wrong with it. */
export interface StageDrill {
  readonly stage: Stage
  readonly fault: StageFault
  readonly isStream: boolean
  readonly disconnect?: DisconnectPolicies
}

/** State after the request. Amounts in nano-dollars. */
export interface StageReport {
  /** Status, or `undefined` without an answer. */
  readonly status: number | undefined
  readonly text: string
  readonly ending: 'clean' | 'cut' | undefined
  /** How each hold ended. */
  readonly holds: readonly (readonly string[])[]
  readonly held: bigint
  readonly balance: bigint
  /** Sum of the journal. */
  readonly journal: bigint
  readonly openLeases: number
  readonly tokensTaken: number
  /** Tokens that the request was charged for, by its event; undefined without one. */
  readonly tokensUsed: number | undefined
  readonly vendorCalls: number
  readonly openVendorCalls: number
  readonly events: readonly GatewayEvent[]
  /** Promises rejected and errors thrown where nobody caught them. */
  readonly uncaught: readonly unknown[]
}

const TOTAL_MS = 600_000

/** Runs one request in a gateway of its own, without sockets and on a clock of its own. */
export async function runStageDrill(drill: StageDrill): Promise<StageReport> {
  const clock = fakeClock()
  const gate = new StageGate(clock, drill.stage, drill.fault)
  const drivers = drillDrivers(gate)
  const transport = drillTransport(gate)
  const events: GatewayEvent[] = []
  const gateway = createGateway({
    vendors: [drill.stage === 'pass answer through' ? passingVendor(gate) : translatingVendor(gate)],
    models: [...TEST_MODELS],
    prices: testPrices,
    store: drivers.store,
    keys: [{ key: TEST_KEY, account: TEST_ACCOUNT }],
    limits: { concurrency: 1, requestsPerMinute: 10, tokensPerMinute: 100_000 },
    rateLimiter: drivers.rateLimiter,
    concurrencyLimiter: drivers.concurrencyLimiter,
    transport,
    timeouts: { totalMs: TOTAL_MS },
    clock,
    onEvent: (event) => events.push(event),
    estimateTokens(byteLength) {
      gate.pass('estimate')
      return estimateTokens(byteLength)
    },
    ...(drill.disconnect === undefined ? {} : { disconnect: drill.disconnect }),
  })
  await gateway.start()
  await gateway.accounts.credit(TEST_ACCOUNT, '1')
  const body = chatBody('chat-relayed', 'count to three', { stream: drill.isStream, max_tokens: 50 })
  const caller = new DrillCaller(gate, { authorization: `Bearer ${TEST_KEY}` }, body)
  const uncaught = await watchUncaught(async () => {
    gateway.handle(caller, caller)
    // A caller who stopped reading is waited for until the total time of the request was exceeded.
    if (drill.stage === 'answer bytes' && drill.fault === 'a time-out') {
      await untilTrue(() => caller.text !== '')
      clock.advance(TOTAL_MS)
    }
    // Closing waits for every request under way and for what it has still to settle; the clock stands meanwhile.
    await gateway.close({ drainMs: 2 * TOTAL_MS })
  })
  const account = await drivers.store.ledger.account(TEST_ACCOUNT)
  const entries = await drivers.store.ledger.entries(TEST_ACCOUNT, 100)
  const ended = events.find((event) => event.type === 'request-ended')
  return {
    status: caller.status,
    text: caller.text,
    ending: caller.ending,
    holds: [...drivers.holds.values()],
    held: account?.held ?? -1n,
    balance: account?.balance ?? -1n,
    journal: entries.reduce((sum, { amount }) => sum + amount, 0n),
    openLeases: drivers.openLeases.size,
    tokensTaken: drivers.tokensTaken,
    tokensUsed: ended === undefined ? undefined : (ended.usage?.inputTokens ?? 0) + (ended.usage?.outputTokens ?? 0),
    vendorCalls: transport.calls,
    openVendorCalls: transport.openCalls,
    events,
    uncaught,
  }
}

async function untilTrue(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve))
}

async function watchUncaught(run: () => Promise<void>): Promise<unknown[]> {
  const uncaught: unknown[] = []
  const note = (error: unknown): void => void uncaught.push(error)
  // The test runner's own listeners would end the run at the first one, without saying which drill it was.
  const kinds = ['unhandledRejection', 'uncaughtException'] as const
  const others = kinds.map((kind) => process.listeners(kind as 'uncaughtException'))
  for (const kind of kinds) process.removeAllListeners(kind).on(kind, note)
  try {
    await run()
    await new Promise((resolve) => setImmediate(resolve))
  } finally {
    for (const [index, kind] of kinds.entries()) {
      process.removeListener(kind, note)
      for (const listener of others[index]!) process.on(kind as 'uncaughtException', listener)
    }
  }
  return uncaught
}
