import { listPrices } from '../catalog/prices/list-prices.ts'
import type { PriceFile } from '../catalog/prices/prices.ts'
import type { GatewayClient } from '../client/gateway-client.ts'
import { parseDollars } from '../core/money.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { FileOnlyOptions } from './file-only-options.ts'
import type { ServeFlags, ServePrices, ServeSettings } from './serve-settings.ts'
import { SettingError } from './setting-values.ts'

/** Invented prices of models whose vendors publish no price per token. */
const EXAMPLE_PRICES: PriceFile = {
  currency: 'USD',
  prices: [
    ...['text-embedding-*', 'gmn-embedding-2-*', 'vy-*', 'qw3-*rerank', 'gte-rerank-v2'].map((model) => {
      return { model, meter: 'input_token', amount: '0.06', per: 1_000_000 } as const
    }),
    ...['claude-*', 'gpt-6-*'].flatMap((model) => [
      { model, meter: 'input_token', amount: '0.50', per: 1_000_000, when: { batch: 'true' } } as const,
      { model, meter: 'output_token', amount: '2', per: 1_000_000, when: { batch: 'true' } } as const,
    ]),
    { model: 'rerank-v*', meter: 'search_unit', amount: '0.002' },
    { model: 'qw-image-*', meter: 'image', amount: '0.05' },
    { model: 'de-*', meter: 'image', amount: '0.02' },
    { model: 'wv2*', meter: 'video_second', amount: '0.10' },
    { model: 'qw3-tts-*', meter: 'character', amount: '0.10', per: 10_000 },
    { model: 'gpt-4o-mini-tts', meter: 'character', amount: '0.15', per: 10_000 },
    { model: 'whisper-1', meter: 'audio_second', amount: '0.006', per: 60 },
    { model: 'gpt-transcribe', meter: 'audio_second', amount: '0.0045', per: 60 },
    { model: 'qwen3-asr-*', meter: 'audio_second', amount: '0.000035' },
    ...['gp-image-1', 'chatgpt-image-*', 'gemini-nano-banana-*', 'nano-banana-*'].flatMap((model) => [
      { model, meter: 'input_token', amount: '5', per: 1_000_000 } as const,
      { model, meter: 'input_image_token', amount: '10', per: 1_000_000 } as const,
      { model, meter: 'output_token', amount: '10', per: 1_000_000 } as const,
      { model, meter: 'output_image_token', amount: '40', per: 1_000_000 } as const,
    ]),
    ...[
      'gemma-*',
      'gpt-4o-audio-preview',
      'gpt-4o-mini-audio-preview',
      'gpt-audio-*',
      'gpt-6.2-astra-law',
      'gpt-rosalind-*',
      'gemini-3.5-transcribe',
      'gemini-robotics-*',
    ].flatMap((model) => [
      { model, meter: 'input_token', amount: '0.50', per: 1_000_000 } as const,
      { model, meter: 'output_token', amount: '2', per: 1_000_000 } as const,
    ]),
  ],
}

/** Returns prices for trial runs: list prices, and invented prices for models without one. */
function examplePrices(): ServePrices {
  return {
    source: 'example prices',
    prices: listPrices({ prices: EXAMPLE_PRICES }),
    isExample: true,
    isReloadable: false,
    reload: () => undefined,
  }
}

type ExampleFlags = Partial<Pick<ServeFlags, 'useStandIns' | 'showExamples'>>

/**
 * Adds example prices to the settings if they are requested and no prices are set.
 * @throws SettingError for examples without stand-ins: real vendors would charge for them.
 */
export function withExamples(settings: ServeSettings, { useStandIns, showExamples }: ExampleFlags): ServeSettings {
  if (showExamples !== true) return settings
  if (useStandIns !== true) throw new SettingError('--examples: has no effect without --sandbox')
  return settings.prices === undefined && settings.billing !== 'off'
    ? { ...settings, prices: examplePrices() }
    : settings
}

/** Adds batches to the examples. They are off by default because they store callers' files. */
export function optionsWithExamples(
  options: FileOnlyOptions | undefined,
  { showExamples }: ExampleFlags,
): FileOnlyOptions | undefined {
  return showExamples === true ? { batches: {}, ...options } : options
}

const ACCOUNTS = [
  { id: 'acct_shop', name: 'Example shop', credit: '25', cap: '40' },
  { id: 'acct_school', name: 'Example school', credit: '5', cap: '5' },
] as const
const KEY_CAP = '1'

const QUESTIONS = [
  'Why is the sky blue?',
  'Name three rivers.',
  'Write one line about rain.',
  'What is a ledger?',
  'Translate “good morning” into Italian.',
]

/** Current chat models for examples: small ones of each large vendor. */
export const EXAMPLE_CHATS = ['claude-haiku-5-5', 'gpt-6-luna', 'gemini-3.8-flash'] as const

/** Description of the calls of {@link makeExampleCalls}. */
export const EXAMPLE_CALLS =
  'calls of two accounts: answers, a fail-over, an error, a disconnected caller, an image, speech, a transcript, a ranking, a moderation, a video and a batch'

/**
 * Creates accounts and some calls of every endpoint as sample data: answers, a fail-over, an error, a call whose caller disconnected,
 * a batch, a video. With stand-ins for the vendors they cost nothing.
 */
export async function makeExampleCalls(gateway: Gateway): Promise<void> {
  for (const [index, { id, name, credit, cap }] of ACCOUNTS.entries()) {
    await gateway.accounts.create({ id, name, spendingCap: { amount: parseDollars(cap), period: 'month' } })
    await gateway.accounts.credit(id, credit, { creditId: `example:${id}`, description: 'example credit' })
    const { record } = await gateway.keys.create({
      accountId: id,
      label: 'web site',
      limits: { requestsPerMinute: 600, concurrency: 20 },
      spendingCap: { amount: parseDollars(KEY_CAP), period: 'day' },
    })
    const client = gateway.client({ accountId: id, keyId: record.id, tier: 'paid', tags: ['example'] })
    for (const [turn, question] of QUESTIONS.entries()) {
      const model = EXAMPLE_CHATS[(turn + index) % EXAMPLE_CHATS.length]!
      await ask(client, model, turn === 1 ? `${question} [[fault:status=503,times=1]]` : question)
    }
    await client.embeddings.create({ model: 'vy-4', input: QUESTIONS })
  }
  const [shop] = ACCOUNTS
  const client = gateway.client({ accountId: shop.id, keyId: 'example', tier: 'paid' })
  // The stand-ins reject it, and the error is the sample.
  await ask(client, 'gemini-3.8-flash', 'A prompt that a vendor refuses. [[fault:status=400]]').catch(() => undefined)
  await leave(client)
  await client.images.generate({
    model: 'qw-image-2.0',
    input: { messages: [{ role: 'user', content: [{ text: 'a lighthouse' }] }] },
  })
  const spoken = {
    model: 'qw3-tts-flash',
    input: 'The next boat leaves at noon.',
    voice: 'Ethan',
    response_format: 'wav',
  } as const
  const sound = await client.audio.speech.create(spoken)
  await client.audio.transcriptions.create({ model: 'whisper-1', file: await sound.bytes() })
  await client.rerank({
    model: 'vy-rerank-2.5',
    query: 'paper boat',
    documents: ['a blue mug', 'a paper boat on a pond'],
  })
  await client.moderations.create({ model: 'omni-moderation-latest', input: QUESTIONS })
  await client.messages.batches.create({
    requests: QUESTIONS.map((content, index) => ({
      custom_id: `question-${index}`,
      params: { model: 'claude-haiku-5-5', max_tokens: 200, messages: [{ role: 'user', content }] },
    })),
  })
  await client.videos.generate({ model: 'wv2.6-t2v', duration: 4, resolution: '720p', input: { prompt: 'a boat' } })
}

async function ask(client: GatewayClient, model: (typeof EXAMPLE_CHATS)[number], content: string): Promise<void> {
  await client.chat.completions.create({ model, max_tokens: 200, messages: [{ role: 'user', content }] })
}

/** Reads only the beginning of a stream. The gateway reads streams with hidden reasoning to their end. */
async function leave(client: GatewayClient): Promise<void> {
  const stream = await client.chat.completions.create({
    model: 'gemini-3.8-flash',
    max_tokens: 200,
    stream: true,
    messages: [{ role: 'user', content: 'Tell a long tale, slowly. [[fault:pace=100]]' }],
  })
  for await (const _chunk of stream) break
}
