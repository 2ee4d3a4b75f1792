import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  endpointRoomImports,
  foreignPackageImports,
  importCycles,
  unresolvedImports,
  unsealedVendorImports,
  wrongWayImports,
} from './import-rules.ts'
import {
  badFiles,
  functionsAssignedToProperties,
  namesInSharedCode,
  unfinishedWork,
  unnamedExports,
  vendorsWithoutFactory,
} from './source-rules.ts'
import { readSourceTree, type SourceTree } from './source-tree.ts'

const root = join(import.meta.dirname, '../..')
const src = readSourceTree(join(root, 'src'))
const tests = readSourceTree(join(root, 'test'))
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  dependencies: Record<string, string>
  peerDependencies: Record<string, string>
}
// Peers are imported by the one entry that is useless without them, or asked for at run time.
const dependencies = [...Object.keys(manifest.dependencies), ...Object.keys(manifest.peerDependencies)]

describe('the source', () => {
  test('imports point down the layer order', () => {
    expect(wrongWayImports(src)).toEqual([])
  })

  test('nobody reaches into a vendor, and vendors do not know each other', () => {
    expect(unsealedVendorImports(src)).toEqual([])
  })

  test('packages are imported by their owner only, and all of them are runtime dependencies', () => {
    expect(foreignPackageImports(src, dependencies)).toEqual([])
  })

  test('imports zod as a namespace, of which the bundler takes what is used', () => {
    const named = [...src].filter(([, text]) => /import (?:type )?(?!\* as|type \* as)[^'"]*from 'zod'/.test(text))

    expect(named.map(([path]) => path)).toEqual([])
  })

  test('relative imports name an existing file with its extension', () => {
    expect(unresolvedImports(src)).toEqual([])
  })

  test('what serves every endpoint knows none of them', () => {
    expect(endpointRoomImports(src)).toEqual([])
  })

  test('no files import each other in a ring, types included', () => {
    expect(importCycles(src)).toEqual([])
  })

  test('every vendor folder has its factory', () => {
    expect(vendorsWithoutFactory(src)).toEqual([])
  })

  test('shared code names no vendor and no framework', () => {
    expect(namesInSharedCode(src)).toEqual([])
  })

  test('no function is assigned to a property where it is written', () => {
    expect(functionsAssignedToProperties(src)).toEqual([])
  })

  test('files are short enough to read and named after what they export', () => {
    expect(badFiles(src)).toEqual([])
  })

  test('exports have names', () => {
    expect(unnamedExports(src)).toEqual([])
  })

  test('nothing is marked as unfinished, tests included', () => {
    expect([...unfinishedWork(src), ...unfinishedWork(tests)]).toEqual([])
  })
})

/** A tree of files in which everything is as it should be, with some of them replaced or added. */
function treeWith(changes: Record<string, string>): SourceTree {
  const sound = {
    'index.ts': "export { north } from './vendors/north/north.ts'",
    'core/money.ts': 'export const cents = 100',
    'pipeline/charge.ts': "import { cents } from '../core/money.ts'\nexport const settle = cents",
    'transport/undici.ts': "import { Pool } from 'undici'\nexport const pool = Pool",
    'vendors/vendor.ts': 'export interface Vendor { id: string }',
    'vendors/shared/dialect.ts': "export const path = '/v1'",
    'vendors/north/north.ts': "import { path } from '../shared/dialect.ts'\nexport function north() { return path }",
    'vendors/far-south/far-south.ts': "import type { Vendor } from '../vendor.ts'\nexport function farSouth() {}",
  }
  return new Map(Object.entries({ ...sound, ...changes }))
}

describe('each rule', () => {
  const rules: Record<string, (tree: SourceTree) => string[]> = {
    wrongWayImports,
    unsealedVendorImports,
    endpointRoomImports,
    foreignPackageImports: (tree) => foreignPackageImports(tree, ['undici', 'zod', 'eventsource-parser']),
    unresolvedImports,
    importCycles,
    vendorsWithoutFactory,
    namesInSharedCode,
    functionsAssignedToProperties,
    badFiles,
    unnamedExports,
    unfinishedWork,
  }

  test.each(Object.keys(rules))('%s accepts a sound tree', (rule) => {
    expect(rules[rule]?.(treeWith({}))).toEqual([])
  })

  test.each<[string, string, string, string]>([
    [
      'wrongWayImports',
      'core/money.ts',
      "import type { a } from '../pipeline/charge.ts'",
      'core/money.ts -> pipeline/charge.ts',
    ],
    ['wrongWayImports', 'core/money.ts', "export { a } from '../index.ts'", 'core/money.ts -> index.ts'],
    [
      'wrongWayImports',
      'wire/sse.ts',
      "const load = () => import('../catalog/model.ts')",
      'wire/sse.ts -> catalog/model.ts',
    ],
    ['wrongWayImports', 'extras/thing.ts', 'export const thing = 1', 'extras/ is not in the layer order'],
    [
      'unsealedVendorImports',
      'pipeline/a.ts',
      "import { north } from '../vendors/north/north.ts'",
      'does not choose a vendor',
    ],
    ['unsealedVendorImports', 'cli/a.ts', "import { x } from '../vendors/north/usage.ts'", 'vendors/north/usage.ts'],
    [
      'unsealedVendorImports',
      'pipeline/a.ts',
      "import { path } from '../vendors/shared/dialect.ts'",
      'shared/dialect.ts',
    ],
    [
      'unsealedVendorImports',
      'vendors/north/a.ts',
      "import { x } from '../far-south/far-south.ts'",
      'vendors are sealed',
    ],
    ['unsealedVendorImports', 'vendors/shared/a.ts', "import { x } from '../north/north.ts'", 'vendors are sealed'],
    ['foreignPackageImports', 'pipeline/a.ts', "import { Pool } from 'undici'", 'only src/transport/undici.ts'],
    [
      'foreignPackageImports',
      'transport/transport.ts',
      "import type { Pool } from 'undici'",
      'only src/transport/undici.ts',
    ],
    [
      'foreignPackageImports',
      'pipeline/a.ts',
      "import { createParser } from 'eventsource-parser/stream'",
      'only src/wire/',
    ],
    ['foreignPackageImports', 'adapters/a.ts', "import { Hono } from '@scope/hono/tiny'", 'not a runtime dependency'],
    ['unresolvedImports', 'pipeline/a.ts', "import { cents } from '../core/money'", 'no such file: ../core/money'],
    [
      'importCycles',
      'core/money.ts',
      "import { settle } from '../pipeline/charge.ts'",
      'core/money.ts -> pipeline/charge.ts -> core/money.ts',
    ],
    [
      'endpointRoomImports',
      'pipeline/a.ts',
      "import type { A } from '../endpoints/north/a.ts'",
      'what serves every endpoint knows none of them',
    ],
    ['importCycles', 'core/money.ts', "import { type A } from './money.ts'", 'core/money.ts -> core/money.ts'],
    ['vendorsWithoutFactory', 'vendors/east/usage.ts', 'export const usage = 1', 'must export function east'],
    [
      'vendorsWithoutFactory',
      'vendors/far-south/far-south.ts',
      'export function south() {}',
      'must export function farSouth',
    ],
    ['namesInSharedCode', 'pipeline/a.ts', "if (vendor.id === 'north') skip()", 'pipeline/a.ts:1'],
    ['namesInSharedCode', 'pipeline/a.ts', 'const where = `set NORTH or $' + '{other}`', 'pipeline/a.ts:1'],
    ['namesInSharedCode', 'vendors/shared/a.ts', "const models = ['far-south']", 'vendors/shared/a.ts:1'],
    ['namesInSharedCode', 'adapters/route-path.ts', "const mount = 'express'", 'adapters/route-path.ts:1'],
    ['functionsAssignedToProperties', 'pipeline/a.ts', 'call.ended = () => call', 'pipeline/a.ts:1'],
    ['functionsAssignedToProperties', 'pipeline/a.ts', 'this.#ended ??= (function () {})', 'pipeline/a.ts:1'],
    ['functionsAssignedToProperties', 'otel/a.ts', 'calls[0] = async (call) => call', 'otel/a.ts:1'],
    ['badFiles', 'core/utils.ts', 'export const a = 1', 'name a file after what it exports'],
    ['badFiles', 'core/moneyBag.ts', 'export const a = 1', 'kebab-case'],
    ['badFiles', 'core/long.ts', 'export const a = 1\n'.repeat(801), '801 lines'],
    ['unnamedExports', 'core/a.ts', "export * from './money.ts'", 'core/a.ts:1: export *'],
    ['unnamedExports', 'core/a.ts', 'const a = 1\nexport default a', 'core/a.ts:2: export default'],
    ['unnamedExports', 'core/a.ts', 'export default function a() {}', 'core/a.ts:1: export default'],
    ['unfinishedWork', 'core/a.ts', `const a = 1\n// ${'TO'}${'DO'}: the rest`, 'core/a.ts:2'],
  ])('%s finds a fault planted in %s', (rule, path, text, expected) => {
    const offences = rules[rule]?.(treeWith({ [path]: text })) ?? []

    expect(offences.join('\n')).toContain(expected)
    expect(offences).toHaveLength(1)
  })

  test('a ring of types is found, too', () => {
    const ring = { 'core/money.ts': "import type { settle } from '../pipeline/charge.ts'" }

    expect(importCycles(treeWith(ring))).toEqual(['core/money.ts -> pipeline/charge.ts -> core/money.ts'])
  })
})
