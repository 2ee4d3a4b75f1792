import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { describe, expect, inject, test } from 'vitest'
import { PACKAGE_ENTRIES } from '../../tsup.config.ts'

const { files, project } = inject('packed')
const installed = join(project, 'node_modules/signalbox')
const textOf = (file: string) => readFileSync(join(installed, file), 'utf8')
const manifest = JSON.parse(textOf('package.json')) as {
  exports: Record<string, string | Record<string, { types: string; default: string }>>
  bin: Record<string, string>
  dependencies: Record<string, string>
}

describe('the packed files', () => {
  test('are the build, the documentation and the examples, and nothing else', () => {
    const texts = [
      ...['CHANGELOG.md', 'CONTRIBUTING.md', 'LICENSE', 'README.md', 'SECURITY.md'],
      ...['bench/RESULTS.md', 'package.json'],
      'schemas/signalbox.config.schema.json',
    ]
    const isGuide = (file: string) =>
      /^docs\/[\w-]+\.md$|^docs\/public\/(?:benchmark\.svg|console\/[\w-]+\.jpg)$|^docs\/monitoring\/[\w.]+\.(?:yml|json)$/.test(
        file,
      )
    const isExample = (file: string) =>
      /^examples\/(?:(?:demo\/)?[\w-]+\.(?:mjs|json)|deploy\/[\w-]+\.(?:yaml|conf))$/.test(file)
    const others = files.filter((file) => !file.startsWith('dist/') && !isGuide(file) && !isExample(file))

    expect(others).toEqual(texts)
    expect(files.filter((file) => file.startsWith('dist/') && !/\.(?:c?js|d\.c?ts)$/.test(file))).toEqual([])
  })

  test('hold every file that their texts link to', () => {
    const pages = files.filter((file) => file.endsWith('.md'))
    const missing = pages.flatMap((page) =>
      [...textOf(page).matchAll(/\]\(([^)\s#]+)[^)\s]*\)/g)]
        .map(([, target = '']) => target)
        .filter((target) => !/^https?:/.test(target) && !files.includes(normalize(join(dirname(page), target))))
        .map((target) => `${page} -> ${target}`),
    )

    expect(pages).toContain('docs/getting-started.md')
    expect(missing).toEqual([])
  })

  test('are those that the exports map and the bin name, and the chunks they share', () => {
    const targets = Object.values(manifest.exports).flatMap((target) =>
      typeof target === 'string'
        ? [target]
        : Object.values(target).flatMap(({ types, default: code }) => [types, code]),
    )
    const named = [...targets, ...Object.values(manifest.bin)].map((target) => target.replace('./', ''))

    const entries = files.filter((file) => file === 'package.json' || isEntry(file))

    expect(entries).toEqual([...new Set(named)].sort())
  })

  test('are declarations that name no file of the source, which is not there', () => {
    const declarations = files.filter((file) => /^dist\/.*\.d\.c?ts$/.test(file))
    const names = declarations.flatMap((file) =>
      [...textOf(file).matchAll(/(?:from |import\()(["'])\.[^"']*(?<!\.d)\.tsx?\1/g)].map(
        ([name]) => `${file}: ${name}`,
      ),
    )

    expect(declarations).toContain('dist/index.d.ts')
    expect(names).toEqual([])
  })

  test('are code of ASCII, because one wider character doubles what a file takes in memory', () => {
    const code = files.filter((file) => /^dist\/.*\.c?js$/.test(file))

    expect(code.length).toBeGreaterThan(PACKAGE_ENTRIES.length)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the range is ASCII.
    expect(code.filter((file) => /[^\x00-\x7f]/.test(textOf(file)))).toEqual([])
  })

  test('hold no chunk that nothing imports', () => {
    const code = files.filter((file) => file.startsWith('dist/'))
    const everything = code.map(textOf).join('\n')

    const orphans = code.filter((file) => !isEntry(file) && !everything.includes(importedName(file)))

    expect(orphans).toEqual([])
  })

  test('offer types for import and require under every entry', () => {
    const entries = Object.entries(manifest.exports).filter(([entry]) => entry !== './package.json')

    expect(entries).toHaveLength(PACKAGE_ENTRIES.length)
    for (const [entry, conditions] of entries) {
      const name = entry === '.' ? 'index' : entry.slice(2)
      expect(conditions).toEqual({
        import: { types: `./dist/${name}.d.ts`, default: `./dist/${name}.js` },
        require: { types: `./dist/${name}.d.cts`, default: `./dist/${name}.cjs` },
      })
    }
  })

  test('show no type of zod', () => {
    const declarations = files.filter((file) => /\.d\.c?ts$/.test(file))

    expect(declarations.length).toBeGreaterThan(0)
    expect(declarations.filter((file) => /\bzod\b|\bz\.core\b|\bZod[A-Z]/.test(textOf(file)))).toEqual([])
  })

  test.each(['js', 'cjs'])('hold the error class once in .%s, whichever entries import it', (extension) => {
    const holders = files.filter(
      (file) => file.endsWith(`.${extension}`) && textOf(file).includes('signalbox.GatewayError'),
    )

    expect(holders).toHaveLength(1)
  })

  test('name no builtin without the node: prefix', () => {
    const bare =
      /(?:from|require\()\s*['"](?:fs|http|https|net|crypto|path|stream|buffer|url|util|events|timers|os)['"/]/

    expect(files.filter((file) => /\.c?js$/.test(file) && bare.test(textOf(file)))).toEqual([])
  })
})

describe('the runtime dependencies', () => {
  test('are the three that need no further reason, and those that have a reason in docs/decisions/0001-packages.md', () => {
    expect(Object.keys(manifest.dependencies).sort()).toEqual([
      '@fastify/busboy',
      'commander',
      'eventsource-parser',
      'form-data-encoder',
      'undici',
      'wasm-media-encoders',
    ])
  })

  test('bring nothing else into the project of a host', () => {
    const folders = readdirSync(join(project, 'node_modules')).filter((name) => !name.startsWith('.'))

    // `@cfworker`, `@modelcontextprotocol`, which brings zod, `@opentelemetry` and `jsonrepair` are optional peers, which these
    // tests install themselves; `@swc` comes with the encoder of sound.
    expect(folders.sort()).toEqual([
      ...[
        '@cfworker',
        '@fastify',
        '@modelcontextprotocol',
        '@opentelemetry',
        '@swc',
        'commander',
        'eventsource-parser',
        'form-data-encoder',
        'jsonrepair',
        'signalbox',
      ],
      ...['undici', 'wasm-media-encoders', 'zod'],
    ])
  })
})

/** Shared chunks carry a hash in their name: `chunk-4XYZ….js`, `gateway-B1c2D3e4.d.ts`. */
function isEntry(file: string): boolean {
  return /^dist\/[a-z]+\.(?:c?js|d\.c?ts)$/.test(file)
}

/** Returns a chunk's name in imports. Declarations import each other under the name of the code next to them. */
function importedName(file: string): string {
  return file.replace('dist/', './').replace(/\.d\.(c?)ts$/, '.$1js')
}
