import OpenAI, { toFile } from 'openai'
import { afterEach } from 'vitest'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { type StartedGateway, startGateway, TEST_KEY } from '../../support/start-gateway.ts'
import { testPrices } from '../../support/test-prices.ts'

/** The model that the lines of a batch ask. */
export const BATCH_MODEL = 'chat-relayed'
export const CHAT_PATH = '/v1/chat/completions'
/** The prices of tests, and those of batches. */
export const batchPrices = {
  ...testPrices,
  prices: [
    ...testPrices.prices,
    { model: BATCH_MODEL, meter: 'input_token', amount: '0.50', per: 1_000_000, when: { batch: 'true' } },
    { model: BATCH_MODEL, meter: 'output_token', amount: '2.00', per: 1_000_000, when: { batch: 'true' } },
    { model: 'embedding-relayed', meter: 'input_token', amount: '0.01', per: 1_000_000, when: { batch: 'true' } },
  ],
} as const

/** Starts gateways that send the requests of batches as ordinary calls, unless told otherwise, and closes them after each test of the file. */
export function batchGateways(): (options?: Partial<GatewayOptions>) => Promise<StartedGateway & { client: OpenAI }> {
  const open: StartedGateway[] = []
  afterEach(async () => {
    for (const started of open.splice(0)) await started.close()
  })
  return async (options = {}) => {
    const started = await startGateway({
      prices: batchPrices,
      ...options,
      batches: { native: false, ...options.batches },
    })
    open.push(started)
    return { ...started, client: new OpenAI({ apiKey: TEST_KEY, baseURL: `${started.url}/v1`, maxRetries: 0 }) }
  }
}

/** A line of the input file. */
export function batchLine(number: number, body: object = {}, members: object = {}): object {
  const messages = [{ role: 'user', content: `Say ${number}` }]
  return {
    custom_id: `request-${number}`,
    method: 'POST',
    url: CHAT_PATH,
    body: { model: BATCH_MODEL, max_tokens: 50, messages, ...body },
    ...members,
  }
}

/** Uploads an input file. */
export const uploadLines = async (client: OpenAI, lines: readonly (object | string)[]) =>
  client.files.create({
    file: await toFile(
      Buffer.from(lines.map((each) => (typeof each === 'string' ? each : JSON.stringify(each))).join('\n')),
      'requests.jsonl',
    ),
    purpose: 'batch',
  })

/** Submits a batch. */
export const submitBatch = async (
  client: OpenAI,
  lines: readonly (object | string)[],
  endpoint: typeof CHAT_PATH = CHAT_PATH,
) => {
  const file = await uploadLines(client, lines)
  return client.batches.create({ input_file_id: file.id, endpoint, completion_window: '24h', metadata: { job: 'one' } })
}

/** Vendor's answer to ten tokens. */
export function batchCompletion(outputTokens = 1): object {
  const usage = { prompt_tokens: 10, completion_tokens: outputTokens, total_tokens: 10 + outputTokens }
  const choices = [{ index: 0, message: { role: 'assistant', content: 'one' }, finish_reason: 'stop' }]
  return { id: 'c', object: 'chat.completion', model: 'm', choices, usage }
}

interface OutputLine {
  custom_id: string
  response: { status_code: number; body: { usage: { prompt_tokens: number; completion_tokens: number } } } | null
  error: { code: string } | null
}

/** The lines of an output or an error file. */
export async function linesOfFile(client: OpenAI, id: string | null | undefined): Promise<OutputLine[]> {
  const text = await (await client.files.content(id ?? 'none')).text()
  return text
    .trim()
    .split('\n')
    .map((each) => JSON.parse(each) as OutputLine)
}
