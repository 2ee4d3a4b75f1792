import * as z from 'zod'
import { endOfTurn } from '../../core/end-of-turn.ts'
import { GatewayError } from '../../core/errors.ts'
import { formatDollars } from '../../core/money.ts'
import { csvCell } from '../../gateway/journal-csv.ts'
import type { UsageReport } from '../../gateway/usage.ts'
import { USAGE_GROUPS, USAGE_STEPS, type UsageQuery } from '../../usage/usage-query.ts'
import { DAY_MS } from '../../usage/usage-store.ts'
import { type AdminCall, type AdminRoute, defineRawRoute, defineRoute } from '../admin-route.ts'
import { countOf, dollars, timeMs } from '../objects/fields.ts'
import { usageRowObject, usageRowSchema } from '../objects/usage.ts'
import { bodyMoment, moment, momentText } from './moment.ts'

const filter = z.string().max(500).optional()
const usageQuery = z.strictObject({
  /** Start of the range. By default 29 days ago, which makes 30 days including today. */
  from: moment.optional(),
  to: moment.optional(),
  /** Names separated by commas: hour, day or month; account, key, model, endpoint, vendor, end_user, tag. By default there is one row. */
  group_by: z.string().max(200).optional(),
  limit: z
    .string()
    .regex(/^\d{1,6}$/, 'must be a whole number from 1 to 100000')
    .optional(),
  /** Number of rows with the highest charges; cannot be combined with groups by time. */
  top: z
    .string()
    .regex(/^\d{1,4}$/, 'must be a whole number from 1 to 1000')
    .optional(),
  /** Whether to add percentiles of durations and of times to the first content, in milliseconds; not by account or key. Default: false. */
  percentiles: z.enum(['true', 'false']).optional(),
  account: filter,
  key: filter,
  model: filter,
  endpoint: filter,
  vendor: filter,
  end_user: filter,
  tag: filter,
})

const reportSchema = z.strictObject({
  object: z.literal('usage'),
  from_ms: timeMs,
  until_ms: timeMs,
  /** The sums include every call that ended before this time. */
  as_of_ms: timeMs,
  data: z.array(usageRowSchema),
})

const days = z.strictObject({ from: moment, to: moment.optional() })
const daysOfBody = z.strictObject({ from: bodyMoment, to: bodyMoment.optional() })
const DEFAULT_DAYS = 30

/** Routes of sums of calls, and of their verification. */
export const USAGE_ROUTES: readonly AdminRoute[] = [
  defineRoute({
    id: 'query_usage',
    method: 'GET',
    path: '/usage',
    tag: 'usage',
    summary: 'Sums of calls by time, account, key, model, endpoint, vendor, end user and tag',
    scope: 'read',
    query: usageQuery,
    answer: reportSchema,
    async run(call) {
      const report = await reportOf(call)
      return {
        object: 'usage' as const,
        from_ms: report.fromMs,
        until_ms: report.untilMs,
        as_of_ms: report.asOfMs,
        data: report.rows.map(usageRowObject),
      }
    },
  }),
  defineRawRoute({
    id: 'export_usage',
    method: 'GET',
    path: '/usage.csv',
    tag: 'usage',
    summary: 'The same as CSV',
    scope: 'read',
    query: usageQuery,
    answers: ['text/csv'],
    async run(call) {
      return { csv: { fileName: 'usage.csv', lines: csvOf(await reportOf(call), groupsOf(call.query)) } }
    },
  }),
  defineRoute({
    id: 'verify_usage',
    method: 'GET',
    path: '/usage/verify',
    tag: 'usage',
    summary: 'Accounts for which records, sums and journal of whole days differ',
    scope: 'read',
    query: days,
    answer: z.strictObject({
      object: z.literal('list'),
      data: z.array(z.strictObject({ account: z.string(), records: dollars, days: dollars, journal: dollars })),
    }),
    async run({ gateway, query }) {
      const found = await gateway.usage.verify(daysOf(query))
      return {
        object: 'list' as const,
        data: found.map(({ accountId, records, days: sums, journal }) => ({
          account: accountId,
          records: formatDollars(records),
          days: formatDollars(sums),
          journal: formatDollars(journal),
        })),
      }
    },
  }),
  defineRoute({
    id: 'rebuild_usage',
    method: 'POST',
    path: '/usage/rebuild',
    tag: 'usage',
    summary: 'Makes the sums of whole days again from their records',
    scope: 'write',
    body: daysOfBody,
    answer: z.strictObject({ object: z.literal('usage.rebuild'), rebuilt: z.literal(true) }),
    async run({ gateway, body }) {
      await gateway.usage.rebuild(daysOf(body))
      return { object: 'usage.rebuild' as const, rebuilt: true as const }
    },
  }),
]

function daysOf({ from, to }: z.output<typeof daysOfBody>) {
  return { from: momentText(from), ...(to === undefined ? {} : { to: momentText(to) }) }
}

type Asked = z.output<typeof usageQuery>

/** Names of groups in the API. */
const GROUPS: readonly string[] = USAGE_GROUPS.map((name) => (name === 'endUser' ? 'end_user' : name))

/** @throws GatewayError `invalid_request` for an unknown name. */
function groupsOf({ group_by }: Asked): readonly string[] {
  const groups = group_by === undefined || group_by === '' ? [] : group_by.split(',')
  const unknown = groups.find((group) => !GROUPS.includes(group))
  if (unknown === undefined) return groups
  const message = `group_by: ${JSON.stringify(unknown)} is none of ${GROUPS.join(', ')}`
  throw new GatewayError('invalid_request', { message, param: 'group_by' })
}

/** @throws GatewayError `invalid_request` naming the parameter. */
function reportOf({
  gateway,
  clock,
  query,
}: Pick<AdminCall, 'gateway' | 'clock'> & { readonly query: Asked }): Promise<UsageReport> {
  const { from, to, group_by: _groups, limit, top, percentiles, end_user: endUser, ...filters } = query
  return gateway.usage.query({
    from: from === undefined ? clock.now() - (DEFAULT_DAYS - 1) * DAY_MS : momentText(from),
    ...(to === undefined ? {} : { to: momentText(to) }),
    groupBy: groupsOf(query).map((name) => (name === 'end_user' ? 'endUser' : name)) as NonNullable<
      UsageQuery['groupBy']
    >,
    percentiles: percentiles === 'true',
    limit: countOf(limit),
    top: countOf(top),
    ...(endUser === undefined ? {} : { endUser }),
    ...filters,
  })
}

const SUMS = ['requests', 'failed', 'abandoned', 'estimated', 'duration_ms', 'due', 'charged'] as const

/** Number of lines that are formatted in one turn of the event loop. */
const LINES_AT_ONCE = 500

async function* csvOf({ rows }: UsageReport, groups: readonly string[]): AsyncIterable<string> {
  const units = [...new Set(rows.flatMap(({ usage }) => Object.keys(usage)))].sort()
  const steps: readonly string[] = USAGE_STEPS
  let piece = `${[...groups, ...SUMS, ...units].join(',')}\r\n`
  for (const [index, row] of rows.entries()) {
    const { at_ms = 0, usage, percentiles: _none, ...sums } = usageRowObject(row)
    const cells = [
      ...groups.map((column) => (steps.includes(column) ? new Date(at_ms).toISOString() : textOf(sums, column))),
      ...SUMS.map((column) => textOf(sums, column)),
      ...units.map((unit) => String(usage[unit] ?? 0)),
    ]
    piece += `${cells.map(csvCell).join(',')}\r\n`
    if (index % LINES_AT_ONCE !== LINES_AT_ONCE - 1) continue
    yield piece
    piece = ''
    // Otherwise calls would wait for the whole file.
    await endOfTurn()
  }
  if (piece !== '') yield piece
}

function textOf(sums: Readonly<Record<string, unknown>>, column: string): string {
  return String(sums[column] ?? '')
}
