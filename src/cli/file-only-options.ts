import * as z from 'zod'
import { optionSchemas } from '../gateway/check-options.ts'
import type { GatewayOptions } from '../gateway/options.ts'

/** Options of `createGateway` without a variable, with the text of each for the schema of the file. */
const TEXTS = {
  cache: 'response cache in the memory of the process; {} has all defaults',
  overload: 'load above which the process rejects requests',
  bodyLimitBytes: 'maximum size of a request body (default: 32 MiB)',
  fetchedBytesPerAccount: 'maximum bytes of images that are fetched for one account at the same time (default: 64 MiB)',
  showPrices: 'whether GET /v1/models shows prices (default: false)',
  showBalanceInErrors: 'whether a 402 shows the available amount (default: true)',
  unknownInputTokens: 'tokens held for inputs by URL or file id, by their kind (default: the context window)',
  unpricedFeatures: 'features that are allowed without a price: web_search, beta=*',
  defaultMaxOutputTokens: 'output limit of a call that sets none, in tokens (default: 16384)',
  drainMs: 'maximum time that a disconnected call is still read, in milliseconds (default: 30000)',
  disconnect: 'what happens at the vendor when a caller disconnects',
  responses: 'whether prompts and answers of Responses are kept, and how long',
  batches: 'files and batches: {} for the defaults',
  accountStorage: 'maximum that one account may have stored, by kind',
  usage: 'how long all processes of the store keep records of usage, in days, or forever',
  promptCaching: 'whether to mark long prompts for the prompt cache of vendors (default: off)',
  routing: 'how requests choose between several vendors',
} as const satisfies { readonly [Name in keyof GatewayOptions]?: string }

/** Options in the member `gateway` of the configuration file. */
export type FileOnlyOptions = Pick<GatewayOptions, keyof typeof TEXTS>

const days = z
  .union(
    [z.number().min(1), z.literal('forever').transform(() => Number.POSITIVE_INFINITY)],
    'must be a number of days, at least 1, or forever',
  )
  .optional()
const positive = z.number().positive().optional()
const own = optionSchemas()

/** Schemas of the options, without members that JSON cannot express. */
const schemas: { readonly [Name in keyof FileOnlyOptions]-?: z.ZodType } = {
  ...own,
  cache: own.cache.unwrap().omit({ store: true }),
  batches: own.batches.unwrap().omit({ blobs: true }),
  responses: z.strictObject({
    store: own.responses.unwrap().shape.store,
    retentionDays: z.number().min(1).optional(),
  }),
  overload: z.strictObject({ maxInFlight: positive, maxHeldBytes: positive, maxEventLoopDelayMs: positive }),
  unpricedFeatures: z.array(z.string().min(1)),
  usage: z.union(
    [
      z.literal('off'),
      z.strictObject({ retention: z.strictObject({ recordDays: days, hourDays: days, dayDays: days }).optional() }),
    ],
    'must be off, or an object with retention',
  ),
}

/** Schema of the member `gateway` of the configuration file. */
export const FILE_ONLY_OPTIONS = z.strictObject(
  Object.fromEntries(
    Object.entries(TEXTS).map(([name, text]) => [name, schemas[name as keyof typeof TEXTS].optional().describe(text)]),
  ),
)
