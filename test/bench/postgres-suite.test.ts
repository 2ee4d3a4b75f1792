import { expect, test } from 'vitest'
import { suite } from '../../bench/suites/postgres.mjs'

const scenarios = suite.scenarios as readonly { readonly name: string; readonly targets?: object }[]
const scenarioOf = (name: string) => scenarios.find((scenario) => scenario.name === name)!

test('judges the rate and the CPU of the gateway with its money in PostgreSQL', () => {
  const medians = { answersPerSecond: 4_200, serverMicroseconds: 130, cpuMicroseconds: 110 }
  const verdictOn = (proxy: string) => suite.verdictOf(scenarioOf('chat-json-hot-account'), { proxy, medians })

  expect(verdictOn('postgres-1')).toBe('≥ 4,000 requests/s: pass; database ≤ 120 µs: FAIL; CPU ≤ 110 µs: pass')
  expect(verdictOn('postgres-4')).toBe('≥ 3,000 requests/s: pass')
  expect(verdictOn('sqlite-1')).toBe('')
})

test('judges the time that PostgreSQL adds to memory at 10 requests per second', () => {
  const result = { proxy: 'postgres-1', medians: {}, comparisons: { 'memory-1': { median: 3.2 } } }

  expect(suite.verdictOf(scenarioOf('chat-json-10-per-second'), result)).toBe('≤ 3 ms more than memory: FAIL')
})

test('judges p99 at half of the maximum rate', () => {
  const result = { proxy: 'postgres-4', medians: { p99Ms: 14.9 } }

  expect(suite.verdictOf(scenarioOf('chat-json-half-rate-1000-accounts'), result)).toBe('p99 ≤ 15 ms: pass')
})
