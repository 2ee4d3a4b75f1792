import { expect, test } from 'vitest'
import { rounded } from '../../bench/rounded.mjs'
import { median, quantile, shuffled } from '../../bench/statistics.mjs'
import { targetOf, verdict, verdictAtLeast } from '../../bench/verdict.mjs'

test('the median is the middle value, or the mean of the two in the middle', () => {
  expect(median([3, 1, 200])).toBe(3)
  expect(median([4, 1, 2, 100])).toBe(3)
})

test('a quantile passes over values that are missing', () => {
  const values = [5, undefined, 1, 4, 2, 3]

  expect(quantile(values, 0.5)).toBe(3)
  expect(quantile(values, 0.99)).toBe(5)
  expect(quantile([undefined], 0.5)).toBeNaN()
})

test('shuffling keeps every thing, and leaves the list that was given as it is', () => {
  const things = [1, 2, 3, 4, 5]

  expect([...shuffled(things)].sort()).toEqual([1, 2, 3, 4, 5])
  expect(things).toEqual([1, 2, 3, 4, 5])
})

test.each([
  [1454.4, '1,454'],
  [981.2, '981'],
  [98.14, '98.1'],
  [2.526, '2.53'],
  [-12.84, '-12.8'],
])('%d is shown as %s', (value, text) => {
  expect(rounded(value)).toBe(text)
})

test('a target is passed up to its value, and a goal is named where it is stricter', () => {
  expect(verdict(1.1, { target: 1.1, sign: '×' })).toBe('≤ 1.1 ×: pass')
  expect(verdict(1.11, { target: 1.1, sign: '×' })).toBe('≤ 1.1 ×: FAIL')
  expect(verdict(1.4, { target: 1.5, goal: 1.3, sign: '×' })).toBe('≤ 1.5 ×: pass; goal 1.3: not yet')
})

test('passes a rate that reaches its target', () => {
  expect(verdictAtLeast(4_000, { target: 4_000, sign: 'requests/s' })).toBe('≥ 4,000 requests/s: pass')
  expect(verdictAtLeast(3_999.9, { target: 4_000, sign: 'requests/s' })).toBe('≥ 4,000 requests/s: FAIL')
})

test('compares a proxy with the target of its version of Node, or with that of the scenario if there is none', () => {
  const scenario = { target: 1.7, goal: 1.5, targets: { ours: { 24: { target: 1.35, goal: 1.2 } } } }

  expect(targetOf(scenario, { proxy: 'ours', node: '24.21.0' })).toEqual({ target: 1.35, goal: 1.2 })
  expect(targetOf(scenario, { proxy: 'ours', node: '20.20.2' })).toEqual({ target: 1.7, goal: 1.5 })
  expect(targetOf(scenario, { proxy: 'other', node: '24.21.0' })).toEqual({ target: 1.7, goal: 1.5 })
  const major = Number.parseInt(process.versions.node, 10)
  expect(targetOf({ target: 2, goal: 2, targets: { ours: { [major]: { target: 1 } } } }, { proxy: 'ours' })).toEqual({
    target: 1,
  })
})
