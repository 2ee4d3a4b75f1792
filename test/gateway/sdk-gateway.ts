import { listPrices } from '../../src/catalog/prices/list-prices.ts'
import type { PriceRow } from '../../src/catalog/prices/price-file.ts'
import { sandboxVendors } from '../../src/testing/index.ts'
import { anthropic } from '../../src/vendors/anthropic/anthropic.ts'
import { gemini } from '../../src/vendors/gemini/gemini.ts'
import { openai } from '../../src/vendors/openai/openai.ts'
import { type ListedVendor, listedVendor } from '../support/listed-vendor.ts'
import { SDK_MODELS } from '../support/sdk-model-ids.ts'
import { type StartedGateway, startGateway, TEST_ACCOUNT } from '../support/start-gateway.ts'

/** Vendors whose SDKs name models in their types. */
export const SDK_VENDORS = ['openai', 'anthropic', 'gemini'] as const

/** One of {@link SDK_VENDORS}. */
export type SdkVendor = (typeof SDK_VENDORS)[number]

/** Models of the SDKs' types for which no public list has a price: models for selected customers, and models that are free there. */
export const UNPUBLISHED_PRICES: readonly string[] = [
  ...['claude-mythos-5-1', 'claude-mythos-5-2'],
  ...['gpt-6-rosalind', 'gpt-6.2-astra-law', 'gpt-rosalind-research'],
  ...['gemini-robotics-er-1.6-preview', 'gemma-4-26b-a4b-it', 'gemma-4-31b-it'],
]

/** A gateway that charges list prices, or prices of the operator for {@link UNPUBLISHED_PRICES}, with vendors that serve only the models of their SDKs. */
export interface SdkGateway {
  readonly started: StartedGateway
  readonly vendors: Readonly<Record<SdkVendor, ListedVendor>>
  close(): Promise<void>
}

function operatorPrices(model: string): PriceRow[] {
  return [
    { model, meter: 'input_token', amount: '30', per: 1_000_000 },
    { model, meter: 'output_token', amount: '150', per: 1_000_000 },
  ]
}

/** Starts a gateway without rows of models. Its account has 10,100 dollars. */
export async function startSdkGateway(): Promise<SdkGateway> {
  const sandbox = sandboxVendors()
  const { origin } = await sandbox.listen()
  const key = (vendor: SdkVendor): string => `key-of-${vendor}`
  const chatIds = SDK_MODELS.openai.filter((id) => !SDK_MODELS.openaiResponsesOnly.includes(id))
  const vendors = {
    openai: await listedVendor(origin, key('openai'), [
      { path: /^\/v1\/chat\/completions$/, models: new Set(chatIds) },
      { path: /^\/v1\/responses$/, models: new Set(SDK_MODELS.openai) },
    ]),
    anthropic: await listedVendor(origin, key('anthropic'), [
      { path: /^\/v1\/messages$/, models: new Set(SDK_MODELS.anthropic) },
    ]),
    gemini: await listedVendor(origin, key('gemini'), [
      {
        path: /^\/v1beta\/models\/(?<model>[^/:]+):(?:generateContent|streamGenerateContent)$/,
        models: new Set(SDK_MODELS.gemini),
      },
    ]),
  }
  const started = await startGateway({
    vendors: [
      openai({ apiKey: key('openai'), baseURL: vendors.openai.origin }),
      anthropic({ apiKey: key('anthropic'), baseURL: vendors.anthropic.origin }),
      gemini({ apiKey: key('gemini'), baseURL: vendors.gemini.origin }),
    ],
    models: [],
    prices: listPrices({ prices: { currency: 'USD', prices: UNPUBLISHED_PRICES.flatMap(operatorPrices) } }),
    showPrices: true,
  })
  await started.gateway.accounts.credit(TEST_ACCOUNT, '10000')
  return {
    started,
    vendors,
    async close() {
      await started.close()
      for (const id of SDK_VENDORS) await vendors[id].close()
      await sandbox.close()
    },
  }
}
