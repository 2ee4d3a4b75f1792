import type { ModelDefinition } from '../../../src/catalog/model.ts'
import type { PriceFile } from '../../../src/catalog/prices/prices.ts'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import type { Vendor } from '../../../src/vendors/vendor.ts'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'
import { type StandInVendor, standInVendor } from './stand-in-vendor.ts'

/** A gateway in front of stand-ins `one`, `two`, …. */
export interface Routed extends StartedGateway {
  readonly stands: readonly StandInVendor[]
  /** Sends `times` requests, one after another, and returns the vendors that answered. */
  ask(times: number, body?: Record<string, unknown>): Promise<string[]>
}

const NAMES = ['one', 'two', 'three']

/** Settings that differ in a test. */
export interface RoutedOptions {
  /** Keys of each vendor; two vendors with one key each unless said otherwise. */
  readonly keys?: readonly (readonly string[])[]
  /** Members of the model `routed`, which by default has one route to each vendor. */
  readonly model?: Partial<ModelDefinition>
  readonly moreModels?: readonly ModelDefinition[]
  readonly gateway?: Partial<GatewayOptions>
  readonly vendor?: (vendor: Vendor) => Vendor
}

const PRICED = ['routed', 'other']

/** One dollar for a million tokens of `routed`, two for `other`. */
export const ROUTED_PRICES: PriceFile = {
  currency: 'USD',
  prices: PRICED.flatMap((model, index) => [
    { model, meter: 'input_token' as const, amount: String(index + 1), per: 1_000_000 },
    { model, meter: 'output_token' as const, amount: String(index + 1), per: 1_000_000 },
  ]),
}

/** Starts them. */
export async function startRouted(options: RoutedOptions = {}): Promise<Routed> {
  const { keys = [['key-one'], ['key-two']], model, moreModels = [], gateway = {}, vendor = (plain) => plain } = options
  const stands = await Promise.all(keys.map(() => standInVendor()))
  const vendors = stands.map(({ baseURL }, index) =>
    vendor(openaiCompatible({ id: NAMES[index]!, baseURL, apiKey: keys[index], models: [] })),
  )
  const started = await startGateway({
    vendors,
    models: [
      {
        id: 'routed',
        kind: 'chat',
        vendor: 'one',
        upstream: 'upstream-id',
        routes: vendors.map(({ id }) => ({ vendor: id })),
        limits: { maxOutputTokens: 100 },
        ...model,
      },
      ...moreModels,
    ],
    prices: ROUTED_PRICES,
    ...gateway,
  })
  const ask = async (times: number, body: Record<string, unknown> = {}): Promise<string[]> => {
    const answered: string[] = []
    for (let count = 0; count < times; count++) {
      const response = await started.post('/v1/chat/completions', {
        model: 'routed',
        messages: [{ role: 'user', content: 'hello' }],
        ...body,
      })
      await response.text()
      answered.push(
        response.status === 200 ? (response.headers.get('x-signalbox-vendor') ?? '') : String(response.status),
      )
    }
    return answered
  }
  const close = async (): Promise<void> => {
    await started.close()
    await Promise.all(stands.map((stand) => stand.close()))
  }
  return { ...started, stands, ask, close }
}
