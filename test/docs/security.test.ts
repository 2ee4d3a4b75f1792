import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { OPERATOR_SCOPES } from '../../src/admin/admin-route.ts'
import { ROOT } from './support/markdown.ts'

const PAGE = readFileSync(join(ROOT, 'SECURITY.md'), 'utf8')

test('SECURITY.md names a test that exists for every promise', () => {
  const table = PAGE.slice(PAGE.indexOf('| promise | tests |')).split('\n').slice(2)
  const rows = table.filter((line) => line.startsWith('|'))
  const paths = rows.map((row) => [...(row.split('|')[2] ?? '').matchAll(/`([^`]+)`/g)].map(([, path = '']) => path))

  expect(rows.length).toBeGreaterThan(10)
  expect(rows.filter((_row, index) => paths[index]?.length === 0)).toEqual([])
  expect(paths.flat().filter((path) => !/^(?:test|bench)\//.test(path) || !existsSync(join(ROOT, path)))).toEqual([])
})

test('SECURITY.md says what each scope of an operator is trusted with, and is in the package', () => {
  const { files } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { files: string[] }

  for (const scope of OPERATOR_SCOPES) expect(PAGE).toContain(`\`${scope}\``)
  expect(files).toContain('SECURITY.md')
})
