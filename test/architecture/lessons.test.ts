import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { readSourceTree } from './source-tree.ts'
import { idsWithoutTest, testTitles } from './test-titles.ts'

/**
 * Failures of other gateways that this one must not repeat, by area. Each has at least one test with its id in the
 * title, so `npx vitest run -t A7` shows what guards it. An id is added with the feature that can fail that way.
 */
const LESSONS: Readonly<Record<string, readonly string[]>> = {
  'money when the caller leaves or the stream dies': [
    ...['A1', 'A2', 'A6', 'A7', 'A10', 'A12', 'A12b', 'A14', 'A15', 'A16', 'A17'],
  ],
  'balances and limits under concurrency': ['B1', 'B7', 'B7d', 'B8', 'B11', 'B12', 'B13'],
  'asynchronous media': ['D1', 'D2', 'D3', 'D5', 'D8', 'D9', 'D13'],
  prices: ['C1', 'C2', 'C6', 'C7', 'C9', 'C11'],
  streams: ['E1', 'E2', 'E4', 'E5', 'E6', 'E9', 'E10', 'E11', 'E12', 'E13'],
  dialects: ['F1', 'F3', 'F5', 'F8', 'F9', 'F10', 'F11', 'F14'],
  "running inside somebody's process": ['G9', 'G10', 'G11'],
  security: [
    ...['S1', 'S3', 'S5', 'S8', 'S9', 'S11', 'S14', 'S15', 'S19', 'S20', 'S21', 'S22', 'S29', 'S30', 'S37', 'S38'],
    ...['S40', 'S44'],
  ],
}

const root = join(import.meta.dirname, '../..')

describe('every lesson', () => {
  let titles: readonly string[]

  beforeAll(() => {
    const contractSuites = readSourceTree(join(root, 'src/testing'))
    const others = [...readSourceTree(join(root, 'test'))].filter(([path]) => !path.startsWith('architecture/'))
    titles = testTitles(new Map([...contractSuites, ...others]))
  })

  test.each(Object.entries(LESSONS))('about %s has a test that names it', (_area, ids) => {
    expect(idsWithoutTest(ids, titles)).toEqual([])
  })
})

test('a lesson counts only when its id is a whole word of a title', () => {
  const text = [
    "describe('A1: abandoned streams', () => {})",
    "test.each(rows)('bills what answered (C9) for %s', () => {})",
    'it(`S11 keeps $' + '{name} out of logs`, () => {})',
    "runner.test('E5', () => {})",
    "// test('A2 in a comment')",
    "expect('A6').toBe('A7')",
    "test('A12b is not its neighbour', () => {})",
  ].join('\n')

  const titles = testTitles(new Map([['sample.test.ts', text]]))

  expect(idsWithoutTest(['A1', 'C9', 'S11', 'E5', 'A12b'], titles)).toEqual([])
  expect(idsWithoutTest(['A2', 'A6', 'A7', 'A12', 'S1'], titles)).toEqual(['A2', 'A6', 'A7', 'A12', 'S1'])
})
