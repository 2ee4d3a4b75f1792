import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ALONE, REPLACED_FETCH } from '../../vitest.config.ts'
import { readSourceTree } from './source-tree.ts'

/** Replacing or reloading modules, which other files of the same worker would feel. */
const CHANGES_MODULES = /\bvi\.(?:mock|doMock|unmock|doUnmock|resetModules)\(/

/** Replacing the global `fetch`. */
const REPLACES_FETCH = /from\s'msw|from\s'\.\/stand-in\.ts'/

const tests = readSourceTree(join(import.meta.dirname, '..'))

test.each([
  ['replace modules share theirs with no other', CHANGES_MODULES, ALONE],
  ['replace the global fetch share their modules with each other only', REPLACES_FETCH, REPLACED_FETCH],
])('test files that %s', (_name, pattern, listed) => {
  const found = [...tests]
    .filter(([path, text]) => path.endsWith('.test.ts') && pattern.test(text))
    .map(([path]) => `test/${path}`)

  expect(found.length).toBeGreaterThan(0)
  expect(found.filter((path) => !listed.includes(path))).toEqual([])
})
