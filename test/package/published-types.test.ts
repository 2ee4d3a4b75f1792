import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, inject, test } from 'vitest'
import { PACKAGE_ENTRIES } from '../../tsup.config.ts'
import { run } from './run.ts'

const root = join(import.meta.dirname, '../..')
const bin = (name: string) => join(root, 'node_modules/.bin', name)
const { tarball, project } = inject('packed')

/** Parts of attw's JSON output that are read here. */
interface Report {
  readonly analysis: {
    readonly problems: readonly { readonly kind: string; readonly resolutionKind?: string }[]
    readonly entrypoints: Readonly<Record<string, unknown>>
  }
}

test('publint has nothing to say about the tarball', async () => {
  const { stdout } = await run(bin('publint'), ['run', tarball, '--strict'], { cwd: root })

  expect(stdout).toContain('All good!')
})

test('attw resolves every entry to matching code and types under node16', async () => {
  const args = [tarball, '--profile', 'node16', '--no-definitely-typed', '--format', 'json']

  const { stdout } = await run(bin('attw'), args, { cwd: root })

  const { analysis } = JSON.parse(stdout) as Report
  // The report lists everything; the profile leaves out the resolution of before `exports`, and so the exit status does.
  expect(analysis.problems.filter((problem) => problem.resolutionKind !== 'node10')).toEqual([])
  expect(Object.keys(analysis.entrypoints)).toHaveLength(PACKAGE_ENTRIES.length + 1)
}, 120_000)

/**
 * Module resolutions, each with the newest compiler that has it, and with the files of a host: `.mts` and `.cts` resolve by different
 * conditions.
 */
const RESOLUTIONS = [
  ['node16', 'typescript70', { module: 'node16' }, ['host.mts', 'host.cts']],
  ['bundler', 'typescript70', { module: 'esnext' }, ['host.mts', 'host.cts']],
  ['node10', 'typescript', { module: 'commonjs', ignoreDeprecations: '6.0' }, ['host.ts']],
] as const

test.each(RESOLUTIONS)(
  'compiles a strict host that imports every entry with moduleResolution %s, without skipLibCheck',
  async (moduleResolution, compiler, options, files) => {
    const folder = join(project, `typed-${moduleResolution}`)
    const lines = PACKAGE_ENTRIES.map(
      ({ specifier }, index) => `import * as entry${index} from '${specifier}'\nexport { entry${index} }`,
    )
    const compilerOptions = {
      ...options,
      moduleResolution,
      target: 'es2022',
      lib: ['es2023', 'dom', 'dom.iterable'],
      strict: true,
      exactOptionalPropertyTypes: true,
      skipLibCheck: false,
      noEmit: true,
      types: ['node'],
      typeRoots: [join(root, 'node_modules/@types')],
    }
    await mkdir(folder, { recursive: true })
    // One program for all files, so that the compiler reads the libraries of the language once.
    for (const file of files) await writeFile(join(folder, file), lines.join('\n'))
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }))

    const program = join(root, 'node_modules', compiler, 'bin/tsc')
    const { stdout } = await run(process.execPath, [program, '--project', folder], { cwd: folder })

    expect(stdout).toBe('')
  },
  120_000,
)
