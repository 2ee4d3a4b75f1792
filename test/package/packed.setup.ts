import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { run } from './run.ts'

const root = join(import.meta.dirname, '../..')

const PEERS = ['@cfworker/json-schema@4', '@modelcontextprotocol/server@2', '@opentelemetry/api@1', 'jsonrepair@3']

/** Package that the tests of this folder examine. */
interface Packed {
  /** The tarball that would be published. */
  readonly tarball: string
  /** Every file in it, without the leading `package/`. */
  readonly files: readonly string[]
  /** A project outside of the repository that has the tarball installed, and the peers without which an entry is useless. */
  readonly project: string
}

declare module 'vitest' {
  export interface ProvidedContext {
    packed: Packed
  }
}

/** Packs `dist` and installs it into an empty project; vitest calls what it returns when the tests are done. */
export default async function packedPackage(context: TestProject): Promise<() => Promise<void>> {
  if (!existsSync(join(root, 'dist/index.d.cts')))
    throw new Error('There is nothing to pack: run `npm run build` first.')
  const folder = await mkdtemp(join(tmpdir(), 'signalbox-package-'))
  const remove = () => rm(folder, { recursive: true, force: true })
  try {
    // Without scripts: `prepack` would build a second time, below the feet of other tests.
    const report = await run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], { cwd: root })
    const [packed] = JSON.parse(report.stdout) as [{ filename: string; files: { path: string }[] }]
    const tarball = join(folder, packed.filename)
    await writeFile(join(folder, 'package.json'), JSON.stringify({ name: 'host', private: true }))
    await run(
      'npm',
      [
        'install',
        '--ignore-scripts',
        '--prefer-offline',
        '--no-audit',
        '--no-fund',
        '--loglevel=error',
        tarball,
        ...PEERS,
      ],
      { cwd: folder },
    )
    context.provide('packed', { tarball, files: packed.files.map((file) => file.path).sort(), project: folder })
  } catch (error) {
    await remove()
    throw error
  }
  return remove
}
