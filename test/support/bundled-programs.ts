import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { build } from 'tsup'
import { afterAll, beforeAll } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')

/**
 * Bundles TypeScript programs once for a test file. The returned function starts one, by its name without extension. Processes that
 * still run are killed at the end.
 * @param files Absolute paths.
 */
export function bundledPrograms(
  files: readonly string[],
): (name: string, args: readonly string[], options: SpawnOptions) => ChildProcess {
  // Inside the project, so that the bundles find the packages they need.
  const folder = mkdtempSync(join(ROOT, 'node_modules/.signalbox-test-'))
  const children = new Set<ChildProcess>()
  beforeAll(async () => {
    await build({
      entry: [...files],
      outDir: folder,
      format: 'esm',
      target: 'node20',
      platform: 'node',
      config: false,
      dts: false,
      removeNodeProtocol: false,
      silent: true,
      outExtension: () => ({ js: '.mjs' }),
    })
  })
  afterAll(() => {
    for (const child of children) child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  })
  return (name, args, options) => {
    const program = join(folder, `${basename(name)}.mjs`)
    const child = spawn(process.execPath, ['--expose-gc', program, ...args], options)
    children.add(child)
    child.once('exit', () => children.delete(child))
    return child
  }
}
