import type { PriceFile } from '../../../src/catalog/prices/prices.ts'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import type { SandboxOptions } from '../../../src/testing/index.ts'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'
import { testPrices } from '../../support/test-prices.ts'

export const SPEECH = '/v1/audio/speech'
export const FLASH = 'qw3-tts-flash'
export const INSTRUCT = 'qw3-tts-instruct-flash'

/** Nano-dollars a character. */
export const CHARACTER_COST = 10_000n

/** Initial balance of the test account. */
export const CREDIT = 100_000_000_000n

export const SPEECH_PRICES: PriceFile = {
  ...testPrices,
  prices: [
    ...testPrices.prices.filter(({ model }) => model !== FLASH && model !== INSTRUCT),
    ...[FLASH, INSTRUCT].map((model) => ({ model, meter: 'character' as const, amount: '0.01', per: 1000 })),
  ],
}

/** A gateway at which speech has a price. */
export function startSpeech(
  options: Partial<GatewayOptions> = {},
  sandboxOptions: SandboxOptions = {},
): Promise<StartedGateway> {
  return startGateway({ prices: SPEECH_PRICES, ...options }, sandboxOptions)
}

/** A request of the basic model. */
export function speech(input: string, rest: Record<string, unknown> = {}): Record<string, unknown> {
  return { model: FLASH, input, ...rest }
}

/** The bodies of an answer's events. */
export async function speechEvents(answer: Response): Promise<{ type: string; audio?: string; usage?: object }[]> {
  const text = await answer.text()
  return text
    .split('\n\n')
    .filter((event) => event.startsWith('data: '))
    .map((event) => JSON.parse(event.slice('data: '.length)))
}
