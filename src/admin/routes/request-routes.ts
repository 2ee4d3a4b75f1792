import * as z from 'zod'
import { endOfTurn } from '../../core/calls-in-flight.ts'
import { GatewayError } from '../../core/errors.ts'
import { formatDollars } from '../../core/money.ts'
import { csvCell } from '../../gateway/account-books.ts'
import { findRecord, NO_RECORD, type UsageReport } from '../../gateway/usage.ts'
import { DEFAULT_SECRET_OVERLAP_MS } from '../../gateway/webhooks.ts'
import { USAGE_GROUPS, USAGE_STEPS, type UsageQuery } from '../../usage/usage-query.ts'
import type { UsageRecord } from '../../usage/usage-record.ts'
import { DAY_MS } from '../../usage/usage-store.ts'
import {
  type AdminCall,
  type Administration,
  defineRawRoute,
  defineRoute,
  existing,
  notFound,
  type UntaggedRoute,
} from '../admin-route.ts'
import { entryObject } from '../objects/accounts.ts'
import {
  bodyMoment,
  countOf,
  dollars,
  id,
  listObject,
  listOfObjects,
  moment,
  momentMs,
  momentText,
  pageQuery,
  timeMs,
} from '../objects/fields.ts'
import { deliveryObject, deliverySchema, deliveryState, taskObject, taskSchema, taskState } from '../objects/task.ts'
import {
  attemptObjects,
  requestDetailSchema,
  requestObject,
  requestSchema,
  usageRowObject,
  usageRowSchema,
} from '../objects/usage.ts'

const text = z.string().max(500).optional()
const filters = {
  account: text,
  key: text,
  model: text,
  endpoint: text,
  vendor: text,
  ending: z.enum(['completed', 'failed', 'abandoned']).optional(),
  code: text,
  user: text,
  tag: text,
}
const DEFAULT_LIMIT = 50

/** Approximate number of records that are read for one page. */
const MAX_READ = 10_000
/** Maximum number of records in one query. */
const LARGEST_PIECE = 500

/** Routes of single calls. */
export const REQUEST_ROUTES: readonly UntaggedRoute<Administration>[] = [
  defineRoute({
    id: 'list_requests',
    get: '/requests',
    summary:
      'List single calls, newest first; with filters a page may hold fewer than `limit`, even none, while there are more',
    query: z.strictObject({ from: moment.optional(), to: moment.optional(), ...filters, ...pageQuery }),
    answer: listOfObjects(requestSchema),
    async run({ gateway, query: { from, to, after, limit, ...wanted } }) {
      const range = {
        accountId: wanted.account,
        from: momentText(from),
        to: momentText(to),
      }
      const asked = { range, after, limit: countOf(limit) ?? DEFAULT_LIMIT, wanted }
      const page = await filteredPage(gateway, asked)
      return listObject(page.records.map(requestObject), page.next)
    },
  }),
  defineRoute({
    id: 'get_request',
    get: '/requests/{request}',
    summary: 'Show one call with its attempts and journal lines',
    /** End of the call, from a list of calls. Without it, the search uses the time in the id. */
    query: z.strictObject({ ended_at: moment.optional() }),
    answer: requestDetailSchema,
    async run({ gateway, clock, params: { request: id }, query }) {
      const endedAtMs = momentMs('ended_at', query.ended_at)
      const record = await findRecord(gateway.usage, { id, endedAtMs, nowMs: clock.now() })
      if (record === undefined) throw notFound('record of a request', id, NO_RECORD)
      return {
        ...requestObject(record),
        attempts: attemptObjects(record),
        journal: await journalOf(gateway, record),
      }
    },
  }),
]

type Wanted = { readonly [Name in keyof typeof filters]?: string | undefined }

interface AskedPage {
  readonly range: {
    readonly accountId: string | undefined
    readonly from: string | number | undefined
    readonly to: string | number | undefined
  }
  readonly after: string | undefined
  readonly limit: number
  readonly wanted: Wanted
}

/**
 * Returns a page of calls with filters. Stores find records only by account and time, so other records are read and skipped, up to a
 * limit. The reads grow while few records match, so that such filters need few queries.
 * @throws GatewayError `invalid_request` naming the parameter.
 */
async function filteredPage(gateway: Administration, { range, after, limit, wanted }: AskedPage) {
  const found: UsageRecord[] = []
  let next = after
  let piece = limit
  // A half-full page is sufficient: the rest would be read in ever smaller parts.
  for (let read = 0; read < MAX_READ; ) {
    // A store in this process answers without waiting, so calls would wait for all parts.
    if (read > 0) await endOfTurn()
    const page = await gateway.usage.records({ ...range, cursor: next, limit: piece })
    const fitting = page.records.filter((record) => isWanted(record, wanted))
    // A store may return an empty page before the end.
    read += Math.max(limit, page.records.length)
    const room = limit - found.length
    // A cursor is the end of a read. If too many records match, they are read again in a part that fits completely.
    if (fitting.length > room) {
      piece = room
      continue
    }
    found.push(...fitting)
    next = page.next
    if (next === undefined || found.length * 2 >= limit) break
    piece = 4 * fitting.length < room ? Math.min(2 * piece, LARGEST_PIECE) : limit - found.length
  }
  return { records: found, next }
}

function isWanted(record: UsageRecord, { key, model, endpoint, vendor, ending, code, user, tag }: Wanted): boolean {
  return (
    isSame(key, record.keyId) &&
    (isSame(model, record.model) || isSame(model, record.requestedModel)) &&
    isSame(endpoint, record.endpoint) &&
    isSame(vendor, record.vendor) &&
    isSame(ending, record.ending) &&
    isSame(code, record.code) &&
    isSame(user, record.endUser) &&
    (tag === undefined || (tag === '' ? record.tags.length === 0 : record.tags.includes(tag)))
  )
}

/** In sums, an empty string stands for a missing value. */
function isSame(wanted: string | undefined, value = ''): boolean {
  return wanted === undefined || wanted === value
}

/** A charge is written at the end of its call, and its hold has the call's id. */
async function journalOf(gateway: Administration, { id, accountId, endedAtMs }: UsageRecord) {
  if ((await gateway.accounts.get(accountId)) === undefined) return []
  const range = { fromMs: endedAtMs, untilMs: endedAtMs + 1, limit: 1_000 }
  const { entries } = await gateway.accounts.journal(accountId, range)
  return entries.filter(({ holdId }) => holdId === id).map(entryObject)
}

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
export const USAGE_ROUTES: readonly UntaggedRoute<Administration>[] = [
  defineRoute({
    id: 'query_usage',
    get: '/usage',
    summary: 'Show usage and charges by time, account, key, model, endpoint, vendor, end user and tag',
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
    get: '/usage.csv',
    summary: 'Export usage and charges as CSV',
    query: usageQuery,
    answers: ['text/csv'],
    async run(call) {
      return { csv: { fileName: 'usage.csv', lines: csvOf(await reportOf(call), groupsOf(call.query)) } }
    },
  }),
  defineRoute({
    id: 'verify_usage',
    get: '/usage/verify',
    summary: 'Compare records, sums and journal of whole days, and list the accounts that differ',
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
    post: '/usage/rebuild',
    summary: 'Rebuild the sums of whole days from their records',
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
  return { from: momentText(from), to: momentText(to) }
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
}: Pick<AdminCall<Administration>, 'gateway' | 'clock'> & { readonly query: Asked }): Promise<UsageReport> {
  const { from, to, group_by: _groups, limit, top, percentiles, end_user: endUser, ...filters } = query
  return gateway.usage.query({
    from: from === undefined ? clock.now() - (DEFAULT_DAYS - 1) * DAY_MS : momentText(from),
    to: momentText(to),
    groupBy: groupsOf(query).map((name) => (name === 'end_user' ? 'endUser' : name)) as NonNullable<
      UsageQuery['groupBy']
    >,
    percentiles: percentiles === 'true',
    limit: countOf(limit),
    top: countOf(top),
    endUser,
    ...filters,
  })
}

const SUMS = ['requests', 'failed', 'abandoned', 'estimated', 'duration_ms', 'due', 'charged'] as const

/** Number of lines that are formatted in one turn of the event loop. */
const LINES_PER_TURN = 500

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
    if (index % LINES_PER_TURN !== LINES_PER_TURN - 1) continue
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

/** Routes of accounts' tasks. */
export const TASK_ROUTES: readonly UntaggedRoute[] = [
  defineRoute({
    id: 'list_all_tasks',
    get: '/tasks',
    summary: 'List tasks of all accounts, newest first',
    query: z.strictObject({ account: id.optional(), state: taskState.optional(), ...pageQuery }),
    answer: listOfObjects(taskSchema),
    async run({ gateway, operator, query: { account, state, after: cursor, limit } }) {
      const { tasks, next } = await gateway.tasks.listAll({ accountId: account, state, cursor, limit: countOf(limit) })
      const listed = tasks.map((task) => taskObject({ task, operator }))
      return listObject(listed, next)
    },
  }),
  defineRoute({
    id: 'list_tasks',
    get: '/accounts/{account}/tasks',
    summary: 'List tasks of an account, newest first',
    query: z.strictObject(pageQuery),
    answer: listOfObjects(taskSchema),
    async run({ gateway, operator, params: { account }, query: { after, limit } }) {
      const { tasks, hasMore } = await gateway.tasks.list(account, { after, limit: countOf(limit) })
      const listed = tasks.map((task) => taskObject({ task, operator }))
      return listObject(listed, hasMore ? tasks.at(-1)?.id : undefined)
    },
  }),
  defineRoute({
    id: 'get_task',
    get: '/accounts/{account}/tasks/{task}',
    summary: 'Show one task, by the gateway’s id or the vendor’s',
    answer: taskSchema,
    async run({ gateway, operator, params: { account, task: id } }) {
      return taskObject({ task: existing('task', id, await gateway.tasks.get(account, id)), operator })
    },
  }),
  defineRoute({
    id: 'cancel_task',
    post: '/accounts/{account}/tasks/{task}/cancel',
    summary: 'Cancel a batch, a background answer, or a video that its vendor has not begun',
    scope: 'write',
    target: 'task',
    showsContent: true,
    answer: taskSchema,
    async run({ gateway, operator, params: { account, task: id } }) {
      return taskObject({ task: existing('task', id, await gateway.tasks.cancel(account, id)), operator })
    },
  }),
]

/** Routes of messages about tasks, and of the secrets that sign them. */
export const WEBHOOK_ROUTES: readonly UntaggedRoute<Administration>[] = [
  defineRoute({
    id: 'list_all_deliveries',
    get: '/deliveries',
    summary: 'List webhook messages of all accounts, newest first, with their newest 50 attempts',
    query: z.strictObject({ account: id.optional(), state: deliveryState.optional(), ...pageQuery }),
    answer: listOfObjects(deliverySchema),
    async run({ gateway, query: { account, state, after: cursor, limit } }) {
      const { deliveries, next } = await gateway.webhooks.listAll({
        accountId: account,
        state,
        cursor,
        limit: countOf(limit),
      })
      return listObject(deliveries.map(deliveryObject), next)
    },
  }),
  defineRoute({
    id: 'list_deliveries',
    get: '/accounts/{account}/tasks/{task}/deliveries',
    summary: 'List webhook messages about a task, oldest first, with their newest 50 attempts',
    answer: listOfObjects(deliverySchema),
    async run({ gateway, params: { account, task } }) {
      const deliveries = await gateway.webhooks.deliveries(account, task)
      return listObject(deliveries.map(deliveryObject), undefined)
    },
  }),
  defineRoute({
    id: 'resend_delivery',
    post: '/accounts/{account}/deliveries/{delivery}/resend',
    summary: 'Send a webhook message again, whatever its state',
    scope: 'write',
    target: 'delivery',
    answer: z.strictObject({ object: z.literal('delivery.resend'), delivery: id, resent: z.literal(true) }),
    async run({ gateway, params: { account, delivery } }) {
      if (!(await gateway.webhooks.resend(account, delivery))) throw notFound('webhook message', delivery)
      return { object: 'delivery.resend' as const, delivery, resent: true as const }
    },
  }),
  defineRoute({
    id: 'read_webhook_secret',
    get: '/accounts/{account}/webhook_secret',
    summary: 'Show the secret that signs the webhook messages of an account; creates one if there is none',
    // The scope is `write`, because the secret can sign messages in the gateway's name.
    scope: 'write',
    secret: 'secret',
    answer: z.strictObject({ object: z.literal('webhook.secret'), account: id, secret: z.string() }),
    async run({ gateway: { accounts, webhooks }, isReadOnly, params: { account } }) {
      if (isReadOnly) {
        const message = 'Changes are disabled here, and reading a secret creates one if there is none.'
        throw new GatewayError('method_not_allowed', { message })
      }
      existing('account', account, await accounts.get(account))
      return { object: 'webhook.secret' as const, account, secret: await webhooks.secret(account) }
    },
  }),
  defineRoute({
    id: 'rotate_webhook_secret',
    post: '/accounts/{account}/webhook_secret',
    summary: 'Give an account a new webhook secret; older ones still sign during the overlap',
    scope: 'write',
    secret: 'secret',
    body: z.strictObject({ overlap_ms: z.number().min(0).optional() }),
    answer: z.strictObject({
      object: z.literal('webhook.secret'),
      account: id,
      /** The secret, or null if the request was repeated. */
      secret: z.string().nullable(),
      /** End of the time in which older secrets still sign. */
      older_until_ms: timeMs,
    }),
    async run({ gateway: { accounts, webhooks }, clock, params: { account }, body }) {
      existing('account', account, await accounts.get(account))
      const { overlap_ms: overlapMs = DEFAULT_SECRET_OVERLAP_MS } = body
      const secret = await webhooks.rotateSecret(account, { overlapMs })
      const older_until_ms = Math.floor(clock.now() + overlapMs)
      return { object: 'webhook.secret' as const, account, secret, older_until_ms }
    },
  }),
]
