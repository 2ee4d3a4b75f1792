import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { firstTable, ROOT, readPage, section } from './support/markdown.ts'

const page = readPage('docs/testing.md')

test('the page lists every kind of fault', () => {
  const source = readFileSync(join(ROOT, 'src/testing/sandbox/fault.ts'), 'utf8')
  const kinds = [...source.matchAll(/readonly kind: '([a-z-]+)'/g)].map(([, kind]) => kind)

  const [, ...rows] = firstTable(section(page, 'Faults'))

  expect(kinds.length).toBeGreaterThan(10)
  expect(rows.map((row) => row[0])).toEqual(kinds.filter((kind) => kind !== 'unreadable'))
})

test('the page names every export of signalbox/testing that is a function', () => {
  const index = readFileSync(join(ROOT, 'src/testing/index.ts'), 'utf8')
  const functions = [...index.matchAll(/export \{ ([^}]*) \}/g)]
    .flatMap(([, names = '']) => names.split(',').map((name) => name.trim()))
    .filter((name) => name !== '' && !name.startsWith('type '))

  expect(functions.length).toBeGreaterThan(4)
  expect(functions.filter((name) => !page.text.includes(name))).toEqual([])
})
