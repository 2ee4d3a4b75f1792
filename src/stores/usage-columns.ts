import type { Usage, UsageField } from '../core/usage.ts'
import { storableText, type UsageRecord } from '../usage/usage-record.ts'
import { DAY_MS, HOUR_MS, type UsageDimension, type UsageRow, type UsageSeriesQuery } from '../usage/usage-store.ts'
import type { SqlRow } from './sql-rows.ts'

/** Column of each meter. Video is counted in milliseconds, because a column holds whole numbers. */
const METER_COLUMNS: Readonly<Record<UsageField, string>> = {
  inputTokens: 'input_tokens',
  cachedInputTokens: 'cached_input_tokens',
  cacheWriteTokens: 'cache_write_tokens',
  cacheWrite1hTokens: 'cache_write_1h_tokens',
  outputTokens: 'output_tokens',
  reasoningTokens: 'reasoning_tokens',
  inputImageTokens: 'input_image_tokens',
  inputAudioTokens: 'input_audio_tokens',
  outputImageTokens: 'output_image_tokens',
  images: 'images',
  videoSeconds: 'video_milliseconds',
  characters: 'characters',
  webSearches: 'web_searches',
}

const METERS = Object.entries(METER_COLUMNS) as readonly (readonly [UsageField, string])[]

/** Columns of the meters, in the order of {@link usageValues}. */
export const METER_NAMES: readonly string[] = METERS.map(([, column]) => column)

/** Columns of a record that a draft fills, before those of the meters. */
export const RECORD_COLUMNS: readonly string[] = [
  ...['id', 'account_id', 'key_id', 'end_user', 'tags', 'endpoint', 'model', 'requested_model', 'vendor'],
  ...['credential_id', 'vendor_request_id', 'ending', 'status', 'code', 'is_stream', 'is_estimated'],
  ...['duration_ms', 'first_byte_ms', 'ended_at_ms', 'due', 'charged'],
  ...METER_NAMES,
]

/** Columns of the sums besides those of the meters, each with the expression that makes it of records. */
const SUMS: readonly (readonly [column: string, expression: string])[] = [
  ['requests', 'count(*)'],
  ['failed', `count(CASE WHEN ending = 'failed' THEN 1 END)`],
  ['abandoned', `count(CASE WHEN ending = 'abandoned' THEN 1 END)`],
  ['estimated', 'sum(is_estimated)'],
  ['duration_ms', 'sum(duration_ms)'],
  ['due', 'sum(due)'],
  ['charged', 'sum(charged)'],
  ...METER_NAMES.map((column) => [column, `coalesce(sum(${column}), 0)`] as const),
]

/** Columns of the sums. */
export const SUM_NAMES: readonly string[] = SUMS.map(([column]) => column)

/** Expressions that make {@link SUM_NAMES} of records. */
export const SUM_EXPRESSIONS = SUMS.map(([, expression]) => expression).join(', ')

/** The two tables of sums: what tells their rows apart, and the expressions that make it of records. */
export const ROLL_UPS = {
  hours: {
    length: HOUR_MS,
    keys: ['hour', 'endpoint', 'model', 'vendor'],
    expressions: [`ended_at_ms / ${HOUR_MS}`, 'endpoint', 'model', `coalesce(vendor, '')`],
  },
  days: {
    length: DAY_MS,
    keys: ['day', 'account_id', 'key_id', 'model', 'endpoint', 'vendor'],
    expressions: [`ended_at_ms / ${DAY_MS}`, 'account_id', 'key_id', 'model', 'endpoint', `coalesce(vendor, '')`],
  },
} as const

/** Column of a dimension. */
const DIMENSION_COLUMNS: Readonly<Record<UsageDimension, string>> = {
  account: 'account_id',
  key: 'key_id',
  model: 'model',
  endpoint: 'endpoint',
  vendor: 'vendor',
}

/** What a question about sums reads, in SQL. */
export interface SeriesParts {
  /** Column of time: hours or days since 1970. */
  readonly unit: 'hour' | 'day'
  readonly from: number
  readonly until: number
  /** Expressions to group by, named `at` and as their dimension. */
  readonly groups: readonly string[]
  /** Columns compared with `filterValues`, in the same order. */
  readonly filterColumns: readonly string[]
  readonly filterValues: readonly string[]
}

export function seriesParts({ source, fromMs, untilMs, step, groupBy, filter }: UsageSeriesQuery): SeriesParts {
  const isHours = source === 'hours'
  const { length } = ROLL_UPS[source]
  const unit = isHours ? 'hour' : 'day'
  const at = step === undefined ? [] : isHours && step === 'day' ? ['hour / 24 AS at'] : [`${unit} AS at`]
  const filters = Object.entries(filter).filter((entry): entry is [UsageDimension, string] => entry[1] !== undefined)
  return {
    unit,
    from: Math.floor(fromMs / length),
    until: Math.ceil(untilMs / length),
    groups: [...at, ...groupBy.map((dimension) => `${DIMENSION_COLUMNS[dimension]} AS ${dimension}_value`)],
    filterColumns: filters.map(([dimension]) => DIMENSION_COLUMNS[dimension]),
    filterValues: filters.map(([, value]) => value),
  }
}

/** A row of sums. */
export function usageRowOf(row: SqlRow, { step, groupBy }: UsageSeriesQuery): UsageRow {
  const stepMs = step === 'hour' ? HOUR_MS : DAY_MS
  const usage: { -readonly [Field in UsageField]?: number } = {}
  for (const [field, column] of METERS) {
    const units = Number(row[column])
    if (units > 0) usage[field] = unitsOf(field, units)
  }
  return {
    ...(step === undefined ? {} : { atMs: Number(row['at']) * stepMs }),
    ...Object.fromEntries(groupBy.map((dimension) => [dimension, row[`${dimension}_value`] as string])),
    requests: Number(row['requests']),
    failed: Number(row['failed']),
    abandoned: Number(row['abandoned']),
    estimated: Number(row['estimated']),
    usage,
    durationMs: Number(row['duration_ms']),
    dueNanoDollars: BigInt(row['due'] as string),
    chargedNanoDollars: BigInt(row['charged'] as string),
  }
}

/** Values of {@link RECORD_COLUMNS}. */
export function recordValues(record: UsageRecord): (string | number | bigint | null)[] {
  const values = [
    storableText(record.id),
    // Never cut: sums are compared with the journal by them.
    storableText(record.accountId, Number.POSITIVE_INFINITY),
    storableText(record.keyId, Number.POSITIVE_INFINITY),
    textOrNull(record.endUser),
    record.tags.length === 0 ? null : record.tags.join(','),
    record.endpoint,
    storableText(record.model),
    storableText(record.requestedModel),
    textOrNull(record.vendor),
    textOrNull(record.credentialId),
    textOrNull(record.vendorRequestId),
    record.ending,
    record.status,
    record.code ?? null,
    record.isStream ? 1 : 0,
    record.isEstimated ? 1 : 0,
    wholeCount(record.durationMs),
    record.firstByteMs === undefined ? null : wholeCount(record.firstByteMs),
    Math.floor(record.endedAtMs),
    record.dueNanoDollars,
    record.chargedNanoDollars,
  ]
  for (const [field] of METERS) {
    const units = record.usage[field]
    values.push(units === undefined ? null : wholeCount(field === 'videoSeconds' ? units * 1000 : units))
  }
  return values
}

/** A record of its row. */
export function recordOf(row: SqlRow): UsageRecord {
  const usage: { -readonly [Field in keyof Usage]: Usage[Field] } = {}
  for (const [field, column] of METERS) {
    const units = row[column]
    if (units !== null) usage[field] = unitsOf(field, Number(units))
  }
  const tags = row['tags'] as string | null
  return {
    id: row['id'] as string,
    endedAtMs: Number(row['ended_at_ms']),
    accountId: row['account_id'] as string,
    keyId: row['key_id'] as string,
    endUser: textOf(row['end_user']),
    tags: tags === null ? [] : tags.split(','),
    endpoint: row['endpoint'] as string,
    model: row['model'] as string,
    requestedModel: row['requested_model'] as string,
    vendor: textOf(row['vendor']),
    credentialId: textOf(row['credential_id']),
    vendorRequestId: textOf(row['vendor_request_id']),
    ending: row['ending'] as UsageRecord['ending'],
    status: Number(row['status']),
    code: textOf(row['code']),
    isStream: Number(row['is_stream']) === 1,
    usage,
    isEstimated: Number(row['is_estimated']) === 1,
    durationMs: Number(row['duration_ms']),
    firstByteMs: row['first_byte_ms'] === null ? undefined : Number(row['first_byte_ms']),
    dueNanoDollars: BigInt(row['due'] as string),
    chargedNanoDollars: BigInt(row['charged'] as string),
  }
}

function textOf(column: unknown): string | undefined {
  return (column as string | null) ?? undefined
}

function textOrNull(text: string | undefined): string | null {
  return text === undefined ? null : storableText(text)
}

function unitsOf(field: UsageField, units: number): number {
  return field === 'videoSeconds' ? units / 1000 : units
}

/** Largest count in a column of 32 bits. */
const MAX_COUNT = 2 ** 31 - 1

/** A count that every column takes: what is no number is none. */
function wholeCount(count: number): number {
  return count >= 0 ? Math.min(Math.round(count), MAX_COUNT) : 0
}
