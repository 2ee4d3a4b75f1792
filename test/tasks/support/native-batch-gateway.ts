import OpenAI, { toFile } from 'openai'
import { afterEach, beforeEach, expect } from 'vitest'
import { type Clock, systemClock, type Timer } from '../../../src/core/clock.ts'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import type { GatewayStore } from '../../../src/stores/gateway-store.ts'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { type BatchVendor, batchVendor, LINE_USAGE, type VendorBatch } from '../../support/batch-vendor.ts'
import { type StartedGateway, startGateway, TEST_KEY } from '../../support/start-gateway.ts'
import { testPrices } from '../../support/test-prices.ts'

export const MODEL = 'chat-relayed'
export const CHAT = '/v1/chat/completions'
export const LINE_COST = BigInt(LINE_USAGE.prompt_tokens) * 500n + BigInt(LINE_USAGE.completion_tokens) * 2_000n
export const CREDIT = 100_000_000_000n
const prices = {
  ...testPrices,
  prices: [
    ...testPrices.prices,
    { model: MODEL, meter: 'input_token', amount: '0.50', per: 1_000_000, when: { batch: 'true' } },
    { model: MODEL, meter: 'output_token', amount: '2.00', per: 1_000_000, when: { batch: 'true' } },
  ],
} as const

/** The vendor of the test that runs. */
export let vendor: BatchVendor
const open: StartedGateway[] = []

/** Gives each test of a file a vendor of its own, and closes what a test has started. */
export function withBatchVendor(): void {
  beforeEach(async () => {
    vendor = await batchVendor()
  })
  afterEach(async () => {
    for (const started of open.splice(0)) await started.close()
    await vendor.close()
  })
}

export interface Started extends StartedGateway {
  readonly client: OpenAI
  readonly logged: unknown[][]
}

export async function start(options: Partial<GatewayOptions> = {}): Promise<Started> {
  const logged: unknown[][] = []
  const log = (...line: unknown[]): void => void logged.push(line)
  const started = await startGateway({
    batches: {},
    prices,
    vendors: [openai({ apiKey: 'vendor-key-canary-7f3a', baseURL: vendor.origin })],
    taskPollIntervalMs: 20,
    logger: { debug: log, info: log, warn: log, error: log },
    ...options,
  })
  open.push(started)
  const client = new OpenAI({ apiKey: TEST_KEY, baseURL: `${started.url}/v1`, maxRetries: 0 })
  return { ...started, client, logged }
}

export function line(id: number, text = `Say ${id}`): object {
  const messages = [{ role: 'user', content: text }]
  return { custom_id: `mine-${id}`, method: 'POST', url: CHAT, body: { model: MODEL, max_tokens: 50, messages } }
}

export async function submit(client: OpenAI, lines: readonly object[]): Promise<OpenAI.Batch> {
  const content = Buffer.from(lines.map((each) => JSON.stringify(each)).join('\n'))
  const file = await client.files.create({ file: await toFile(content, 'requests.jsonl'), purpose: 'batch' })
  return client.batches.create({ input_file_id: file.id, endpoint: CHAT, completion_window: '24h' })
}

export async function atVendor(count = 1): Promise<VendorBatch> {
  await expect.poll(() => vendor.batches.size, { timeout: 10_000, interval: 5 }).toBe(count)
  return [...vendor.batches.values()].at(-1)!
}

/** The machine's clock, which a test can put ahead. */
export class AdvancedClock implements Clock {
  offsetMs = 0

  now(): number {
    return Date.now() + this.offsetMs
  }

  schedule(delayMs: number, callback: () => void): Timer {
    return systemClock.schedule(delayMs, callback)
  }
}

/** Clock with timers that run 20 times as fast. */
export class FastClock extends AdvancedClock {
  override schedule(delayMs: number, callback: () => void): Timer {
    return super.schedule(delayMs / 20, callback)
  }
}

/** Clock whose timers a test can stop, like those of an idle process. */
export class StoppedClock extends AdvancedClock {
  isStopped = false

  override schedule(delayMs: number, callback: () => void): Timer {
    return super.schedule(delayMs, () => {
      if (!this.isStopped) callback()
    })
  }
}

export interface OutputLine {
  readonly custom_id: string
  readonly response: { readonly status_code: number; readonly body: Record<string, unknown> } | null
  readonly error: { readonly code: string } | null
}

export async function contentOf(client: OpenAI, id: string | null | undefined): Promise<OutputLine[]> {
  const text = await (await client.files.content(id ?? 'none')).text()
  return text
    .trim()
    .split('\n')
    .map((each) => JSON.parse(each) as OutputLine)
}

/** Reports of requests that nobody is charged for. */
export const unbilled = ({ events }: StartedGateway): object[] =>
  events.flatMap((event) =>
    event.type === 'unbilled-usage' ? [{ ...event.usage, isEstimated: event.isEstimated }] : [],
  )

/** Report of a request about which nothing is known. */
export const AS_HELD = { inputTokens: expect.any(Number), outputTokens: 50, isEstimated: true }

/** Changes that a store rejects while these functions return true. */
export interface Faults {
  /** The outcome of a request. */
  readonly outcome?: () => boolean
  /** The end of a batch. */
  readonly end?: () => boolean
}

/** A store with faults. After each, the clock is put ahead to when the batch is taken again. */
export function faultyStore(clock: AdvancedClock, { outcome, end }: Faults): GatewayStore {
  const store = memoryStore()
  const batches = store.batches!
  let isFailing = false
  const check = (fails: boolean | undefined): void => {
    if (fails !== true) return
    isFailing = true
    throw new Error('the disk is full')
  }
  const add: typeof batches.add = (id, given, expiresAtMs) => {
    if (!id.endsWith('_native')) check(outcome?.())
    return batches.add(id, given, expiresAtMs)
  }
  const change: typeof store.tasks.change = async (task, nowMs) => {
    if (task.resolve !== undefined) check(end?.())
    const isMade = await store.tasks.change(task, nowMs)
    if (isFailing && task.set.state === 'queued') {
      isFailing = false
      clock.offsetMs += 16_000
    }
    return isMade
  }
  return { ...store, batches: { ...batches, add }, tasks: { ...store.tasks, change } }
}

/** Ends a batch of one request with this response to it. */
export function endWith(batch: VendorBatch, response: object): void {
  vendor.end(batch, 'completed')
  vendor.files.set(batch.output_file_id!, `${JSON.stringify({ custom_id: 'r0', response, error: null })}\n`)
}

export const singleCalls = (): number => vendor.calls.filter((call) => call === `POST ${CHAT}`).length
