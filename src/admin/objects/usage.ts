import * as z from 'zod'
import { formatDollars } from '../../core/money.ts'
import type { UsageReportRow } from '../../gateway/usage.ts'
import type { AttemptRecord, Percentiles, UsageRecord } from '../../usage/usage-record.ts'
import { entrySchema } from './accounts.ts'
import { amount, defineObject, dollars, id, kind, optionalText, text, timeMs, usageCounts } from './fields.ts'

const percentiles = z.strictObject({ p50_ms: z.number(), p95_ms: z.number(), p99_ms: z.number() }).nullable()

/** Sums of one group of calls in the format of the API. */
export const usageRowSchema = z.strictObject({
  at_ms: timeMs.optional(),
  account: z.string().optional(),
  key: z.string().optional(),
  model: z.string().optional(),
  endpoint: z.string().optional(),
  vendor: z.string().optional(),
  end_user: z.string().optional(),
  tag: z.string().optional(),
  requests: z.int(),
  failed: z.int(),
  abandoned: z.int(),
  estimated: z.int(),
  usage: usageCounts,
  /** Total duration of all calls. */
  duration_ms: z.number(),
  due: dollars,
  charged: dollars,
  /** Percentiles, if requested; null if no call has a value. */
  percentiles: z.strictObject({ duration: percentiles, first_byte: percentiles }).optional(),
})
export type UsageRowObject = z.infer<typeof usageRowSchema>

function percentilesObject(of: Percentiles | undefined): z.infer<typeof percentiles> {
  return of === undefined ? null : { p50_ms: of.p50Ms, p95_ms: of.p95Ms, p99_ms: of.p99Ms }
}

export function usageRowObject(row: UsageReportRow): UsageRowObject {
  const { atMs, account, key, model, endpoint, vendor, endUser: end_user, tag } = row
  return {
    ...(atMs === undefined ? {} : { at_ms: atMs }),
    ...Object.fromEntries(
      Object.entries({ account, key, model, endpoint, vendor, end_user, tag }).filter(
        ([, value]) => value !== undefined,
      ),
    ),
    requests: row.requests,
    failed: row.failed,
    abandoned: row.abandoned,
    estimated: row.estimated,
    usage: countsOf(row.usage),
    duration_ms: row.durationMs,
    due: formatDollars(row.dueNanoDollars),
    charged: formatDollars(row.chargedNanoDollars),
    ...(row.percentiles === undefined
      ? {}
      : {
          percentiles: {
            duration: percentilesObject(row.percentiles.duration),
            first_byte: percentilesObject(row.percentiles.firstByte),
          },
        }),
  }
}

const ending = z.enum(['completed', 'failed', 'abandoned'])

/** Call in the format of the API. */
export const { schema: requestSchema, write: requestObject } = defineObject<UsageRecord>()({
  object: kind('request'),
  id: [id, ({ id }) => id],
  ended_at_ms: [timeMs, ({ endedAtMs }) => endedAtMs],
  account: text(({ accountId }) => accountId),
  key: text(({ keyId }) => keyId),
  end_user: optionalText(({ endUser }) => endUser),
  tags: [z.array(z.string()), ({ tags }) => [...tags]],
  endpoint: text(({ endpoint }) => endpoint),
  model: text(({ model }) => model),
  requested_model: text(({ requestedModel }) => requestedModel),
  vendor: optionalText(({ vendor }) => vendor),
  credential: optionalText(({ credentialId }) => credentialId),
  vendor_request: optionalText(({ vendorRequestId }) => vendorRequestId),
  ending: [ending, ({ ending }) => ending],
  status: [z.int(), ({ status }) => status],
  code: optionalText(({ code }) => code),
  is_stream: [z.boolean(), ({ isStream }) => isStream],
  usage: [usageCounts, ({ usage }) => countsOf(usage)],
  is_estimated: [z.boolean(), ({ isEstimated }) => isEstimated],
  duration_ms: [z.number(), ({ durationMs }) => durationMs],
  first_byte_ms: [z.number().nullable(), ({ firstByteMs }) => firstByteMs ?? null],
  due: amount(({ dueNanoDollars }) => dueNanoDollars),
  charged: amount(({ chargedNanoDollars }) => chargedNanoDollars),
})
export type RequestObject = z.infer<typeof requestSchema>

function countsOf(usage: UsageRecord['usage']): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const [meter, units] of Object.entries(usage)) if (typeof units === 'number') counts[meter] = units
  return counts
}

/** Call to a vendor in the format of the API. Times are in milliseconds since the request's arrival. */
const attempt = defineObject<KnownAttempt>()({
  vendor: text(({ vendor }) => vendor),
  credential: optionalText(({ credentialId }) => credentialId),
  model: text(({ model }) => model),
  outcome: [z.enum(['answered', 'failed', 'abandoned']), ({ outcome }) => outcome],
  reason: optionalText(({ reason }) => reason),
  status: [z.int().nullable(), ({ status }) => status ?? null],
  start_ms: [z.number(), ({ startMs }) => startMs],
  end_ms: [z.number(), ({ startMs, durationMs }) => startMs + durationMs],
})

/** Attempt of a call; of a record without attempts, its key may be unknown. */
type KnownAttempt = Omit<AttemptRecord, 'credentialId'> & { readonly credentialId: string | undefined }

/** Call with all known details. */
export const requestDetailSchema = requestSchema.extend({
  /** Attempts in the order of their start. A single attempt without a failure is assumed to last as long as the call. */
  attempts: z.array(attempt.schema),
  /** Journal lines of its charge. */
  journal: z.array(entrySchema),
})
export type RequestDetailObject = z.infer<typeof requestDetailSchema>

export function attemptObjects(record: UsageRecord) {
  return (record.attempts ?? onlyAttempt(record)).map(attempt.write)
}

const OUTCOMES = { completed: 'answered', failed: 'failed', abandoned: 'abandoned' } as const

/** Returns the only attempt of a record without attempts, if there was one. */
function onlyAttempt({ vendor, credentialId, model, ending, durationMs }: UsageRecord): KnownAttempt[] {
  if (vendor === undefined) return []
  const attempt = { vendor, credentialId, model, outcome: OUTCOMES[ending], reason: undefined, status: undefined }
  return [{ ...attempt, startMs: 0, durationMs }]
}
