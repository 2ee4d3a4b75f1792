import * as z from 'zod'
import { formatDollars } from '../../core/money.ts'
import type { UsageReportRow } from '../../gateway/usage.ts'
import type { AttemptRecord, Percentiles, UsageRecord } from '../../usage/usage-record.ts'
import { entrySchema } from './accounts.ts'
import { dollars, id, timeMs, usageCounts } from './fields.ts'

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
    usage: { ...countsOf(row.usage) },
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

/** Call in the format of the API. */
export const requestSchema = z.strictObject({
  object: z.literal('request'),
  id,
  ended_at_ms: timeMs,
  account: z.string(),
  key: z.string(),
  end_user: z.string().nullable(),
  tags: z.array(z.string()),
  endpoint: z.string(),
  model: z.string(),
  requested_model: z.string(),
  vendor: z.string().nullable(),
  credential: z.string().nullable(),
  vendor_request: z.string().nullable(),
  ending: z.enum(['completed', 'failed', 'abandoned']),
  status: z.int(),
  code: z.string().nullable(),
  is_stream: z.boolean(),
  usage: usageCounts,
  is_estimated: z.boolean(),
  duration_ms: z.number(),
  first_byte_ms: z.number().nullable(),
  due: dollars,
  charged: dollars,
})
export type RequestObject = z.infer<typeof requestSchema>

export function requestObject(record: UsageRecord): RequestObject {
  return {
    object: 'request',
    id: record.id,
    ended_at_ms: record.endedAtMs,
    account: record.accountId,
    key: record.keyId,
    end_user: record.endUser ?? null,
    tags: [...record.tags],
    endpoint: record.endpoint,
    model: record.model,
    requested_model: record.requestedModel,
    vendor: record.vendor ?? null,
    credential: record.credentialId ?? null,
    vendor_request: record.vendorRequestId ?? null,
    ending: record.ending,
    status: record.status,
    code: record.code ?? null,
    is_stream: record.isStream,
    usage: { ...countsOf(record.usage) },
    is_estimated: record.isEstimated,
    duration_ms: record.durationMs,
    first_byte_ms: record.firstByteMs ?? null,
    due: formatDollars(record.dueNanoDollars),
    charged: formatDollars(record.chargedNanoDollars),
  }
}

function countsOf(usage: UsageRecord['usage']): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const [meter, units] of Object.entries(usage)) if (typeof units === 'number') counts[meter] = units
  return counts
}

/** Call to a vendor in the format of the API. Times are in milliseconds since the request's arrival. */
const attemptSchema = z.strictObject({
  vendor: z.string(),
  credential: z.string().nullable(),
  model: z.string(),
  outcome: z.enum(['answered', 'failed', 'abandoned']),
  reason: z.string().nullable(),
  status: z.int().nullable(),
  start_ms: z.number(),
  end_ms: z.number(),
})

/** Call with all known details. */
export const requestDetailSchema = requestSchema.extend({
  /** Attempts in the order of their start. A single attempt without a failure is assumed to last as long as the call. */
  attempts: z.array(attemptSchema),
  /** Journal lines of its charge. */
  journal: z.array(entrySchema),
})
export type RequestDetailObject = z.infer<typeof requestDetailSchema>

export function attemptObjects(record: UsageRecord): z.infer<typeof attemptSchema>[] {
  return (record.attempts ?? onlyAttempt(record)).map((attempt) => ({
    vendor: attempt.vendor,
    credential: attempt.credentialId ?? null,
    model: attempt.model,
    outcome: attempt.outcome,
    reason: attempt.reason ?? null,
    status: attempt.status ?? null,
    start_ms: attempt.startMs,
    end_ms: attempt.startMs + attempt.durationMs,
  }))
}

const OUTCOMES = { completed: 'answered', failed: 'failed', abandoned: 'abandoned' } as const

/** Returns the only attempt of a record without attempts, if there was one. */
function onlyAttempt({
  vendor,
  credentialId,
  model,
  ending,
  durationMs,
}: UsageRecord): (Omit<AttemptRecord, 'credentialId'> & { readonly credentialId: string | undefined })[] {
  if (vendor === undefined) return []
  const attempt = { vendor, credentialId, model, outcome: OUTCOMES[ending], reason: undefined, status: undefined }
  return [{ ...attempt, startMs: 0, durationMs }]
}
