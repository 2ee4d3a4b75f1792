import { formatDollars } from '../core/money.ts'
import type { UsageDays, UsageReports } from '../gateway/usage.ts'
import type { UsageQuery, UsageStep } from '../usage/usage-query.ts'
import type { UsageRecord } from '../usage/usage-record.ts'
import { DAY_MS, USAGE_DIMENSIONS, type UsageDimension, type UsageRow } from '../usage/usage-store.ts'
import { commandArguments, runAction } from './command-arguments.ts'
import { withStore } from './open-store.ts'
import { parseCount, parseNames } from './setting-values.ts'
import { dollarsText, printRows, type Terminal } from './terminal.ts'

const DEFAULT_GROUPS = 'day,model'
const DEFAULT_RECORDS = '20'
/** Days that are shown when nothing else is said. */
const DEFAULT_DAYS = 30

/**
 * `signalbox usage [show]|records|verify|rebuild`.
 * @throws SettingError naming the argument.
 */
export async function usageCommand(words: readonly string[], terminal: Terminal): Promise<void> {
  const actions = { show: showUsage, records: showRecords, verify: verifyUsage, rebuild: rebuildUsage }
  const isBare = words[0] === undefined || words[0].startsWith('-')
  return runAction('usage', actions, isBare ? ['show', ...words] : words, terminal)
}

async function showUsage(words: readonly string[], terminal: Terminal): Promise<void> {
  const given = commandArguments(words, {
    options: ['from', 'to', 'by', 'limit', 'store', ...USAGE_DIMENSIONS],
    flags: ['json'],
    positionals: [],
  })
  const groups = parseNames('--by', given.option('by') ?? DEFAULT_GROUPS)
  const limit = given.option('limit')
  const query: UsageQuery = {
    from: given.option('from') ?? Date.now() - (DEFAULT_DAYS - 1) * DAY_MS,
    to: given.option('to'),
    // Checked where the question is answered, which names what is wrong.
    groupBy: groups as readonly (UsageStep | UsageDimension)[],
    limit: limit === undefined ? undefined : parseCount('--limit', limit),
    ...Object.fromEntries(USAGE_DIMENSIONS.map((dimension) => [dimension, given.option(dimension)])),
  }
  const report = await withUsage(terminal, given.option('store'), (usage) => usage.query(query))
  if (given.flag('json')) {
    const { fromMs, untilMs, asOfMs, rows } = report
    const range = { from: isoText(fromMs), to: isoText(untilMs), as_of: isoText(asOfMs) }
    terminal.print(JSON.stringify({ object: 'list', ...range, data: rows.map(rowJson) }))
    return
  }
  const head = [...groups, 'requests', 'failed', 'input tokens', 'output tokens', 'due', 'charged']
  printRows(terminal, [head, ...report.rows.map((row) => rowText(row, groups))])
}

async function showRecords(words: readonly string[], terminal: Terminal): Promise<void> {
  const given = commandArguments(words, {
    options: ['from', 'to', 'account', 'limit', 'cursor', 'store'],
    flags: ['json'],
    positionals: [],
  })
  const request = {
    account: given.option('account'),
    from: given.option('from'),
    to: given.option('to'),
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
  if (page.next !== undefined) terminal.print(`more: --cursor ${page.next}`)
}

async function verifyUsage(words: readonly string[], terminal: Terminal): Promise<void> {
  const { days, store, asJson } = daysOf(words)
  const found = await withUsage(terminal, store, (usage) => usage.verify(days))
  const data = found.map(({ accountId, records, days: sums, journal }) => ({
    account: accountId,
    records: formatDollars(records),
    days: formatDollars(sums),
    journal: formatDollars(journal),
  }))
  if (asJson) terminal.print(JSON.stringify({ object: 'list', data }))
  else if (data.length === 0) terminal.print('records, sums and journal agree')
  else
    printRows(terminal, [
      ['account', 'records', 'days', 'journal'],
      ...data.map((row) => [row.account, row.records, row.days, row.journal]),
    ])
}

async function rebuildUsage(words: readonly string[], terminal: Terminal): Promise<void> {
  const { days, store, asJson } = daysOf(words)
  await withUsage(terminal, store, (usage) => usage.rebuild(days))
  terminal.print(asJson ? JSON.stringify({ rebuilt: true }) : 'the sums were made again from the records')
}

function daysOf(words: readonly string[]): { days: UsageDays; store: string | undefined; asJson: boolean } {
  const given = commandArguments(words, { options: ['from', 'to', 'store'], flags: ['json'], positionals: [] })
  const from = given.option('from') ?? Date.now() - DAY_MS
  return { days: { from, to: given.option('to') }, store: given.option('store'), asJson: given.flag('json') }
}

function withUsage<Result>(
  terminal: Terminal,
  store: string | undefined,
  ask: (usage: UsageReports) => Promise<Result>,
): Promise<Result> {
  return withStore(terminal, { store }, ({ usage }) => ask(usage))
}

function rowText(row: UsageRow, groups: readonly string[]): string[] {
  const { usage } = row
  return [
    ...groups.map((group) => groupText(row, group)),
    String(row.requests),
    String(row.failed),
    String(usage.inputTokens ?? 0),
    String(usage.outputTokens ?? 0),
    dollarsText(row.dueNanoDollars),
    dollarsText(row.chargedNanoDollars),
  ]
}

/** Characters of an ISO time that name a step. */
const STEP_LENGTHS: Readonly<Record<string, number>> = { hour: 16, day: 10, month: 7 }

function groupText(row: UsageRow, group: string): string {
  const length = STEP_LENGTHS[group]
  if (length !== undefined) return isoText(row.atMs ?? 0).slice(0, length)
  const value = row[group as UsageDimension] ?? ''
  return value === '' ? '-' : value
}

function rowJson({ atMs, dueNanoDollars, chargedNanoDollars, durationMs, ...row }: UsageRow) {
  return {
    ...(atMs === undefined ? {} : { at: isoText(atMs) }),
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
    String(record.status),
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
    due: formatDollars(record.dueNanoDollars),
    charged: formatDollars(record.chargedNanoDollars),
  }
}

function isoText(atMs: number): string {
  return new Date(atMs).toISOString()
}
