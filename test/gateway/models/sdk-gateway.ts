import { listPrices } from '../../../src/catalog/prices/list-prices.ts'
import type { PriceRow } from '../../../src/catalog/prices/price-file.ts'
import { sandboxVendors } from '../../../src/testing/index.ts'
import { anthropic } from '../../../src/vendors/anthropic/anthropic.ts'
import { gemini } from '../../../src/vendors/gemini/gemini.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { type ListedVendor, listedVendor } from '../../support/listed-vendor.ts'
import { NO_PRICE, SDK_MODELS } from '../../support/sdk-model-ids.ts'
import { type StartedGateway, startGateway, TEST_ACCOUNT } from '../../support/start-gateway.ts'

/** Vendors whose SDKs name models in their types. */
export const SDK_VENDORS = ['openai', 'anthropic', 'gemini'] as const

/** One of {@link SDK_VENDORS}. */
export type SdkVendor = (typeof SDK_VENDORS)[number]

/**
 * Models of the SDKs' types that do not answer a text with a text: images, speech, music, video, transcripts, and chats with audio
 * (OpenAI, "Audio and speech": by chat completions, and only with audio in the prompt or the answer).
 */
const OTHER_KINDS = /-image$|nano-banana|-tts|transcribe|^lyria|^gemini-omni|audio/

/** Whether a model answers a text with a text. */
export function isTextModel(id: string): boolean {
  return !OTHER_KINDS.test(id)
}

/**
 * A gateway whose vendors serve only the models of their SDKs. It charges list prices, and prices of the operator for models without
 * a list price.
 */
export interface SdkGateway {
  readonly started: StartedGateway
  readonly vendors: Readonly<Record<SdkVendor, ListedVendor>>
  close(): Promise<void>
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
  const operatorPrices = Object.keys(NO_PRICE)
    .filter(isTextModel)
    .flatMap((model): PriceRow[] => [
      { model, meter: 'input_token', amount: '30', per: 1_000_000 },
      { model, meter: 'output_token', amount: '150', per: 1_000_000 },
    ])
  const started = await startGateway({
    vendors: [
      openai({ apiKey: key('openai'), baseURL: vendors.openai.origin }),
      anthropic({ apiKey: key('anthropic'), baseURL: vendors.anthropic.origin }),
      gemini({ apiKey: key('gemini'), baseURL: vendors.gemini.origin }),
    ],
    models: [],
    prices: listPrices({ prices: { currency: 'USD', prices: operatorPrices } }),
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
