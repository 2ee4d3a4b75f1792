import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ALONE } from '../../vitest.config.ts'
import { readSourceTree } from './source-tree.ts'

/** Replacing or reloading modules, or the global `fetch`, which other files of the same worker would feel. */
const CHANGES_MODULES = /\bvi\.(?:mock|doMock|unmock|doUnmock|resetModules)\(|from\s'msw|from\s'\.\/stand-in\.ts'/

test('test files that replace modules or the global fetch do not share theirs with others', () => {
  const tests = readSourceTree(join(import.meta.dirname, '..'))
  const replacing = [...tests]
    .filter(([path, text]) => path.endsWith('.test.ts') && CHANGES_MODULES.test(text))
    .map(([path]) => `test/${path}`)

  expect(replacing.length).toBeGreaterThan(0)
  expect(replacing.filter((path) => !ALONE.includes(path))).toEqual([])
})

test('every file that is to run alone exists', () => {
  const tests = readSourceTree(join(import.meta.dirname, '..'))

  expect(ALONE.filter((path) => !tests.has(path.replace('test/', '')))).toEqual([])
})
