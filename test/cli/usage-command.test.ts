import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { SettingError } from '../../src/cli/setting-values.ts'
import { runSignalbox } from '../../src/cli/signalbox.ts'
import { sqliteStore } from '../../src/stores/sqlite/sqlite-store.ts'
import {
  ACCOUNT_ID,
  exampleDraft,
  exampleReservation,
  fundedLedger,
} from '../../src/testing/contracts/contract-runner.ts'
import { usageRecord } from '../../src/usage/usage-record.ts'
import { DAY_MS } from '../../src/usage/usage-store.ts'
import { runCommand, runCommandWithWarnings, runForJson } from './support/run-command.ts'

const ENDED_AT_MS = Date.UTC(2026, 10, 20, 12)

let folder: string
let environment: Record<string, string>

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-usage-'))
  const path = join(folder, 'money.db')
  environment = { SIGNALBOX_STORE: `sqlite:${path}` }
  const store = sqliteStore({ path, clock: 'caller' })
  await store.start()
  await fundedLedger(store, 1_000_000_000n)
  for (const [index, model] of ['gp-5.4', 'cl-sonnet-4-6', 'gp-5.4'].entries()) {
    const holdId = `hold_${index}`
    await store.ledger.reserve(exampleReservation({ holdId, expiresAtMs: ENDED_AT_MS * 2 }), ENDED_AT_MS)
    const record = exampleDraft({ id: `request_${index}`, model })
    await store.ledger.settle({ holdId, amount: 1_500_000n, description: 'chat', record }, ENDED_AT_MS + index)
  }
  await store.close()
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const RANGE = ['--from', '2026-11-20', '--to', '2026-11-21']

test('usage shows a table by day and model', async () => {
  const lines = await runCommand(['usage', ...RANGE], environment)

  expect(lines).toEqual([
    'day         model          requests  failed  input tokens  output tokens  due      charged',
    '2026-11-20  cl-sonnet-4-6  1         0       100           20             $0.0015  $0.0015',
    '2026-11-20  gp-5.4         2         0       200           40             $0.003   $0.003',
  ])
})

test('usage --by end-user,tag adds up the records that are kept', async () => {
  const store = sqliteStore({ path: join(folder, 'money.db'), clock: 'caller' })
  await store.start()
  const draft = exampleDraft({ id: 'request_now', endUser: 'user_7', tags: ['a', 'b'] })
  await store.usage?.write([usageRecord(draft, { endedAtMs: Date.now(), dueNanoDollars: 0n, chargedNanoDollars: 0n })])
  await store.close()
  const from = ['--from', new Date(Date.now() - 3_600_000).toISOString()]
  const lines = await runCommand(['usage', ...from, '--by', 'end-user,tag'], environment)
  const { data } = await runForJson(['usage', ...from, '--by', 'tag', '--end-user', 'user_7'], environment)

  expect(lines.map((line) => line.split(/ {2,}/).slice(0, 3))).toEqual([
    ['end-user', 'tag', 'requests'],
    ['user_7', 'a', '1'],
    ['user_7', 'b', '1'],
  ])
  expect(data).toMatchObject([
    { tag: 'a', requests: 1 },
    { tag: 'b', requests: 1 },
  ])
})

test('a text of a caller cannot give orders to the terminal', async () => {
  const store = sqliteStore({ path: join(folder, 'money.db'), clock: 'caller' })
  await store.start()
  const draft = exampleDraft({ id: 'request_now', endUser: 'a\u001b]0;owned\u0007\u009b2J\r\nb\u2028c' })
  await store.usage?.write([usageRecord(draft, { endedAtMs: Date.now(), dueNanoDollars: 0n, chargedNanoDollars: 0n })])
  await store.close()
  const from = ['--from', new Date(Date.now() - 3_600_000).toISOString()]
  const lines = await runCommand(['usage', ...from, '--by', 'end-user'], environment)

  expect(lines[1]?.split(/ {2,}/)[0]).toBe('a\\u001b]0;owned\\u0007\\u009b2J\\u000d\\u000ab\\u2028c')
})

test('usage --json gives sums with amounts as decimal dollars', async () => {
  const words = ['usage', 'show', ...RANGE, '--by', 'account,vendor', '--account', ACCOUNT_ID]
  const { data, ...range } = await runForJson(words, environment)

  expect(range).toMatchObject({ object: 'usage', from_ms: Date.UTC(2026, 10, 20), until_ms: Date.UTC(2026, 10, 21) })
  expect(data).toMatchObject([
    {
      account: ACCOUNT_ID,
      vendor: 'openai',
      requests: 3,
      usage: { inputTokens: 300 },
      due: '0.0045',
      charged: '0.0045',
    },
  ])
})

test('returns the most expensive rows for usage --top, and rejects an invalid count', async () => {
  const { data } = await runForJson(['usage', ...RANGE, '--by', 'account', '--top', '1', '--limit', '1'], environment)

  expect(data).toMatchObject([{ account: ACCOUNT_ID, charged: '0.0045' }])
  // Without --by they are models: a step in time has no top.
  expect((await runForJson(['usage', ...RANGE, '--top', '5'], environment)).data[0]).toHaveProperty('model')
  await expect(runCommand(['usage', ...RANGE, '--top', 'ten'], environment)).rejects.toThrow('--top')
})

test('usage records gives pages of single calls', async () => {
  const first = await runForJson(['usage', 'records', '--limit', '2'], environment)
  const second = await runForJson(['usage', 'records', '--cursor', String(first['next'])], environment)

  expect(first.data.map(({ id }) => id)).toEqual(['request_2', 'request_1'])
  expect(second.data.map(({ id }) => id)).toEqual(['request_0'])
  expect(second['next']).toBe(null)
  expect((await runCommand(['usage', 'records', '--limit', '2'], environment)).at(-1)).toBe(
    `more: --cursor ${first['next']}`,
  )
})

test('usage records filters calls, and usage --csv prints sums as a file', async () => {
  const { data } = await runForJson(['usage', 'records', '--model', 'gp-5.4'], environment)
  const lines = await runCommand(['usage', ...RANGE, '--by', 'model', '--csv'], environment)

  expect(data.map(({ id }) => id)).toEqual(['request_2', 'request_0'])
  expect(lines.join('\n').split('\r\n')).toEqual([
    expect.stringMatching(/^model,requests,failed,/),
    expect.stringMatching(/^cl-sonnet-4-6,1,/),
    expect.stringMatching(/^gp-5.4,2,/),
  ])
  await expect(runCommand(['usage', '--csv', '--json'], environment)).rejects.toThrow(
    '--json: has no effect with --csv',
  )
})

test('usage request shows one call by its id, with its tries', async () => {
  const store = sqliteStore({ path: join(folder, 'money.db'), clock: 'caller' })
  await store.start()
  const id = `req_${(Date.now() - 60_000).toString(16).padStart(12, '0')}${'0'.repeat(20)}`
  const attempt = { vendor: 'openai', credentialId: 'openai:1', model: 'gp-5.4', reason: undefined, status: undefined }
  const draft = exampleDraft({
    ...{ id, ending: 'failed', status: 503, code: 'upstream_unavailable' },
    attempts: [
      { ...attempt, outcome: 'failed', reason: 'unavailable', status: 503, startMs: 2, durationMs: 30 },
      { ...attempt, outcome: 'answered', startMs: 40, durationMs: 50 },
    ],
  })
  const end = { endedAtMs: Date.now() - 59_000, dueNanoDollars: 0n, chargedNanoDollars: 0n }
  await store.usage?.write([usageRecord(draft, end)])
  await store.close()
  const lines = await runCommand(['usage', 'request', id], environment)
  const cells = lines.map((line) => line.split(/ {2,}/))
  const endedAt = new Date(ENDED_AT_MS).toISOString()

  expect(cells).toEqual(
    expect.arrayContaining([
      ['id', id],
      ['code', 'upstream_unavailable'],
      ['inputTokens', '100'],
      ['openai', 'openai:1', 'gp-5.4', 'failed', '503', 'unavailable', '2', '30'],
      ['openai', 'openai:1', 'gp-5.4', 'answered', '-', '-', '40', '50'],
    ]),
  )
  expect(await runForJson(['usage', 'request', id], environment)).toMatchObject({ id, attempts: [{}, {}] })
  expect(await runCommand(['usage', 'records'], environment)).toEqual(
    expect.arrayContaining([expect.stringContaining('503 upstream_unavailable')]),
  )
  // Ids from outside contain no time. The end of a task is recorded a moment later than in the task.
  await expect(runCommand(['usage', 'request', 'request_2'], environment)).rejects.toThrow('there is no record of')
  expect(await runForJson(['usage', 'request', 'request_2', '--ended-at', endedAt], environment)).toMatchObject({
    id: 'request_2',
  })
  await expect(runCommand(['usage', 'request', id, '--ended-at', 'soon'], environment)).rejects.toThrow('--ended-at')
})

test('usage verify and rebuild work on whole days', async () => {
  expect(await runCommand(['usage', 'verify', ...RANGE], environment)).toEqual(['records, sums and journal agree'])
  expect(await runForJson(['usage', 'rebuild', ...RANGE], environment)).toEqual({
    ...{ object: 'usage.rebuild', rebuilt: true },
  })
  const { data } = await runForJson(['usage', ...RANGE], environment)
  expect(data.map(({ requests }) => requests)).toEqual([1, 2])
})

test('exits usage verify with status 1 if records, sums and journal differ', async () => {
  const verify = async (rest: readonly string[]) => {
    const told = { lines: [] as string[], failed: 0 }
    const print = (line: string) => void told.lines.push(line)
    await runSignalbox(['usage', 'verify', ...rest], { environment, print, fail: () => (told.failed += 1) }, '0.0.0')
    return told
  }
  expect(await verify(RANGE)).toMatchObject({ failed: 0 })

  const store = sqliteStore({ path: join(folder, 'money.db'), clock: 'caller' })
  await store.start()
  await store.usage?.forget({
    recordsUntilMs: ENDED_AT_MS + 1,
    hoursUntilMs: undefined,
    daysUntilMs: undefined,
    limit: 10,
  })
  await store.close()

  expect(await verify(RANGE)).toEqual({
    lines: ['account    records  days     journal', expect.stringMatching(/ \$?0.003 +\$?0.0045 +\$?0.0045$/)],
    failed: 1,
  })
  expect(await verify([...RANGE, '--json'])).toMatchObject({ failed: 1 })
})

test('usage knows how long the configuration file keeps records and sums', async () => {
  const config = join(folder, 'signalbox.config.json')
  const retention = { recordDays: 90, hourDays: 'forever', dayDays: 7 }
  writeFileSync(config, JSON.stringify({ gateway: { usage: { retention } } }))
  const ask = (daysAgo: number, ...words: readonly string[]) => {
    const from = new Date(Date.now() - daysAgo * DAY_MS).toISOString()
    return runCommand(['usage', '--config', config, '--from', from, ...words], environment)
  }

  await expect(ask(60, '--by', 'end-user')).resolves.toEqual(expect.any(Array))
  await expect(ask(100, '--by', 'end-user')).rejects.toThrow(/^--from: sums by end user and by tag/)
  await expect(ask(9, '--by', 'day,account')).rejects.toThrow(/^--from: sums by day/)
})

test('usage follows the retention of the store, warns of another one in its file, and does not change it', async () => {
  const config = join(folder, 'signalbox.config.json')
  writeFileSync(config, JSON.stringify({ gateway: { usage: { retention: { recordDays: 60 } } } }))
  const store = sqliteStore({ path: join(folder, 'money.db') })
  await store.start()
  await store.settings?.write({ 'usage.retention.recordDays': 400 })
  const daysAgo = (days: number) => new Date(Date.now() - days * DAY_MS).toISOString().slice(0, 10)
  const words = ['usage', 'verify', '--from', daysAgo(300), '--to', daysAgo(299)]
  const plain = await runCommandWithWarnings(words, environment)
  const configured = await runCommandWithWarnings([...words, '--config', config], environment)
  const settings = await store.settings?.read()
  await store.close()

  expect(plain).toMatchObject({ warnings: [], hasFailed: false })
  expect(configured.lines).toEqual(plain.lines)
  expect(configured.warnings).toEqual([
    'usage.retention.recordDays is 60 in this process and 400 in the store. 400 applies to all processes of the store. Set the same value in all of them.',
  ])
  expect(settings).toEqual({ 'usage.retention.recordDays': 400 })
})

test.each([
  [['usage', '--by', 'user'], /--by: "user" is none of .*, end-user, tag$/],
  [['usage', '--from', 'yesterday'], /^--from: "yesterday" is not a UTC time such as/],
  [['usage', '--from', '2026-13-01'], /^--from: "2026-13-01" is not/],
  [['usage', '--from', '2026-11-01', '--to', '2026-11-31'], /^--to: "2026-11-31" is not/],
  [['usage', '--from', '2010-01-01'], /^--from: at most 400 days/],
  [['usage', '--from', '2026-11-02', '--to', '2026-11-01'], /^--to: must be after --from$/],
  [['usage', '--by', 'day,hour'], /^--by: accepts only one of/],
  [['usage', '--limit', '1000000'], /^--limit: must be a whole number/],
  [['usage', 'records', '--cursor', 'x'], /^--cursor: is not a cursor/],
  [['usage', 'records', '--to', 'x'], /^--to: "x" is not/],
  [['usage', 'verify', '--from', '2026-13-01'], /^--from: "2026-13-01" is not/],
  [['usage', 'rebuild', '--to', '2026-13-01'], /^--to: "2026-13-01" is not/],
  [['usage', 'everything'], /usage: say show, records, request, verify or rebuild/],
])('%j is refused with what is wrong', async (words, message) => {
  const error = await runCommand(words, environment).catch((cause: unknown) => cause)

  expect(error).toBeInstanceOf(SettingError)
  expect((error as Error).message).toMatch(message)
})
