import { GatewayError } from '../core/errors.ts'
import { formatDollars } from '../core/money.ts'
import { findRecord, NO_RECORD, type UsageDays, type UsageReportRow, type UsageReports } from '../gateway/usage.ts'
import { millisecondsOf, USAGE_GROUPS, type UsageQuery, UsageQueryError, type UsageStep } from '../usage/usage-query.ts'
import type { AttemptRecord, UsageRecord } from '../usage/usage-record.ts'
import { DAY_MS, USAGE_DIMENSIONS, type UsageDimension } from '../usage/usage-store.ts'
import type { CommandArguments, GroupDefinition } from './command.ts'
import { STORE_OPTIONS, withStore } from './open-store.ts'
import { parseCount, parseNames, SettingError } from './setting-values.ts'
import { dollarsText, printNext, printRows, type Terminal } from './terminal.ts'

const DEFAULT_GROUPS = 'day,model'
const DEFAULT_RECORDS = '20'
/** Number of days that are shown by default. */
const DEFAULT_DAYS = 30

const FROM = { value: 'DATE', text: 'first UTC day' }
const TO = { value: 'DATE', text: 'UTC day after the last one (default: now)' }
const DAYS = { from: FROM, to: TO, ...STORE_OPTIONS }

/** Commands `signalbox usage [show]|…`. The actions throw a SettingError naming the argument. */
export const usageCommand: GroupDefinition = {
  summary: 'show usage and charges',
  actions: {
    show: {
      summary: 'show usage and charges by UTC day and model (default action)',
      isDefault: true,
      options: {
        from: FROM,
        to: TO,
        by: {
          value: 'day,model',
          text: `hour, day or month, and ${USAGE_DIMENSIONS.map(nameOf).join(', ')} (${DEFAULT_GROUPS}; with --top model)`,
        },
        ...Object.fromEntries(
          USAGE_DIMENSIONS.map((name) => [
            nameOf(name),
            { value: 'ID', text: `only of this ${name === 'endUser' ? 'end user' : name}` },
          ]),
        ),
        limit: { value: 'N', text: 'maximum number of rows (default: 10000)' },
        top: { value: 'N', text: 'only the rows with the highest cost' },
        percentiles: { text: 'also show percentiles of durations' },
        ...STORE_OPTIONS,
      },
      run: showUsage,
    },
    records: {
      summary: 'list single calls, newest first',
      options: {
        account: { value: 'ID', text: 'only entries of this account' },
        from: FROM,
        to: TO,
        limit: { value: 'N', text: `maximum number of calls (default: ${DEFAULT_RECORDS})` },
        cursor: { value: 'NEXT', text: 'continue after the previous page' },
        ...STORE_OPTIONS,
      },
      run: showRecords,
    },
    request: {
      summary: 'show one call by its id, with its tries',
      positionals: [{ name: 'REQUEST', text: 'the id of the request, x-request-id of its answer' }],
      options: {
        'ended-at': { value: 'TIME', text: 'end of the call; required if it lasted longer than 15 minutes' },
        ...STORE_OPTIONS,
      },
      run: showRequest,
    },
    verify: {
      summary: 'compare records, sums and journal; exit with status 1 if they differ',
      options: DAYS,
      run: verifyUsage,
    },
    rebuild: { summary: 'rebuild sums from their records', options: DAYS, run: rebuildUsage },
  },
}

async function showUsage(given: CommandArguments, terminal: Terminal): Promise<void> {
  const names = parseNames('--by', given.option('by') ?? (given.option('top') === undefined ? DEFAULT_GROUPS : 'model'))
  const groups = names.map(groupOf)
  const [limit, top] = [given.option('limit'), given.option('top')]
  const query: UsageQuery = {
    from: momentOf(given, 'from') ?? Date.now() - (DEFAULT_DAYS - 1) * DAY_MS,
    to: momentOf(given, 'to'),
    groupBy: groups,
    percentiles: given.flag('percentiles'),
    limit: limit === undefined ? undefined : parseCount('--limit', limit),
    top: top === undefined ? undefined : parseCount('--top', top),
    ...Object.fromEntries(USAGE_DIMENSIONS.map((dimension) => [dimension, given.option(nameOf(dimension))])),
  }
  const report = await withUsage(terminal, given.option('store'), (usage) => usage.query(query))
  if (given.flag('json')) {
    const { fromMs, untilMs, asOfMs, rows } = report
    const range = { from: isoText(fromMs), to: isoText(untilMs), as_of: isoText(asOfMs) }
    terminal.print(JSON.stringify({ object: 'list', ...range, data: rows.map(rowJson) }))
    return
  }
  const latency = given.flag('percentiles') ? ['p50 ms', 'p95 ms', 'first byte p50 ms'] : []
  const head = [...names, 'requests', 'failed', 'input tokens', 'output tokens', 'due', 'charged', ...latency]
  printRows(terminal, [head, ...report.rows.map((row) => rowText(row, groups))])
}

/** @throws SettingError for an unknown value of `--by`. */
function groupOf(name: string): UsageStep | UsageDimension {
  const found = USAGE_GROUPS.find((group) => nameOf(group) === name)
  if (found !== undefined) return found
  throw new SettingError(`--by: ${JSON.stringify(name)} is none of ${USAGE_GROUPS.map(nameOf).join(', ')}`)
}

/** Returns the name of a dimension or step on the command line. */
function nameOf(group: UsageStep | UsageDimension): string {
  return group === 'endUser' ? 'end-user' : group
}

async function showRecords(given: CommandArguments, terminal: Terminal): Promise<void> {
  const request = {
    accountId: given.option('account'),
    from: momentOf(given, 'from'),
    to: momentOf(given, 'to'),
    cursor: given.option('cursor'),
    limit: parseCount('--limit', given.option('limit') ?? DEFAULT_RECORDS),
  }
  const page = await withUsage(terminal, given.option('store'), (usage) => usage.records(request))
  if (given.flag('json')) {
    terminal.print(JSON.stringify({ object: 'list', data: page.records.map(recordJson), next: page.next ?? null }))
    return
  }
  const head = ['ended', 'request', 'account', 'model', 'vendor', 'status', 'ms', 'charged']
  printRows(terminal, [head, ...page.records.map(recordText)])
  printNext(terminal, page.next)
}

/** @throws SettingError for a request without a record. */
async function showRequest(given: CommandArguments, terminal: Terminal): Promise<void> {
  const [id = ''] = given.positionals
  const endedAt = momentOf(given, 'ended-at')
  const search = { id, endedAtMs: endedAt === undefined ? undefined : millisecondsOf(endedAt), nowMs: Date.now() }
  const record = await withUsage(terminal, given.option('store'), (usage) => findRecord(usage, search))
  if (record === undefined) throw new SettingError(`there is no record of ${JSON.stringify(id)}; ${NO_RECORD}`)
  const { object, attempts, usage, tags, ...facts } = recordJson(record)
  if (given.flag('json')) {
    terminal.print(JSON.stringify({ object, ...facts, tags, usage, attempts }))
    return
  }
  const shown = { ...facts, tags: tags.join(', '), ...usage }
  printRows(
    terminal,
    Object.entries(shown).map(([name, value]) => [name, value === null || value === '' ? '-' : String(value)]),
  )
  if (attempts === null) return
  const head = ['try of', 'key', 'model', 'outcome', 'status', 'reason', 'from ms', 'for ms']
  const rows = attempts.map((attempt) => [
    ...[attempt.vendor, attempt.credential, attempt.model, attempt.outcome],
    ...[attempt.status, attempt.reason].map((value) => String(value ?? '-')),
    ...[attempt.start_ms, attempt.duration_ms].map((ms) => String(Math.round(ms))),
  ])
  printRows(terminal, [head, ...rows])
}

async function verifyUsage(given: CommandArguments, terminal: Terminal): Promise<void> {
  const { days, store, asJson } = daysOf(given)
  const found = await withUsage(terminal, store, (usage) => usage.verify(days))
  const data = found.map(({ accountId, records, days: sums, journal }) => ({
    account: accountId,
    records: formatDollars(records),
    days: formatDollars(sums),
    journal: formatDollars(journal),
  }))
  if (data.length > 0) terminal.fail?.()
  if (asJson) terminal.print(JSON.stringify({ object: 'list', data }))
  else if (data.length === 0) terminal.print('records, sums and journal agree')
  else
    printRows(terminal, [
      ['account', 'records', 'days', 'journal'],
      ...data.map((row) => [row.account, row.records, row.days, row.journal]),
    ])
}

async function rebuildUsage(given: CommandArguments, terminal: Terminal): Promise<void> {
  const { days, store, asJson } = daysOf(given)
  await withUsage(terminal, store, (usage) => usage.rebuild(days))
  terminal.print(asJson ? JSON.stringify({ rebuilt: true }) : 'the sums were made again from the records')
}

function daysOf(given: CommandArguments): { days: UsageDays; store: string | undefined; asJson: boolean } {
  const from = momentOf(given, 'from') ?? Date.now() - DAY_MS
  return { days: { from, to: momentOf(given, 'to') }, store: given.option('store'), asJson: given.flag('json') }
}

function withUsage<Result>(
  terminal: Terminal,
  store: string | undefined,
  ask: (usage: UsageReports) => Promise<Result>,
): Promise<Result> {
  return withStore(terminal, { store }, async ({ usage }) => {
    try {
      return await ask(usage)
    } catch (cause) {
      throw GatewayError.isInstance(cause) && cause.cause instanceof UsageQueryError ? optionError(cause.cause) : cause
    }
  })
}

/** @throws SettingError for an invalid time. */
function momentOf(given: CommandArguments, option: 'from' | 'to' | 'ended-at'): string | undefined {
  const text = given.option(option)
  if (text === undefined || !Number.isNaN(millisecondsOf(text))) return text
  throw new SettingError(
    `--${option}: ${JSON.stringify(text)} is not a UTC time such as 2026-11-01 or 2026-11-01T08:00Z`,
  )
}

/** Renames an error's parameters to the names of options. */
function optionError({ param, message }: UsageQueryError): SettingError {
  const option = param === 'groupBy' ? 'by' : nameOf(param as UsageDimension)
  return new SettingError(message.replace(param, `--${option}`).replace(/\bfrom$/, '--from'))
}

function rowText(row: UsageReportRow, groups: readonly string[]): string[] {
  const { usage, percentiles } = row
  return [
    ...groups.map((group) => groupText(row, group)),
    String(row.requests),
    String(row.failed),
    String(usage.inputTokens ?? 0),
    String(usage.outputTokens ?? 0),
    dollarsText(row.dueNanoDollars),
    dollarsText(row.chargedNanoDollars),
    ...(percentiles === undefined
      ? []
      : [percentiles.duration?.p50Ms, percentiles.duration?.p95Ms, percentiles.firstByte?.p50Ms].map((ms) =>
          String(ms ?? '-'),
        )),
  ]
}

/** Length of the prefix of an ISO time that identifies a step. */
const STEP_LENGTHS: Readonly<Record<string, number>> = { hour: 16, day: 10, month: 7 }

function groupText(row: UsageReportRow, group: string): string {
  const length = STEP_LENGTHS[group]
  if (length !== undefined) return isoText(row.atMs ?? 0).slice(0, length)
  const value = row[group as UsageDimension] ?? ''
  return value === '' ? '-' : value
}

function rowJson({ atMs, endUser, dueNanoDollars, chargedNanoDollars, durationMs, ...row }: UsageReportRow) {
  return {
    ...(atMs === undefined ? {} : { at: isoText(atMs) }),
    ...(endUser === undefined ? {} : { end_user: endUser }),
    ...row,
    duration_ms: durationMs,
    due: formatDollars(dueNanoDollars),
    charged: formatDollars(chargedNanoDollars),
  }
}

function recordText(record: UsageRecord): string[] {
  return [
    isoText(record.endedAtMs),
    record.id,
    record.accountId,
    record.model,
    record.vendor ?? '-',
    record.code === undefined ? String(record.status) : `${record.status} ${record.code}`,
    String(Math.round(record.durationMs)),
    dollarsText(record.chargedNanoDollars),
  ]
}

function recordJson(record: UsageRecord) {
  return {
    object: 'usage.record',
    id: record.id,
    ended_at: isoText(record.endedAtMs),
    account: record.accountId,
    key: record.keyId,
    end_user: record.endUser ?? null,
    tags: record.tags,
    endpoint: record.endpoint,
    model: record.model,
    requested_model: record.requestedModel,
    vendor: record.vendor ?? null,
    credential: record.credentialId ?? null,
    vendor_request_id: record.vendorRequestId ?? null,
    ending: record.ending,
    status: record.status,
    code: record.code ?? null,
    stream: record.isStream,
    usage: record.usage,
    estimated: record.isEstimated,
    duration_ms: record.durationMs,
    first_byte_ms: record.firstByteMs ?? null,
    attempts: record.attempts?.map(attemptJson) ?? null,
    due: formatDollars(record.dueNanoDollars),
    charged: formatDollars(record.chargedNanoDollars),
  }
}

function attemptJson(attempt: AttemptRecord) {
  return {
    vendor: attempt.vendor,
    credential: attempt.credentialId,
    model: attempt.model,
    outcome: attempt.outcome,
    reason: attempt.reason ?? null,
    status: attempt.status ?? null,
    start_ms: attempt.startMs,
    duration_ms: attempt.durationMs,
  }
}

function isoText(atMs: number): string {
  return new Date(atMs).toISOString()
}
