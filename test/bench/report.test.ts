import { expect, test } from 'vitest'
import { markdownOf, tableOf } from '../../bench/report.mjs'
import { verdict } from '../../bench/verdict.mjs'

const suite = { referencesOf: () => [{ name: 'floor', column: 'against the floor' }] }
const chat = { title: 'chat', unit: 'CPU µs/request', headline: 'cpu', comparison: 'ratio' }
const firstByte = { title: 'first byte', unit: 'ms, p50', headline: 'ms', comparison: 'difference' }
const compared = (median: number, least: number, most: number) => ({ comparisons: { floor: { median, least, most } } })
const chatResults = [
  { proxy: 'floor', title: 'bare', medians: { cpu: 40 }, ...compared(1, 1, 1) },
  { proxy: 'ours', title: 'ours', medians: { cpu: 60, p50Ms: 1.234 }, ...compared(1.5, 1.4, 1.6) },
  { proxy: 'peer', title: 'peer 1.2.3', reason: 'failed: status 500' },
]

test('a proxy without a number has a dash and a footnote with the reason', () => {
  const { rows, footnotes } = tableOf(suite, [
    { scenario: chat, results: chatResults },
    { scenario: chat, results: chatResults },
  ])

  expect(rows[1]).toMatchObject({ proxy: 'ours', median: '60.0 CPU µs/request', 'p50 ms': '1.23' })
  expect(rows[2]).toMatchObject({ proxy: 'peer 1.2.3', median: '– [1]', 'against the floor': '', 'p50 ms': '' })
  expect(footnotes).toEqual(['peer 1.2.3: failed: status 500'])
})

test('the title of a scenario stands in its first row, and columns without a value are left out', () => {
  const { rows } = tableOf(suite, [{ scenario: chat, results: chatResults }])

  expect(rows.map((row: { scenario?: string }) => row.scenario)).toEqual(['chat', '', ''])
  expect(Object.keys(rows[0] ?? {})).toEqual(['scenario', 'proxy', 'median', 'against the floor', 'p50 ms'])
})

test('a difference says whether it is more or less', () => {
  const results = [
    { proxy: 'floor', title: 'bare', medians: { ms: 2 }, ...compared(0, 0, 0) },
    { proxy: 'fast', title: 'fast', medians: { ms: 1.5 }, ...compared(-0.5, -0.6, 0.1) },
  ]

  const { rows } = tableOf(suite, [{ scenario: firstByte, results }])

  expect(rows[1]).toMatchObject({ 'against the floor': '0.50 ms less (−0.60 to +0.10)' })
})

test('a table is aligned Markdown with its footnotes below', () => {
  const text = markdownOf({
    rows: [
      { a: 'x', b: '' },
      { a: 'long', b: 'y' },
    ],
    footnotes: ['why', 'how'],
  })

  expect(text).toBe('| a    | b |\n|------|---|\n| x    |   |\n| long | y |\n\n[1] why\n\n[2] how')
})

test('a target is passed up to its value, and a goal is named where it is stricter', () => {
  expect(verdict(1.1, { target: 1.1, sign: '×' })).toBe('≤ 1.1 ×: pass')
  expect(verdict(1.11, { target: 1.1, sign: '×' })).toBe('≤ 1.1 ×: FAIL')
  expect(verdict(1.4, { target: 1.5, goal: 1.3, sign: '×' })).toBe('≤ 1.5 ×: pass; goal 1.3: not yet')
})
