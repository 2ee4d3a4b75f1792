/*
 * Builds a Next app with the packed package and a SQLite store, with both bundlers, copies the standalone folder elsewhere and calls it.
 * It takes minutes, so no test runs it: `npm run build`, then `node test/package/next.mjs 16` (or 15). Exits with status 1 on a failure.
 */
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const VERSIONS = { 15: '15.5.29', 16: '16.4.6' }
const BUNDLERS = { 15: [[], ['--turbopack']], 16: [['--webpack'], ['--turbopack']] }

const CONFIG = `export default {
  output: 'standalone',
  serverExternalPackages: ['signalbox'],
  outputFileTracingIncludes: { '/*': ['node_modules/@photostructure/sqlite/**', 'node_modules/node-gyp-build/**'] },
}
`

const major = process.argv[2] ?? '16'
const version = VERSIONS[major]
assert.ok(version, `Give the major version of Next: ${Object.keys(VERSIONS).join(' or ')}`)
const root = join(import.meta.dirname, '../..')
const folder = mkdtempSync(join(tmpdir(), 'signalbox-next-'))
const app = join(folder, 'app-root')
const run = (command, args, cwd) =>
  execFileSync(command, args, { cwd, stdio: 'inherit', env: { ...process.env, NEXT_TELEMETRY_DISABLED: '1' } })

try {
  run('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', folder], root)
  writeApp()
  const tarball = join(
    folder,
    `signalbox-${(await import(join(root, 'package.json'), { with: { type: 'json' } })).default.version}.tgz`,
  )
  const packages = [`next@${version}`, 'react@19', 'react-dom@19', '@photostructure/sqlite@1.2.1', tarball]
  run('npm', ['install', '--no-audit', '--no-fund', '--loglevel=error', ...packages], app)
  const { statusOfChat } = await import(pathToFileURL(join(app, 'sqlite-route.mjs')).href)
  for (const flags of BUNDLERS[major]) {
    run(process.execPath, ['node_modules/next/dist/bin/next', 'build', ...flags], app)
    // In another place, so that nothing is loaded from the folder of the app.
    const copy = mkdtempSync(join(tmpdir(), 'signalbox-standalone-'))
    cpSync(join(app, '.next/standalone'), copy, { recursive: true })
    rmSync(join(app, '.next'), { recursive: true, force: true })
    try {
      const status = await statusFrom(copy, statusOfChat)
      console.log(`Next ${version} ${flags.join(' ')}: ${status}`)
      assert.equal(status, 200)
    } finally {
      rmSync(copy, { recursive: true, force: true })
    }
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
// The stand-in of the route keeps the process running.
process.exit()

function writeApp() {
  mkdirSync(join(app, 'app/v1/[...path]'), { recursive: true })
  writeFileSync(join(app, 'package.json'), JSON.stringify({ name: 'host', private: true, type: 'module' }))
  writeFileSync(join(app, 'next.config.mjs'), CONFIG)
  writeFileSync(
    join(app, 'app/layout.js'),
    "import { createElement } from 'react'\nexport default ({ children }) => createElement('html', null, createElement('body', null, children))\n",
  )
  writeFileSync(join(app, 'app/page.js'), "export default () => 'ready'\n")
  const route = "export { POST } from '../../../sqlite-route.mjs'\nexport const dynamic = 'force-dynamic'\n"
  writeFileSync(join(app, 'app/v1/[...path]/route.js'), route)
  cpSync(join(import.meta.dirname, 'sqlite-route.mjs'), join(app, 'sqlite-route.mjs'))
}

/** Starts a standalone server, sends it a chat, and returns the status. */
async function statusFrom(cwd, statusOfChat) {
  const port = await freePort()
  const env = { ...process.env, PORT: String(port), HOSTNAME: '127.0.0.1' }
  const server = spawn(process.execPath, ['server.js'], { cwd, env, stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    for await (const text of server.stdout) if (String(text).includes('Ready')) break
    return await statusOfChat(fetch, `http://127.0.0.1:${port}`)
  } finally {
    server.kill()
    await once(server, 'exit')
  }
}

async function freePort() {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address()
  probe.close()
  return port
}
