import { METERS_BY_FIELD, type Usage, type UsageField } from '../core/usage.ts'
import {
  type AttemptRecord,
  LATENCY_BOUNDS_MS,
  LATENCY_BUCKETS,
  storableText,
  storableTextOrNull,
  type UsageRecord,
} from '../usage/usage-record.ts'
import {
  DAY_MS,
  HOUR_MS,
  isOfRecords,
  type SummedDimension,
  type UsageDimension,
  type UsageRow,
  type UsageSeriesQuery,
} from '../usage/usage-store.ts'
import type { SqlRow } from './sql-rows.ts'

const METER_PLACES: ReadonlyMap<string, number> = new Map(METERS_BY_FIELD.map(([field], place) => [field, place]))

/** Columns of the meters, in the order of {@link recordValues}. */
const METER_NAMES: readonly string[] = METERS_BY_FIELD.map(([, { column }]) => column)

/** Columns of a record that a draft fills, before those of the meters. */
export const RECORD_COLUMNS: readonly string[] = [
  ...['id', 'account_id', 'key_id', 'end_user', 'tags', 'endpoint', 'model', 'requested_model', 'vendor'],
  ...['credential_id', 'vendor_request_id', 'ending', 'status', 'code', 'is_stream', 'is_estimated'],
  ...['duration_ms', 'first_byte_ms', 'attempts', 'ended_at_ms', 'due', 'charged'],
  ...METER_NAMES,
]

/** Columns of the sums in addition to those of the meters, each with the expression that computes it from records. */
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
const SUM_NAMES: readonly string[] = SUMS.map(([column]) => column)

/** Expressions that compute {@link SUM_NAMES} from records. */
const SUM_EXPRESSIONS = SUMS.map(([, expression]) => expression).join(', ')

/** Column of each bucket: `d0` of durations, `f0` of times to the first content. */
const DURATION_BUCKETS = Array.from({ length: LATENCY_BUCKETS }, (_, index) => `d${index}`)
const FIRST_BYTE_BUCKETS = Array.from({ length: LATENCY_BUCKETS }, (_, index) => `f${index}`)

/** Columns that the sums by hour have, and those by model and day. */
const BUCKET_NAMES: readonly string[] = [...DURATION_BUCKETS, ...FIRST_BYTE_BUCKETS]

const BUCKET_EXPRESSIONS = ['duration_ms', 'first_byte_ms'].flatMap((column) =>
  Array.from({ length: LATENCY_BUCKETS }, (_, index) => {
    const [lowerMs, upperMs] = [LATENCY_BOUNDS_MS[index - 1], LATENCY_BOUNDS_MS[index]]
    const bounds = [lowerMs && `${column} > ${lowerMs}`, upperMs && `${column} <= ${upperMs}`].filter(Boolean)
    return `count(CASE WHEN ${bounds.join(' AND ')} THEN 1 END)`
  }),
)

/** Returns the columns of the sums that a query adds up. */
function summedNames({ source, withLatency }: UsageSeriesQuery): readonly string[] {
  return source === 'hours' && withLatency === true ? ROLL_UPS.hours.sums : SUM_NAMES
}

/** Tables of sums by the suffix of their names: key columns, and the expressions that compute them from records. */
export const ROLL_UPS = {
  hours: {
    length: HOUR_MS,
    keys: ['hour', 'endpoint', 'model', 'vendor'],
    sums: [...SUM_NAMES, ...BUCKET_NAMES],
    sumExpressions: [SUM_EXPRESSIONS, ...BUCKET_EXPRESSIONS].join(', '),
    expressions: [`ended_at_ms / ${HOUR_MS}`, 'endpoint', 'model', `coalesce(vendor, '')`],
  },
  /** Hours of whole UTC days, so that a month reads one row instead of 24. */
  model_days: {
    length: DAY_MS,
    keys: ['day', 'endpoint', 'model', 'vendor'],
    sums: [...SUM_NAMES, ...BUCKET_NAMES],
    sumExpressions: [SUM_EXPRESSIONS, ...BUCKET_EXPRESSIONS].join(', '),
    expressions: [`ended_at_ms / ${DAY_MS}`, 'endpoint', 'model', `coalesce(vendor, '')`],
  },
  days: {
    length: DAY_MS,
    keys: ['day', 'account_id', 'key_id', 'model', 'endpoint', 'vendor'],
    sums: SUM_NAMES,
    sumExpressions: SUM_EXPRESSIONS,
    expressions: [`ended_at_ms / ${DAY_MS}`, 'account_id', 'key_id', 'model', 'endpoint', `coalesce(vendor, '')`],
  },
} as const

export type RollUp = keyof typeof ROLL_UPS

/** All tables of sums, in the order in which `forget` processes them. */
export const ROLL_UP_TABLES = Object.keys(ROLL_UPS) as readonly RollUp[]

/** Returns a statement that adds records to a table of sums. `condition` chooses the records. */
export function addToSums(rollUp: RollUp, records: string, table: string, condition: string): string {
  const { keys, expressions, sums, sumExpressions } = ROLL_UPS[rollUp]
  const added = sums.map((column) => `${column} = s.${column} + excluded.${column}`).join(', ')
  const places = keys.map((_, index) => index + 1).join(', ')
  return `INSERT INTO ${table} AS s (${[...keys, ...sums].join(', ')})
    SELECT ${expressions.join(', ')}, ${sumExpressions} FROM ${records} WHERE ${condition} GROUP BY ${places}
    ON CONFLICT (${keys.join(', ')}) DO UPDATE SET ${added}`
}

/** Column of a dimension in the sums. */
const DIMENSION_COLUMNS: Readonly<Record<SummedDimension, string>> = {
  account: 'account_id',
  key: 'key_id',
  model: 'model',
  endpoint: 'endpoint',
  vendor: 'vendor',
}

/** SQL expressions of the dimensions of records. `tag.value` is one of the record's tags, which the driver adds. */
const RECORD_EXPRESSIONS: Readonly<Record<UsageDimension, string>> = {
  ...DIMENSION_COLUMNS,
  vendor: `coalesce(vendor, '')`,
  endUser: `coalesce(end_user, '')`,
  tag: 'tag.value',
}

/** Returns the name of a dimension in the rows of an answer. */
export function valueName(dimension: UsageDimension): string {
  return dimension === 'endUser' ? 'end_user_value' : `${dimension}_value`
}

/** SQL parts of a query for sums. */
export interface SeriesParts {
  /** Table to read; for roll-ups the suffix of its name. */
  readonly table: RollUp | 'records'
  /** Column of time: hours or days since 1970, or milliseconds of records. */
  readonly unit: 'hour' | 'day' | 'ended_at_ms'
  readonly from: number
  readonly until: number
  /** Expressions to group by, named `at` and like their dimension. */
  readonly groups: readonly string[]
  /** Expressions that add up, each with the name of its column in the sums. */
  readonly sums: readonly (readonly [name: string, expression: string])[]
  /** Whether the query distinguishes tags. */
  readonly isByTag: boolean
  /** Columns or expressions compared with `filterValues`, in the same order. */
  readonly filterColumns: readonly string[]
  readonly filterValues: readonly string[]
}

export function seriesParts(query: UsageSeriesQuery): SeriesParts {
  const { source, fromMs, untilMs, step, groupBy } = query
  const filters = Object.entries(query.filter).filter(
    (entry): entry is [UsageDimension, string] => entry[1] !== undefined,
  )
  const filterValues = filters.map(([, value]) => value)
  const isByTag = [...groupBy, ...filters.map(([dimension]) => dimension)].includes('tag')
  if (source === 'records') {
    const stepMs = step === 'hour' ? HOUR_MS : DAY_MS
    return {
      table: 'records',
      unit: 'ended_at_ms',
      from: Math.ceil(fromMs),
      until: Math.ceil(untilMs),
      groups: [
        ...(step === undefined ? [] : [`ended_at_ms / ${stepMs} AS at`]),
        ...groupBy.map((dimension) => `${RECORD_EXPRESSIONS[dimension]} AS ${valueName(dimension)}`),
      ],
      sums: SUMS,
      isByTag,
      filterColumns: filters.map(([dimension]) => RECORD_EXPRESSIONS[dimension]),
      filterValues,
    }
  }
  const isOfDays = step !== 'hour' && fromMs % DAY_MS === 0 && untilMs % DAY_MS === 0
  const table = source === 'hours' && isOfDays ? 'model_days' : source
  const { length } = ROLL_UPS[table]
  const unit = table === 'hours' ? 'hour' : 'day'
  const at = step === undefined ? [] : unit === 'hour' && step === 'day' ? ['hour / 24 AS at'] : [`${unit} AS at`]
  return {
    table,
    unit,
    from: Math.floor(fromMs / length),
    until: Math.ceil(untilMs / length),
    groups: [...at, ...groupBy.map((dimension) => `${columnOf(dimension)} AS ${valueName(dimension)}`)],
    sums: summedNames(query).map((name) => [name, `sum(${name})`]),
    isByTag,
    filterColumns: filters.map(([dimension]) => columnOf(dimension)),
    filterValues,
  }
}

function columnOf(dimension: UsageDimension): string {
  if (isOfRecords(dimension)) throw new RangeError(`there are no sums by ${dimension}: ask the records`)
  return DIMENSION_COLUMNS[dimension]
}

/** Parses a row of sums without intermediate copies: an answer has hundreds, parsed in one turn of the event loop. */
export function usageRowOf(row: SqlRow, { source, step, groupBy, withLatency }: UsageSeriesQuery): UsageRow {
  const usage: { -readonly [Field in UsageField]?: number } = {}
  for (const [field, { column, isFractional }] of METERS_BY_FIELD) {
    const units = Number(row[column])
    if (units > 0) usage[field] = isFractional === true ? units / 1000 : units
  }
  const sums: { -readonly [Member in keyof UsageRow]: UsageRow[Member] } = {
    requests: Number(row['requests']),
    failed: Number(row['failed']),
    abandoned: Number(row['abandoned']),
    estimated: Number(row['estimated']),
    usage,
    durationMs: Number(row['duration_ms']),
    dueNanoDollars: BigInt(row['due'] as string),
    chargedNanoDollars: BigInt(row['charged'] as string),
  }
  if (step !== undefined) sums.atMs = Number(row['at']) * (step === 'hour' ? HOUR_MS : DAY_MS)
  for (const dimension of groupBy) sums[dimension] = row[valueName(dimension)] as string
  if (source === 'hours' && withLatency === true) {
    const countsOf = (names: readonly string[]): number[] => names.map((name) => Number(row[name]))
    sums.latency = { duration: countsOf(DURATION_BUCKETS), firstByte: countsOf(FIRST_BYTE_BUCKETS) }
  }
  return sums
}

/** Values of {@link RECORD_COLUMNS}. */
export function recordValues(record: UsageRecord): (string | number | bigint | null)[] {
  const values: (string | number | bigint | null)[] = [
    storableText(record.id),
    // Never truncated, because sums are compared with the journal by them.
    storableText(record.accountId, Number.POSITIVE_INFINITY),
    storableText(record.keyId, Number.POSITIVE_INFINITY),
    storableTextOrNull(record.endUser),
    record.tags.length === 0 ? null : record.tags.join(','),
    record.endpoint,
    storableText(record.model),
    storableText(record.requestedModel),
    storableTextOrNull(record.vendor),
    storableTextOrNull(record.credentialId),
    storableTextOrNull(record.vendorRequestId),
    record.ending,
    record.status,
    record.code ?? null,
    record.isStream ? 1 : 0,
    record.isEstimated ? 1 : 0,
    wholeCount(record.durationMs),
    record.firstByteMs === undefined ? null : wholeCount(record.firstByteMs),
    attemptsText(record.attempts),
    Math.floor(record.endedAtMs),
    record.dueNanoDollars,
    record.chargedNanoDollars,
  ]
  const first = values.length
  for (let meter = 0; meter < METERS_BY_FIELD.length; meter++) values.push(null)
  // Most records have two or three of the meters.
  for (const field in record.usage) {
    const place = METER_PLACES.get(field)
    const units = record.usage[field as UsageField]
    if (place === undefined || units === undefined) continue
    const { isFractional } = METERS_BY_FIELD[place]![1]
    values[first + place] = wholeCount(isFractional === true ? units * 1000 : units)
  }
  return values
}

/** Parses a row to a record. */
export function recordOf(row: SqlRow): UsageRecord {
  const usage: { -readonly [Field in keyof Usage]: Usage[Field] } = {}
  for (const [field, { column, isFractional }] of METERS_BY_FIELD) {
    const units = row[column]
    if (units !== null) usage[field] = isFractional === true ? Number(units) / 1000 : Number(units)
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
    attempts: attemptsOf(row['attempts'] as string | null),
    dueNanoDollars: BigInt(row['due'] as string),
    chargedNanoDollars: BigInt(row['charged'] as string),
  }
}

/** Values of one attempt, in the order of {@link attemptsText}. */
type AttemptTuple = readonly [
  vendor: string,
  credentialId: string,
  model: string,
  outcome: AttemptRecord['outcome'],
  reason: string | null,
  status: number | null,
  startMs: number,
  durationMs: number,
]

/** JSON without member names, which would be most of it. */
function attemptsText(attempts: UsageRecord['attempts']): string | null {
  if (attempts === undefined) return null
  const tuples = attempts.map(
    (attempt): AttemptTuple => [
      storableText(attempt.vendor),
      storableText(attempt.credentialId),
      storableText(attempt.model),
      attempt.outcome,
      storableTextOrNull(attempt.reason),
      attempt.status ?? null,
      wholeCount(attempt.startMs),
      wholeCount(attempt.durationMs),
    ],
  )
  return JSON.stringify(tuples)
}

function attemptsOf(text: string | null): UsageRecord['attempts'] {
  if (text === null) return undefined
  return (JSON.parse(text) as readonly AttemptTuple[]).map(
    ([vendor, credentialId, model, outcome, reason, status, startMs, durationMs]) => {
      const why = { reason: reason ?? undefined, status: status ?? undefined }
      return { vendor, credentialId, model, outcome, ...why, startMs, durationMs }
    },
  )
}

function textOf(column: unknown): string | undefined {
  return (column as string | null) ?? undefined
}

/** Maximum count in a 32-bit column. */
const MAX_COUNT = 2 ** 31 - 1

/** Returns a count that every column accepts; an invalid number counts as 0. */
function wholeCount(count: number): number {
  return count >= 0 ? Math.min(Math.round(count), MAX_COUNT) : 0
}
