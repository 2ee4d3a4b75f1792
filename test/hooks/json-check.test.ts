import { Validator } from '@cfworker/json-schema'
import { jsonrepair } from 'jsonrepair'
import { describe, expect, test } from 'vitest'
import { JsonCheck, type JsonTools, optionalPackage } from '../../src/hooks/json-answer.ts'
import { hostileSchemas } from '../support/hostile-schemas.ts'

const TOOLS: JsonTools = {
  matches: (schema, value) => new Validator(schema, '2020-12').validate(value).valid,
  repaired: jsonrepair,
}

/** The limit of 50 ms, and several times as much for a busy machine. Without a limit these take many seconds. */
const MAX_PROCESSOR_MS = 1_000

function timed<Result>(run: () => Result): Result {
  const started = process.cpuUsage()
  const result = run()
  const { user, system } = process.cpuUsage(started)
  expect((user + system) / 1_000).toBeLessThan(MAX_PROCESSOR_MS)
  return result
}

function named<Value>(count: number, value: (index: number) => Value): Record<string, Value> {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`member_${index}`, value(index)]))
}

const BROKEN: readonly (readonly [name: string, text: string])[] = [
  ['unclosed strings', `{${'"a":"b,'.repeat(4_600)}`],
  ['unclosed strings in lists', `[${'["a, '.repeat(20_000)}`],
  ['missing commas', `[${'1 '.repeat(120_000)}`],
  ['quotes within strings', `["${'a "b" '.repeat(30_000)}`],
  ['brackets within strings', `["${'[ "] '.repeat(40_000)}`],
  ['concatenated strings', `["a"${' + "b"'.repeat(40_000)}`],
  ['fences', '```json\n'.repeat(30_000)],
  ['unclosed comments', `[${'/* 1, '.repeat(40_000)}`],
  ['unclosed objects', '{"a":'.repeat(50_000)],
  ['lines of values', '{"a":1}\n'.repeat(30_000)],
]

test('names the missing package of the hook and the installation command', async () => {
  const command = 'npm install @cfworker/json-schema jsonrepair'

  await expect(optionalPackage('signalbox-absent-package')).rejects.toThrow(
    `jsonAnswer: needs the package signalbox-absent-package; install it next to signalbox (${command})`,
  )
})

describe('repairing', () => {
  test.each(BROKEN)('takes bounded time for %s', (_name, text) => {
    const { state } = timed(() => new JsonCheck(TOOLS).of(text, { type: 'string' }, true))

    expect(['valid', 'invalid', 'unchecked']).toContain(state)
  })

  // Its repair takes many times the limit on any machine.
  const endless = BROKEN[0]![1].repeat(8)

  test('reports text as invalid JSON if its repair takes too long', () => {
    expect(new JsonCheck(TOOLS).of(endless, {}, true)).toEqual({ state: 'invalid', text: undefined })
  })

  test('repairs a long text with a few faults', () => {
    const entries = Array.from({ length: 100 }, (_, index) => `{"index": ${index},}`).join(', ')

    expect(new JsonCheck(TOOLS).of(`[${entries}`, { type: 'array' }, true)).toMatchObject({ state: 'valid' })
  })

  test('shares one time limit among all texts of an answer', () => {
    const check = new JsonCheck(TOOLS)
    const states = timed(() => Array.from({ length: 40 }, () => check.of(endless, {}, true)).map(({ state }) => state))

    expect(new Set(states)).toEqual(new Set(['invalid']))
    expect(check.of(JSON.stringify({ a: 'a'.repeat(2_000) }), { type: 'object' }, true).state).toBe('unchecked')
  })
})

describe('checking', () => {
  const members = named(2_000, (index) => index)
  const list = Array.from({ length: 8_000 }, (_, index) => index)
  const names = Object.keys(named(5_000, () => 0))
  const expensive: readonly (readonly [name: string, schema: Record<string, unknown>, value: unknown])[] = [
    [
      'wide schemas for many items',
      { items: { required: names, properties: named(5_000, () => ({})) } },
      list.map(() => ({})),
    ],
    ['propertyNames', { propertyNames: { enum: names } }, named(20_000, () => 0)],
    ['propertyNames with alternatives', { propertyNames: { anyOf: names.map((name) => ({ const: name })) } }, members],
    ['contains', { contains: { enum: names } }, list],
    ['contains of contains', { contains: { contains: { enum: names } } }, list.map(() => list.slice(0, 100))],
    ['values that are lists', { items: { enum: names.map((name) => [name]) } }, list.map((entry) => [entry])],
    [
      'required members',
      { items: { dependentRequired: named(2_000, () => names) } },
      list.slice(0, 10).map(() => members),
    ],
  ]

  test.each(expensive)('ends without a result if it takes too long: %s', (_name, schema, value) => {
    const text = JSON.stringify(value)
    const { state } = timed(() => new JsonCheck(TOOLS).of(text, schema, false))

    expect(['invalid', 'unchecked']).toContain(state)
  })

  test.each(hostileSchemas(1_000))('takes bounded time for a schema with $name', ({ schema }) => {
    const { state } = timed(() => new JsonCheck(TOOLS).of(JSON.stringify(members), schema, false))

    expect(['valid', 'invalid', 'unchecked']).toContain(state)
  })
})
