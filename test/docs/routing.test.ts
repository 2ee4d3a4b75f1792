import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import {
  afterBegin,
  afterBusy,
  afterFailure,
  type CircuitState,
  CLOSED,
  FAILURES_TO_OPEN,
  ROUTING_STRATEGIES,
} from '../../src/routing/candidate.ts'
import { RetryBudget } from '../../src/routing/selection.ts'
import { firstTable, ROOT, readPage, section } from './support/markdown.ts'

const page = readPage('docs/routing.md')

function membersOf(path: string, name: string): string[] {
  const source = readFileSync(join(ROOT, path), 'utf8')
  const body = new RegExp(`interface ${name} \\{\\n([\\s\\S]*?)\\n\\}`).exec(source)?.[1] ?? ''
  return [...body.matchAll(/^ {2}readonly (\w+)\??:/gm)].map(([, member]) => member!)
}

/** How long the circuit of something that fails again and again is open each time, in seconds. */
function lengths(fail: (health: CircuitState, nowMs: number) => CircuitState, count: number): number[] {
  let nowMs = 1
  let health: CircuitState = CLOSED
  const found: number[] = []
  while (found.length < count) {
    health = fail(afterBegin(health, nowMs), nowMs)
    if (health.openUntilMs <= nowMs) continue
    found.push((health.openUntilMs - nowMs) / 1000)
    nowMs = health.openUntilMs
  }
  return found
}

test('the page lists the members of a route', () => {
  const [, ...rows] = firstTable(section(page, 'Several vendors for one model'))

  expect(rows.map(([member]) => member)).toEqual(membersOf('src/catalog/model.ts', 'ModelRoute'))
})

test('the page lists the strategies', () => {
  const [, ...rows] = firstTable(section(page, 'Which candidate is tried first'))

  expect(rows.map(([strategy]) => strategy)).toEqual(ROUTING_STRATEGIES)
})

test('the page names every member that a host may decide on', () => {
  const text = section(page, 'Your own requests')

  for (const member of membersOf('src/routing/candidate.ts', 'RouteOverride')) expect(text).toContain(`\`${member}\``)
})

test('the times for which a circuit is open are those of the code', () => {
  const [, failing = [], , busy = []] = firstTable(section(page, 'Circuit breakers'))
  const afterFailures = lengths((health, nowMs) => afterFailure(health, nowMs, undefined), 12)
  const afterBusyness = lengths((health, nowMs) => afterBusy(health, nowMs, undefined), 9)

  expect(failing[1]).toContain(`${FAILURES_TO_OPEN} failures in a row`)
  expect(failing[2]).toBe(
    `${afterFailures[0]} seconds, then ${afterFailures[1]}, ${afterFailures[2]}, … up to ${afterFailures.at(-1)}`,
  )
  expect(busy[2]).toContain(
    `${afterBusyness[0]} second, then ${afterBusyness[1]}, ${afterBusyness[2]}, … up to ${afterBusyness.at(-1)}`,
  )
})

test('the numbers of the retry budget are those of the code', () => {
  const fresh = new RetryBudget()
  const saved = new RetryBudget()
  for (let request = 0; request < 5000; request++) saved.deposit()
  const most = saved.left
  let retries = 0
  for (let request = 0; request < 1000; request++) {
    saved.deposit()
    while (saved.withdraw()) retries += 1
  }
  const text = section(page, 'After a failure').replaceAll('\n', ' ')

  expect(text).toContain(`the budget starts with ${fresh.left} and holds at most ${most}`)
  const promised = Number(/any 1,000 calls in a row at most (\d+) retries/.exec(text)?.[1])
  expect(retries).toBeLessThanOrEqual(promised)
  expect(retries).toBeGreaterThan(promised - 5)
})

test('the page lists the members of a reported key', () => {
  const [, ...rows] = firstTable(section(page, 'State'))

  expect(rows.map(([member]) => member)).toEqual(membersOf('src/gateway/operator-actions.ts', 'KeyReport'))
})
