// See docs/decisions/0002-build.md.

import { execFile } from 'node:child_process'
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { PluginBuild } from 'esbuild'
import type { Options } from 'tsup'
import { consolePageDefines } from './console-page.config.ts'
import manifest from './package.json' with { type: 'json' }
import tsconfig from './tsconfig.json' with { type: 'json' }

/** An entry of the package. */
export interface PackageEntry {
  /** Entry points for hosts: `signalbox/node`. */
  readonly specifier: string
  /** Name of its files in `dist`. */
  readonly name: string
  /** `src/adapters/node.ts` */
  readonly source: string
}

/**
 * The entries of `exports` in package.json. Their sources are in `paths` of tsconfig.json, by which examples and docs are
 * checked without a build.
 */
export const PACKAGE_ENTRIES: readonly PackageEntry[] = Object.keys(manifest.exports)
  .filter((path) => path !== './package.json')
  .map((path) => {
    const specifier = path.replace('.', manifest.name)
    const [source] = (tsconfig.compilerOptions.paths as Readonly<Record<string, string[]>>)[specifier] ?? []
    if (source === undefined) throw new Error(`tsconfig.json: add the source of "${specifier}" to paths`)
    return { specifier, name: path === '.' ? 'index' : path.slice('./'.length), source: source.slice('./'.length) }
  })

const libraryEntries = Object.fromEntries(PACKAGE_ENTRIES.map(({ name, source }) => [name, source]))

/**
 * One character beyond Latin-1 makes V8 keep a whole file in two bytes a character. The bundler escapes those of strings; others are in
 * comments and regular expressions.
 */
const escapeCharacters = {
  name: 'escape-characters',
  renderChunk(code: string) {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the range is ASCII.
    const escaped = code.replace(/[^\x00-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    return { code: escaped }
  },
}

/**
 * The minifier removes the comments by which bundlers leave an `import()` to Node. Only imports of a variable have them: their packages
 * are optional.
 */
const nativeImports = {
  name: 'native-imports',
  renderChunk: (code: string) => ({
    code: code.replace(/\bimport\(([A-Za-z_$][\w$]*)\)/g, 'import(/* webpackIgnore: true *//* @vite-ignore */$1)'),
  }),
}

/**
 * `require` in place of `import()`, because Jest has no `import()` in CommonJS without a flag of Node. The bundler adds its `import()`
 * after all hooks for chunks, so the written files are changed.
 */
const lateRequire = {
  name: 'late-require',
  async buildEnd({ writtenFiles }: { readonly writtenFiles: readonly { readonly name: string }[] }) {
    for (const { name } of writtenFiles) {
      if (!name.endsWith('.cjs')) continue
      const code = await readFile(name, 'utf8')
      if (code.includes('import(')) await writeFile(name, withLateRequire(code))
    }
  },
}

/**
 * Replaces each `import(…)` of CommonJS code. Like `import()`, it rejects if the module cannot be loaded. Imports of a variable stay,
 * because bundlers replace `require` of a variable by code that throws. Jest rejects them, and gets a `require` that bundlers do not see.
 */
export function withLateRequire(code: string): string {
  return code.replace(/\bimport\(((?:[^()'"]|'[^']*'|"[^"]*")*)\)/g, (_import, argument: string) =>
    /['"]/.test(argument)
      ? `Promise.resolve().then(()=>require(${argument}))`
      : `import(/* webpackIgnore: true *//* @vite-ignore */${argument}).catch(()=>require("node:module").createRequire(__filename)(${argument}))`,
  )
}

/** A gateway keeps the lines of those vendors in memory for which it asks: a getter is compiled and run then. */
const snapshotOnDemand = {
  name: 'snapshot-on-demand',
  setup(build: PluginBuild) {
    build.onLoad({ filter: /vendor-models[\\/]snapshot\.json$/ }, async ({ path }) => {
      const { models, ...facts } = JSON.parse(await readFile(path, 'utf8')) as { readonly models: object }
      const getters = Object.entries(models).map(
        ([vendor, lines]) => `get ${JSON.stringify(vendor)}() { return ${JSON.stringify(lines)} }`,
      )
      const contents = `export default { ...${JSON.stringify(facts)}, models: { ${getters.join(', ')} } }`
      return { contents, loader: 'js' as const }
    })
  },
}

const javascript = {
  target: 'node20',
  platform: 'node',
  splitting: true,
  // tsup would turn `node:x` into `x`, and some builtins exist under the prefixed name only.
  removeNodeProtocol: false,
  silent: true,
  // V8 keeps the text of what is loaded. Names stay, and lines are short, for the sake of stack traces.
  esbuildOptions(options: { minifyWhitespace?: boolean; minifySyntax?: boolean; lineLimit?: number }) {
    options.minifyWhitespace = true
    options.minifySyntax = true
    options.lineLimit = 120
  },
  plugins: [escapeCharacters, nativeImports],
  esbuildPlugins: [snapshotOnDemand],
  define: { SIGNALBOX_VERSION: JSON.stringify(manifest.version) },
} satisfies Options

const esm: Options = { ...javascript, format: 'esm', entry: { ...libraryEntries, cli: 'src/cli/main.ts' } }

// Without this pass tsup writes split CommonJS by a transform that also lowers `?.` and `??` into helper calls.
const commonjs: Options = {
  ...javascript,
  format: 'cjs',
  entry: libraryEntries,
  treeshake: true,
  plugins: [escapeCharacters, lateRequire],
}

const DECLARATIONS = '.cache/declarations'

const declarations: Options = {
  entry: Object.fromEntries(
    PACKAGE_ENTRIES.map(({ name, source }) => [name, join(DECLARATIONS, source.replace(/\.ts$/, '.d.ts'))]),
  ),
  format: ['esm', 'cjs'],
  // tsup sets `baseUrl`, which TypeScript 6 reports as deprecated.
  dts: { only: true, compilerOptions: { ignoreDeprecations: '6.0' } },
  silent: true,
}

/**
 * Writes the declarations of each source file, from which tsup bundles those of the entries: it takes 7 seconds where tsup takes
 * 95 to make them of the sources. They are not checked here, which `npm run types` does.
 */
async function emitDeclarations(): Promise<void> {
  await rm(DECLARATIONS, { recursive: true, force: true })
  const compiler = 'node_modules/typescript70/bin/tsc'
  const flags = ['--noEmit', 'false', '--emitDeclarationOnly', '--declaration', '--noCheck', '--rootDir', '.']
  await promisify(execFile)(process.execPath, [compiler, '-p', '.', ...flags, '--outDir', DECLARATIONS])
  for (const path of await readdir(DECLARATIONS, { recursive: true })) {
    if (!path.endsWith('.d.ts')) continue
    const file = join(DECLARATIONS, path)
    // The compiler leaves the names of sources in imports of declarations.
    const text = (await readFile(file, 'utf8')).replace(/((?:from |import\()(["'])\.[^"']*)\.tsx?\2/g, '$1.js$2')
    await writeFile(file, text)
  }
}

export default async function builds(overrides: Options): Promise<Options[]> {
  const define = { ...javascript.define, ...consolePageDefines() }
  // `tsup --format esm` is what `npm start` runs: only what Node needs to execute, in a second instead of ten.
  if (overrides.format !== undefined) return [{ ...esm, define }]
  // Not tsup's `clean`: the three builds run at the same time and would delete each other's files.
  await rm('dist', { recursive: true, force: true })
  await emitDeclarations()
  return [{ ...esm, define }, { ...commonjs, define }, declarations]
}
