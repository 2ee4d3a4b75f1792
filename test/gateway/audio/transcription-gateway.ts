import { Buffer } from 'node:buffer'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { PriceFile, PriceRow } from '../../../src/catalog/prices/prices.ts'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { listen } from '../../support/listen.ts'
import { type StartedGateway, startGateway, TEST_KEY } from '../../support/start-gateway.ts'
import { testPrices } from '../../support/test-prices.ts'

export const TRANSCRIPTIONS = '/v1/audio/transcriptions'

/** Nano-dollars of a second at the models that are sold so. */
export const SECOND_COST = 100_000n

const bySecond = (model: string, minimum?: number): PriceRow => ({
  model,
  meter: 'audio_second',
  amount: '0.0001',
  ...(minimum === undefined ? {} : { minimum }),
})

const byToken = (model: string): PriceRow[] => [
  { model, meter: 'input_token', amount: '2.00', per: 1_000_000 },
  { model, meter: 'input_audio_token', amount: '3.00', per: 1_000_000 },
  { model, meter: 'output_token', amount: '5.00', per: 1_000_000 },
]

export const TRANSCRIPTION_PRICES: PriceFile = {
  ...testPrices,
  prices: [
    ...testPrices.prices.filter(({ model }) => !model.startsWith('gmn-2.5-')),
    ...['whisper-1', 'gpt-transcribe', 'qwen3-asr-flash', 'heard'].map((model) => bySecond(model)),
    bySecond('whisper-large-v3', 10),
    ...['gpt-4o-transcribe', 'gpt-4o-mini-transcribe', 'gpt-4o-transcribe-diarize', 'gmn-2.5-flash'].flatMap(byToken),
  ],
}

/** A gateway at which transcription has a price. */
export function startTranscriptions(options: Partial<GatewayOptions> = {}): Promise<StartedGateway> {
  return startGateway({ prices: TRANSCRIPTION_PRICES, ...options })
}

export type FormValues = Readonly<Record<string, string | readonly string[]>>

/** A form with fields, and a recording behind them. */
export function transcriptionForm(file: Uint8Array, fields: FormValues, name = 'talk.wav'): FormData {
  const form = new FormData()
  for (const [field, value] of Object.entries(fields)) for (const item of [value].flat()) form.append(field, item)
  form.set('file', new File([new Uint8Array(file)], name, { type: 'audio/wav' }))
  return form
}

/** Posts a form with the test key. */
export function postForm(url: string, form: FormData, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${url}${TRANSCRIPTIONS}`, {
    method: 'POST',
    // A connection of its own: large files keep this process busy, and a server closes one that seems idle.
    headers: { authorization: `Bearer ${TEST_KEY}`, connection: 'close', ...headers },
    body: form,
  })
}

/** One request as the vendor got it. */
export interface ReceivedForm {
  readonly bytes: Buffer
  readonly request: IncomingMessage
}

/** A vendor behind a real socket that answers each call as the test says. */
export interface ListeningVendor {
  readonly origin: string
  readonly received: readonly ReceivedForm[]
  close(): Promise<void>
}

export async function listeningVendor(
  answer: (response: ServerResponse, received: ReceivedForm) => void,
): Promise<ListeningVendor> {
  const received: ReceivedForm[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => void chunks.push(chunk))
    request.on('end', () => {
      const call = { bytes: Buffer.concat(chunks), request }
      received.push(call)
      answer(response, call)
    })
  })
  const { origin, close } = await listen(server)
  return {
    origin,
    received,
    close,
  }
}

/** Sends an object as JSON. */
export function json(response: ServerResponse, value: unknown): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value))
}
