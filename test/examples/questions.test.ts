import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { codeBlocks, ROOT, readPage, section, shownParts } from '../docs/support/markdown.ts'
import { realServer } from '../support/real-servers.ts'
import { endOfExample } from './support/run-example.ts'

const postgres = await realServer('postgres')
const redis = await realServer('redis')

/** The programs that answer an operator's question, and where the docs show them. */
const SHOWN = [
  ['spend-per-user', 'docs/usage.md', 'Spend per user'],
  ['plan-limits', 'docs/limits.md', 'Limits by plan'],
  ['alert-on-failures', 'docs/monitoring.md', 'Alerts without Prometheus'],
  ['four-pods', 'docs/scaling.md', 'Four pods'],
  ['which-request-cost-that', 'docs/admin-api.md', 'Which request cost that?'],
] as const

/** Longer than that, a program answers more than one question. */
const MAX_LINES = 68

describe.each(SHOWN)('the example %s', (name, path, heading) => {
  const program = readFileSync(join(ROOT, `examples/${name}.mjs`), 'utf8')

  test('is short, and equal to the program on its page', () => {
    const shown = shownParts().get(name)
    const text = section(readPage(path), heading)

    expect(program.split('\n').length - 1).toBeLessThanOrEqual(MAX_LINES)
    expect(codeBlocks({ path, text }).map(({ code }) => code)).toContain(shown)
    expect(text).toContain(`(../examples/${name}.mjs)`)
  })
})

/** Runs a program to its good end, and gives its lines. */
async function linesOf(name: string, environment: Record<string, string> = {}): Promise<string[]> {
  const { code, output } = await endOfExample(name, environment)
  expect([code, output]).toEqual([0, expect.any(String)])
  return output.trimEnd().split('\n')
}

const nano = (line: string): bigint => BigInt(Math.round(Number(line.split(' ').at(-1)) * 1e9))

test('spend-per-user adds up to what the account has spent', async () => {
  const lines = await linesOf('spend-per-user')
  const users = lines.slice(0, -1)

  expect(users.map((line) => line.replace(/ [\d.]+$/, '')).sort()).toEqual(['(not named)', 'alice', 'bob', 'carol'])
  expect(users.reduce((sum, line) => sum + nano(line), 0n)).toBe(nano(lines.at(-1) ?? ''))
  expect(nano(users.find((line) => line.startsWith('alice')) ?? '')).toBe(
    3n * nano(users.find((line) => line.startsWith('carol')) ?? ''),
  )
})

test('plan-limits refuses what the plan does not allow, by account and by end user', async () => {
  expect(await linesOf('plan-limits')).toEqual([
    'acct_trial ok, ok, ok, 429 rate_limited, 429 rate_limited',
    'acct_paying ok, ok, ok, ok, ok',
    'acct_paying alice ok, ok, ok, ok, 429 rate_limited',
    'acct_trial is now pro',
  ])
})

test('alert-on-failures tells once of a vendor that fails, and of each threshold of the balance', async () => {
  expect(await linesOf('alert-on-failures')).toEqual([
    'ALERT anthropic failed 5 times in a minute: unavailable',
    'ALERT acct_shop has used 50 % of its balance',
    'ALERT acct_shop has used 80 % of its balance',
  ])
})

test('leads from the most expensive charge to its call with which-request-cost-that', async () => {
  expect(await linesOf('which-request-cost-that')).toEqual([
    expect.stringMatching(/^\$0\.0\d+ for claude-sonnet-5-5 by bob with the key web$/),
    expect.stringMatching(/^1\d{3} tokens in, \d+ out, 2 attempts$/),
  ])
})

describe.skipIf(postgres.missing !== undefined || redis.missing !== undefined)('four-pods', () => {
  test('charges each answer once, and admits one limit among four processes', { timeout: 60_000 }, async () => {
    const [limits = '', money = ''] = await linesOf('four-pods', {
      DATABASE_URL: postgres.url,
      REDIS_URL: redis.url,
    })
    const [, pods, answered, refused] = /^(\d) pods: (\d+) answered, (\d+) refused$/.exec(limits) ?? []
    const [, charges, balance] = /^(\d+) charges, balance ([\d.]+)$/.exec(money) ?? []

    expect(Number(pods)).toBe(4)
    expect(Number(answered) + Number(refused)).toBe(40)
    // A bucket of 30 that refills by one in two seconds.
    expect(Number(answered)).toBeGreaterThanOrEqual(30)
    expect(Number(answered)).toBeLessThan(40)
    expect(Number(charges)).toBe(Number(answered))
    expect(Number(balance)).toBeLessThan(1)
  })
})
