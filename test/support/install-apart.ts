import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

/**
 * Installs the packages of a folder that has a `package.json` of its own, unless its lock file has been installed before. Packages that
 * only a few tests need are kept out of the repository's own installation this way.
 */
export async function installApart(folder: string): Promise<void> {
  const lock = await readFile(join(folder, 'package-lock.json'), 'utf8')
  const installed = join(folder, 'node_modules/.installed-lock.json')
  if ((await readFile(installed, 'utf8').catch(() => undefined)) === lock) return
  const flags = ['--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error']
  await promisify(execFile)('npm', ['ci', ...flags], { cwd: folder })
  await writeFile(installed, lock)
}
