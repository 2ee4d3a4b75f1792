import * as z from 'zod'
import type { GatewayOptions } from '../gateway/options.ts'
import { ROUTING_STRATEGIES } from '../routing/candidate.ts'

const count = z.int().positive()
const days = z.number().min(1).exactOptional()
const daysOrForever = z
  .union(
    [z.number().min(1), z.literal('forever').transform(() => Number.POSITIVE_INFINITY)],
    'must be a number of days, at least 1, or forever',
  )
  .exactOptional()
const unknownTokens = {
  image: count.exactOptional(),
  audio: count.exactOptional(),
  video: count.exactOptional(),
  document: count.exactOptional(),
  conversation: count.exactOptional(),
}
const storedBound = z.strictObject({ count: count.exactOptional(), byteLength: count.exactOptional() }).exactOptional()
const policy = z.enum(['cancel', 'drain'])
const milliseconds = z.number().positive()
const partition = z.enum(['account', 'key', 'user'])
const sampling = z.enum(['deterministic', 'any'])
const texts = z.array(z.string().min(1))

/** Options of `createGateway` without a variable. The configuration file contains them in `gateway`. */
export const FURTHER_OPTIONS = z.strictObject({
  cache: z
    .strictObject({
      rules: z
        .array(
          z.strictObject({
            endpoints: texts.exactOptional(),
            models: texts.exactOptional(),
            sampling: sampling.exactOptional(),
            partition: z.enum([...partition.options, 'gateway']).exactOptional(),
            ttlMs: milliseconds.exactOptional(),
          }),
        )
        .exactOptional(),
      callers: z.enum(['may-ask', 'ignored']).exactOptional(),
      partition: partition.exactOptional(),
      ttlMs: milliseconds.exactOptional(),
      maxTtlMs: milliseconds.exactOptional(),
      collapse: z.boolean().exactOptional(),
    })
    .exactOptional()
    .describe('response cache in the memory of the process; {} has all defaults'),
  overload: z
    .strictObject({
      maxInFlight: count.exactOptional(),
      maxHeldBytes: count.exactOptional(),
      maxEventLoopDelayMs: milliseconds.exactOptional(),
    })
    .exactOptional()
    .describe('load above which the process rejects requests'),
  bodyLimitBytes: count.exactOptional().describe('maximum size of a request body (default: 32 MiB)'),
  fetchedBytesPerAccount: count
    .exactOptional()
    .describe('maximum bytes of images that are fetched for one account at the same time (default: 64 MiB)'),
  showPrices: z.boolean().exactOptional().describe('whether GET /v1/models shows prices (default: false)'),
  showBalanceInErrors: z.boolean().exactOptional().describe('whether a 402 shows the available amount (default: true)'),
  unknownInputTokens: z
    .strictObject({
      ...unknownTokens,
      models: z.record(z.string(), z.strictObject(unknownTokens)).exactOptional(),
    })
    .exactOptional()
    .describe('tokens held for inputs by URL or file id, by their kind (default: the context window)'),
  unpricedFeatures: z
    .array(z.string().min(1))
    .exactOptional()
    .describe('features that are allowed without a price: web_search, beta=*'),
  defaultMaxOutputTokens: count
    .exactOptional()
    .describe('output limit of a call that sets none, in tokens (default: 16384)'),
  drainMs: count
    .exactOptional()
    .describe('maximum time that a disconnected call is still read, in milliseconds (default: 30000)'),
  disconnect: z
    .union([policy, z.record(z.string(), policy)], 'must be cancel or drain, or one of them by endpoint')
    .exactOptional()
    .describe('what happens at the vendor when a caller disconnects'),
  responses: z
    .strictObject({ store: z.enum(['caller', 'never']).exactOptional(), retentionDays: days })
    .exactOptional()
    .describe('whether prompts and answers of Responses are kept, and how long'),
  batches: z
    .strictObject({
      maxFileBytes: count.exactOptional(),
      retentionDays: count.exactOptional(),
      maxRequests: count.exactOptional(),
      maxOpenBatches: count.exactOptional(),
      requestsAtOnce: count.exactOptional(),
      native: z.boolean().exactOptional(),
    })
    .exactOptional()
    .describe('files and batches: {} for the defaults'),
  accountStorage: z
    .strictObject({
      idempotencyKeys: storedBound,
      responses: storedBound,
      conversations: storedBound,
      files: storedBound,
      tasks: storedBound,
      webhookSecrets: storedBound,
    })
    .exactOptional()
    .describe('maximum that one account may have stored, by kind'),
  usage: z
    .union(
      [
        z.literal('off'),
        z.strictObject({
          retention: z
            .strictObject({ recordDays: daysOrForever, hourDays: daysOrForever, dayDays: daysOrForever })
            .exactOptional(),
        }),
      ],
      'must be off, or an object with retention',
    )
    .exactOptional()
    .describe('how long all processes of the store keep records of usage, in days, or forever'),
  promptCaching: z
    .enum(['auto', 'off'])
    .exactOptional()
    .describe('whether to mark long prompts for the prompt cache of vendors (default: off)'),
  routing: z
    .strictObject({
      strategy: z.enum(ROUTING_STRATEGIES as ['weighted', 'latency', 'cost']).exactOptional(),
      fallback: z
        .union([z.enum(['on-failure', 'never']), z.strictObject({ statuses: z.array(count).nonempty() })])
        .exactOptional(),
      retryAfterTimeout: z.boolean().exactOptional(),
    })
    .exactOptional()
    .describe('how requests choose between several vendors'),
} satisfies { readonly [Name in keyof GatewayOptions]?: z.ZodType<GatewayOptions[Name] | undefined> })

export type FurtherOptions = z.infer<typeof FURTHER_OPTIONS>
