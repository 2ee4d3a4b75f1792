import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { describe, expect, test } from 'vitest'
import buildSettings from '../../tsup.config.ts'

const CLIENT = './src/client/index.ts'
const BUILDERS = './src/client/builders/index.ts'

interface Bundle {
  readonly sizeBytes: number
  readonly inputs: readonly string[]
  readonly externals: readonly string[]
}

/** Bundles a line of code as a browser would load it, minified and compressed. */
async function bundle(code: string): Promise<Bundle> {
  const { outputFiles, metafile } = await build({
    stdin: { contents: code, resolveDir: '.', loader: 'ts' },
    bundle: true,
    minify: true,
    write: false,
    metafile: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    // A builtin would be left as an import, to be found below.
    external: ['node:*'],
  })
  return {
    sizeBytes: gzipSync(outputFiles[0]!.contents, { level: 9 }).byteLength,
    inputs: Object.keys(metafile.inputs),
    externals: Object.values(metafile.outputs).flatMap((output) => output.imports.map(({ path }) => path)),
  }
}

describe('the client in a bundle', () => {
  test('is at most 12 kB, compressed, with everything that its entry has', async () => {
    const { sizeBytes } = await bundle(`export * from '${CLIENT}'`)

    expect(sizeBytes).toBeLessThan(12_000)
    // An empty bundle would be small too.
    expect(sizeBytes).toBeGreaterThan(4_000)
  })

  test('brings no builder and no catalog', async () => {
    const { inputs } = await bundle(`export * from '${CLIENT}'`)

    expect(inputs.some((path) => path.endsWith('src/client/create-client.ts'))).toBe(true)
    expect(inputs.filter((path) => /src\/(client\/builders|catalog)\//.test(path))).toEqual([])
  })

  test('shares the errors with the builders, so that both together are at most 22.5 kB', async () => {
    const { sizeBytes } = await bundle(`export * from '${CLIENT}'; export * from '${BUILDERS}'`)

    expect(sizeBytes).toBeLessThan(22_500)
  })
})

describe('the builders in a bundle', () => {
  test('are at most 14 kB, compressed, all of them', async () => {
    const { sizeBytes } = await bundle(`export * from '${BUILDERS}'`)

    expect(sizeBytes).toBeLessThan(14_000)
    expect(sizeBytes).toBeGreaterThan(4_000)
  })

  test.each([
    ['chat', 3],
    ['response', 3],
    ['moderation', 3],
    ['rerank', 3],
    ['embedding', 4],
    ['speech', 4],
    ['imageEdit', 6],
    ['image', 7],
    ['video', 9],
  ])('bring %s alone in at most %i kB', async (name, limit) => {
    const { sizeBytes } = await bundle(`export { ${name} } from '${BUILDERS}'`)

    expect(sizeBytes).toBeLessThan(limit * 1000)
  })
})

test.each([
  ['client', CLIENT],
  ['builders', BUILDERS],
])('the bundle of the %s holds no builtin of Node, no zod and no undici', async (_name, entry) => {
  const { inputs, externals } = await bundle(`import * as all from '${entry}'; globalThis.all = all`)

  expect(externals).toEqual([])
  expect(inputs.filter((path) => /node_modules\/(?!eventsource-parser\/)/.test(path))).toEqual([])
  expect(inputs.some((path) => path.endsWith('src/core/errors.ts'))).toBe(true)
})

/** Returns the external imports in the chunks of an entry, with the package cut into chunks as it is built. */
async function importsOfEntry(name: string): Promise<string[]> {
  if (typeof buildSettings !== 'function') throw new TypeError('the build settings are no function')
  const settings = await buildSettings({ format: 'esm' })
  const { entry } = Array.isArray(settings) ? settings[0]! : settings
  const { metafile } = await build({
    entryPoints: entry as Record<string, string>,
    bundle: true,
    write: false,
    metafile: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    packages: 'external',
    outdir: 'dist',
  })
  const outside = new Set<string>()
  const seen = new Set<string>()
  const walk = (file: string): void => {
    if (seen.has(file)) return
    seen.add(file)
    for (const { path, external } of metafile.outputs[file]?.imports ?? []) {
      if (external === true) outside.add(path)
      else walk(path)
    }
  }
  walk(join('dist', `${name}.js`))
  return [...outside].sort()
}

describe('the chunks of the package', () => {
  test('let the client reach one package, and no builtin of Node', async () => {
    expect(await importsOfEntry('client')).toEqual(['eventsource-parser'])
  })

  test('let the builders reach none', async () => {
    expect(await importsOfEntry('builders')).toEqual([])
  })

  test('let the gateway reach builtins, so that the walk finds what there is', async () => {
    expect(await importsOfEntry('index')).toContain('undici/lib/dispatcher/client.js')
  })
})
