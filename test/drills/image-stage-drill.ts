import type { GatewayRequest } from '../../src/core/exchange.ts'
import { createGateway } from '../../src/gateway/gateway.ts'
import type { DisconnectPolicies } from '../../src/pipeline/abort-scope.ts'
import { fakeClock } from '../../src/testing/index.ts'
import type { Transport, TransportHandler } from '../../src/transport/transport.ts'
import { openai } from '../../src/vendors/openai/openai.ts'
import type { ImageOperation, Vendor } from '../../src/vendors/vendor.ts'
import { generation, IMAGES } from '../gateway/images/image-requests.ts'
import { TEST_ACCOUNT, TEST_KEY } from '../support/start-gateway.ts'
import { testPrices } from '../support/test-prices.ts'
import { DrillCaller } from './support/drill-caller.ts'
import { drillDrivers } from './support/drill-drivers.ts'
import { drillTransport } from './support/drill-vendor.ts'
import { type Stage, type StageFault, StageGate } from './support/stage-gate.ts'

/** Request for an image with one fault. */
export interface ImageStageDrill {
  readonly stage: Stage
  readonly fault: StageFault
  readonly isStream: boolean
  readonly disconnect?: DisconnectPolicies
}

/** State after the request. Amounts in nano-dollars. */
export interface ImageStageReport {
  /** Status, or `undefined` without an answer. */
  readonly status: number | undefined
  readonly ending: 'clean' | 'cut' | undefined
  /** Whether the answer tells the caller's client not to retry. */
  readonly isFinal: boolean
  /** How each hold ended. */
  readonly holds: readonly (readonly string[])[]
  /** The largest amount held at any time. */
  readonly mostHeld: bigint
  readonly held: bigint
  readonly balance: bigint
  /** Sum of the journal. */
  readonly journal: bigint
  readonly openLeases: number
  readonly vendorCalls: number
  readonly openVendorCalls: number
}

const TOTAL_MS = 600_000

const USAGE = {
  input_tokens: 4,
  input_tokens_details: { text_tokens: 4, image_tokens: 0 },
  output_tokens: 272,
  output_tokens_details: { image_tokens: 272, text_tokens: 0 },
  total_tokens: 276,
}

/** Cost of the vendor's report: 4 input tokens of text, 272 output tokens of an image. */
export const REPORTED_COST = 4n * 5_000n + 272n * 30_000n

const WHOLE = JSON.stringify({ created: 1_767_225_600, data: [{ b64_json: 'aGVsbG8=' }], usage: USAGE })
const STREAM = [
  ...[0, 1, 2].map((index) => event('partial_image', { b64_json: 'aGVs', partial_image_index: index })),
  event('completed', { b64_json: 'aGVsbG8=', usage: USAGE }),
  'data: [DONE]\n\n',
]

function event(name: string, members: object): string {
  const type = `image_generation.${name}`
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`
}

/** Runs one request in a gateway of its own, without sockets and on a clock of its own. */
export async function runImageStageDrill(drill: ImageStageDrill): Promise<ImageStageReport> {
  const clock = fakeClock()
  const gate = new StageGate(clock, drill.stage, drill.fault)
  const drivers = drillDrivers(gate)
  const transport = drillTransport(gate)
  let mostHeld = 0n
  const { ledger } = drivers.store
  const gateway = createGateway({
    vendors: [gatedVendor(gate)],
    prices: testPrices,
    store: {
      ...drivers.store,
      ledger: {
        ...ledger,
        reserve(reservation, nowMs) {
          if (reservation.amount > mostHeld) mostHeld = reservation.amount
          return ledger.reserve(reservation, nowMs)
        },
      },
    },
    keys: [{ key: TEST_KEY, account: TEST_ACCOUNT }],
    limits: { concurrency: 1, requestsPerMinute: 10, tokensPerMinute: 100_000 },
    rateLimiter: drivers.rateLimiter,
    concurrencyLimiter: drivers.concurrencyLimiter,
    transport: drawing(transport, drill.isStream ? STREAM : halves(WHOLE)),
    timeouts: { totalMs: TOTAL_MS },
    clock,
    ...(drill.disconnect === undefined ? {} : { disconnect: drill.disconnect }),
  })
  await gateway.start()
  await gateway.accounts.credit(TEST_ACCOUNT, '1')
  const body = generation('a paper boat', { quality: 'low', size: '1024x1024', stream: drill.isStream })
  const caller = new DrillCaller(gate, { authorization: `Bearer ${TEST_KEY}` }, body)
  gateway.handle(onImageRoute(caller), caller)
  // Closing waits for every request under way and for what it has still to settle; the clock stands meanwhile.
  await gateway.close({ drainMs: 2 * TOTAL_MS })
  const account = await ledger.account(TEST_ACCOUNT)
  const entries = await ledger.entries(TEST_ACCOUNT, 100)
  return {
    status: caller.status,
    ending: caller.ending,
    isFinal: caller.headers.includes('x-should-retry'),
    holds: [...drivers.holds.values()],
    mostHeld,
    held: account?.held ?? -1n,
    balance: account?.balance ?? -1n,
    journal: entries.reduce((sum, { amount }) => sum + amount, 0n),
    openLeases: drivers.openLeases.size,
    vendorCalls: transport.calls,
    openVendorCalls: transport.openCalls,
  }
}

/** The same request on the route of images. */
function onImageRoute(caller: DrillCaller): GatewayRequest {
  return {
    method: 'POST',
    path: IMAGES,
    query: '',
    header: (name) => caller.header(name),
    readBody: (limitBytes, listener) => caller.readBody(limitBytes, listener),
  }
}

function halves(text: string): string[] {
  return [text.slice(0, text.length >> 1), text.slice(text.length >> 1)]
}

/** Puts other bytes in the place of each piece that comes, so that every step of a call stays gated as it is. */
function drawing(transport: Transport, pieces: readonly string[]): Transport {
  return {
    send(request, handler) {
      let index = 0
      const drawn: TransportHandler = {
        onHead: (status, headers) => handler.onHead(status, headers),
        onData: () => handler.onData(Buffer.from(pieces[index++] ?? '')),
        onEnd: () => handler.onEnd(),
        onFailure: (failure) => handler.onFailure(failure),
      }
      return transport.send(request, drawn)
    },
    close: () => transport.close(),
  }
}

/** A vendor whose functions pass through the gate; in a stream, from the second piece on. */
function gatedVendor(gate: StageGate): Vendor {
  const vendor = openai({ apiKey: 'vendor-key', baseURL: 'https://vendor.example' })
  const generations = vendor.images!.generations!
  const gated: ImageOperation<never> = {
    toWire(call) {
      gate.pass('translate request')
      return generations.toWire(call)
    },
    fromWire(chunks, call) {
      gate.pass('read answer')
      return generations.fromWire(chunks, call)
    },
    stream(call) {
      const stream = generations.stream!(call)
      const push = stream.push.bind(stream)
      let count = 0
      stream.push = (bytes) => {
        count += 1
        if (count > 1) gate.pass('read answer')
        return push(bytes)
      }
      return stream
    },
  }
  return { ...vendor, images: { generations: gated } }
}
