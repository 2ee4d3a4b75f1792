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
}, 60_000)

test('a strict host compiles against the types from .mts and from .cts, without skipLibCheck', async () => {
  const folder = join(project, 'typed')
  const lines = PACKAGE_ENTRIES.map(
    ({ specifier }, index) => `import * as entry${index} from '${specifier}'\nexport { entry${index} }`,
  )
  const compilerOptions = {
    module: 'node16',
    target: 'es2022',
    lib: ['es2023', 'dom', 'dom.iterable'],
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: false,
    noEmit: true,
    types: ['node'],
    typeRoots: [join(root, 'node_modules/@types')],
  }
  // One program: each file resolves by its own condition, and the libraries of the language are read once.
  const files = ['host.mts', 'host.cts']
  await mkdir(folder, { recursive: true })
  for (const file of files) await writeFile(join(folder, file), lines.join('\n'))
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }))

  const { stdout } = await run(bin('tsc'), ['--project', folder], { cwd: folder })

  expect(stdout).toBe('')
}, 60_000)
