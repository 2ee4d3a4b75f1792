import * as z from 'zod'
import type { GatewayOptions } from '../gateway/gateway-options.ts'
import { ROUTING_STRATEGIES } from '../routing/routing-options.ts'

const count = z.int().positive()
const days = z.number().min(1).exactOptional()
const policy = z.enum(['cancel', 'drain'])

/** Options of `createGateway` that have no variable; the configuration file has them below `gateway`. */
export const FURTHER_OPTIONS = z.strictObject({
  bodyLimitBytes: count.exactOptional().describe('largest request body (32 MiB)'),
  showPrices: z.boolean().exactOptional().describe('does GET /v1/models say prices? (false)'),
  showBalanceInErrors: z.boolean().exactOptional().describe('does a 402 say how much there is? (true)'),
  chargePartialBatches: z
    .boolean()
    .exactOptional()
    .describe('charges the answered parts of a batch of embeddings that failed (false)'),
  unpricedFeatures: z
    .array(z.string().min(1))
    .exactOptional()
    .describe('what passes without a price: web_search, beta=*'),
  defaultMaxOutputTokens: count.exactOptional().describe('tokens that a chat without a bound is held for (16384)'),
  balanceSharePerCall: z
    .number()
    .positive()
    .max(1)
    .exactOptional()
    .describe('share of a balance for such a chat (0.5)'),
  drainMs: count.exactOptional().describe('longest time that an abandoned call is read on (30000)'),
  disconnect: z
    .union([policy, z.record(z.string(), policy)], 'must be cancel or drain, or one of them by endpoint')
    .exactOptional()
    .describe('what happens at the vendor when a caller leaves'),
  responses: z
    .strictObject({ store: z.enum(['caller', 'never']).exactOptional(), retentionDays: days })
    .exactOptional()
    .describe('whether prompts and answers of Responses are kept, and how long'),
  batches: z
    .strictObject({
      maxFileBytes: count.exactOptional(),
      maxAccountBytes: count.exactOptional(),
      retentionDays: count.exactOptional(),
      maxRequests: count.exactOptional(),
      maxOpenBatches: count.exactOptional(),
      requestsAtOnce: count.exactOptional(),
    })
    .exactOptional()
    .describe('files and batches: {} for the defaults'),
  usage: z
    .union(
      [
        z.literal('off'),
        z.strictObject({
          retention: z.strictObject({ recordDays: days, hourDays: days, dayDays: days }).exactOptional(),
        }),
      ],
      'must be off, or an object with retention',
    )
    .exactOptional()
    .describe('how long records of usage are kept'),
  routing: z
    .strictObject({
      strategy: z.enum(ROUTING_STRATEGIES as ['weighted', 'latency', 'cost']).exactOptional(),
      fallback: z
        .union([z.enum(['on-failure', 'never']), z.strictObject({ statuses: z.array(count).nonempty() })])
        .exactOptional(),
      hedge: z.strictObject({ afterMs: count }).exactOptional(),
      retryAfterTimeout: z.boolean().exactOptional(),
    })
    .exactOptional()
    .describe('how requests choose between several vendors'),
} satisfies { readonly [Name in keyof GatewayOptions]?: z.ZodType<GatewayOptions[Name] | undefined> })

/** Those options, checked. */
export type FurtherOptions = z.infer<typeof FURTHER_OPTIONS>
