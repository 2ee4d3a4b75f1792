import { expect, test } from 'vitest'
import { METERS } from '../../src/catalog/prices/rate.ts'
import { firstTable, readPage, section } from './support/markdown.ts'
import { titlesIn, titlesOf } from './support/named-tests.ts'

const billing = readPage('docs/billing.md')
const holds = readPage('docs/holds.md')

/** Tests as a cell names them: a title or its beginning, and the file. */
const NAMED_TEST = /`([^`]+)` \(`((?:test|src)\/[^`]+\.ts)`\)/g

test('names tests for every guarantee, and each of them is in the named file', () => {
  const [, ...rows] = firstTable(section(holds, 'Guarantees'))
  const missing: string[] = []
  for (const [guarantee = '', , tests = ''] of rows) {
    const named = [...tests.matchAll(NAMED_TEST)]
    if (named.length === 0) missing.push(`${guarantee}: no test`)
    for (const [, title = '', path = ''] of named) {
      if (!titlesIn(path).some((known) => known.startsWith(title))) missing.push(`${path}: ${title}`)
    }
  }

  expect(rows.length).toBeGreaterThan(10)
  expect(missing).toEqual([])
})

test('counts a title only if a test or suite has it, not if it merely occurs in the file', () => {
  const titles = titlesOf(
    [
      "test('one', () => {})",
      "describe.skipIf(true).each(rows)('two %s', () => {})",
      'const third = `three $' + '{count}`',
      'it(third, { timeout: 1 }, () => {})',
      "check('four', async () => {})",
      "// test('five')",
      "expect('six').toBe('seven')",
    ].join('\n'),
  )

  expect(titles).toEqual(['one', 'two %s', 'three $' + '{count}', 'four'])
})

test('the page lists every meter', () => {
  const [, ...rows] = firstTable(section(billing, 'Meters'))

  expect(rows.map((row) => row[0])).toEqual([...METERS])
})
