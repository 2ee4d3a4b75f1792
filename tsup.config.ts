import { rm } from 'node:fs/promises'
import { defineConfig, type Options } from 'tsup'

/** One entry per path of `exports` in package.json; `test/package/exports.test.ts` keeps the two equal. */
const libraryEntries = {
  index: 'src/index.ts',
  node: 'src/adapters/node.ts',
  express: 'src/adapters/express.ts',
  fastify: 'src/adapters/fastify.ts',
  fetch: 'src/adapters/fetch.ts',
  client: 'src/client/index.ts',
  builders: 'src/client/builders/index.ts',
  mcp: 'src/mcp/index.ts',
  postgres: 'src/stores/postgres/postgres-store.ts',
  redis: 'src/stores/redis/redis-limits.ts',
  sqlite: 'src/stores/sqlite/sqlite-store.ts',
  testing: 'src/testing/index.ts',
}

const javascript = {
  target: 'node20',
  platform: 'node',
  splitting: true,
  // tsup would turn `node:x` into `x`, and some builtins exist under the prefixed name only.
  removeNodeProtocol: false,
  silent: true,
} as const satisfies Options

const esm: Options = { ...javascript, format: 'esm', entry: { ...libraryEntries, cli: 'src/cli/main.ts' } }

// Without this pass tsup writes split CommonJS by a transform that also lowers `?.` and `??` into helper calls.
const commonjs: Options = { ...javascript, format: 'cjs', entry: libraryEntries, treeshake: true }

const declarations: Options = {
  entry: libraryEntries,
  format: ['esm', 'cjs'],
  // tsup sets `baseUrl`, which TypeScript 6 reports as deprecated.
  dts: { only: true, compilerOptions: { ignoreDeprecations: '6.0' } },
  silent: true,
}

export default defineConfig(async (overrides) => {
  // `tsup --format esm` is what `npm start` runs: only what Node needs to execute, in a second instead of ten.
  if (overrides.format !== undefined) return [esm]
  // Not tsup's `clean`: the three builds run at the same time and would delete each other's files.
  await rm('dist', { recursive: true, force: true })
  return [esm, commonjs, declarations]
})
