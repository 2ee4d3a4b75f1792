import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { runSignalbox } from '../../src/cli/signalbox.ts'
import type { GatewayEvent } from '../../src/core/events.ts'
import { firstTable, ROOT, readPage, section } from './support/markdown.ts'

const page = readPage('docs/operating.md')

/** Every event: does it ask an operator to do or to look at something? A new event does not compile until it is decided here. */
const ASKS: Readonly<Record<GatewayEvent['type'], boolean>> = {
  'request-started': false,
  'request-refused': false,
  'request-ended': false,
  'cache-hit': false,
  'cache-write-failed': true,
  'attempt-failed': true,
  'model-skipped': false,
  'model-retiring': true,
  'vendor-account-problem': true,
  'vendor-silent': true,
  'circuit-opened': true,
  'circuit-closed': false,
  'credential-refresh-failed': true,
  'usage-implausible': true,
  'usage-missing': true,
  'call-abandoned': false,
  'unbilled-usage': true,
  'settlement-given-up': true,
  'charge-shortfall': true,
  'cap-reached': true,
  'balance-low': true,
  'account-frozen': true,
  'task-submitted': false,
  'task-ended': false,
  'webhook-attempted': true,
  'store-unavailable': true,
  'store-recovered': false,
  'limits-degraded': true,
  'limits-recovered': false,
  'configuration-warning': true,
  'usage-dropped': true,
  'operator-action': false,
  'hook-answered': false,
  'hook-denied': false,
  'hook-bypassed': true,
  'internal-error': true,
}

interface Rule {
  readonly alert?: string
  readonly labels?: { readonly severity: string }
}

test('every alert of the rules has a row with its severity, and no row is without a rule', () => {
  const { groups } = parse(readFileSync(join(ROOT, 'docs/monitoring/signalbox.rules.yml'), 'utf8')) as {
    groups: { rules: Rule[] }[]
  }
  const alerts = groups.flatMap(({ rules }) => rules).filter(({ alert }) => alert !== undefined)
  const [, ...rows] = firstTable(section(page, 'Alerts'))

  expect(alerts.length).toBeGreaterThan(8)
  expect(rows.map(([alert, severity]) => [alert, severity]).sort()).toEqual(
    alerts.map(({ alert, labels }) => [alert, labels?.severity]).sort(),
  )
  for (const [alert, , means, todo] of rows) expect(`${means}${todo}`.length, alert).toBeGreaterThan(60)
})

test('every event that asks for something has a row that says for what, and no other has', () => {
  const tables = ['Money', 'Vendors', 'The gateway'].map((heading) => firstTable(section(page, heading)).slice(1))
  const named = tables.flat().flatMap(([events = '']) => events.match(/[a-z]+(?:-[a-z]+)+/g) ?? [])
  const asking = Object.entries(ASKS).flatMap(([type, asks]) => (asks ? [type] : []))

  expect(named.sort()).toEqual(asking.sort())
})

describe('the commands of the page', () => {
  const commands = [...new Set(page.text.match(/signalbox (?:[a-z][a-z-]*)(?: [a-z][a-z-]*)?/g))]
    .map((command) => command.split(' ').slice(1))
    .filter(([command]) => ['accounts', 'holds', 'keys', 'usage', 'webhooks', 'check', 'serve'].includes(command!))

  test.each(commands)('signalbox %s %s is there', async (...words) => {
    const lines: string[] = []
    const print = (line: string): void => void lines.push(line)
    await runSignalbox([...words.filter((word) => word !== undefined), '--help'], { environment: {}, print }, '0.0.0')

    expect(lines[0]).toContain(`Usage: signalbox ${words[0]}`)
  })

  test('are more than a few', () => {
    expect(commands.length).toBeGreaterThan(8)
  })
})
