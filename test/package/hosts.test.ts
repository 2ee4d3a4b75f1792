import { existsSync } from 'node:fs'
import { copyFile, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { run } from './run.ts'

const { tarball } = inject('packed')
const root = join(import.meta.dirname, '../..')

/** Exact versions, so that a release of a host does not fail the gate. `docs/hosts.md` names them. */
const HOSTS = [
  'jest@29.7.0',
  'esbuild@0.25.12',
  'webpack@5.113.0',
  '@photostructure/sqlite@1.2.1',
  '@cfworker/json-schema@4.1.6',
  'jsonrepair@3.15.0',
  '@oven/bun-linux-x64@1.4.5',
  '@deno/linux-x64-glibc@2.9.6',
]
const INSTALL = ['install', '--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error']

const ROUTE_CALL = "import { statusOfChat } from './sqlite-route.mjs'\n"

let folder = ''

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'signalbox-hosts-'))
  await writeFile(join(folder, 'package.json'), JSON.stringify({ name: 'host', private: true }))
  await run('npm', [...INSTALL, tarball, ...HOSTS], { cwd: folder })
  for (const file of ['smoke.mjs', 'late-loading.cjs', 'sqlite-route.mjs', 'webpack-build.cjs'])
    await copyFile(join(import.meta.dirname, file), join(folder, file))
  await writeFile(join(folder, 'late.test.js'), "test('loads', require('./late-loading.cjs'), 30_000)\n")
  await writeFile(join(folder, 'late.cjs'), "require('./late-loading.cjs')().then(() => console.log('loaded'))\n")
  await writeFile(join(folder, 'route.mjs'), `${ROUTE_CALL}console.log(await statusOfChat())\nprocess.exit()\n`)
  await writeFile(
    join(folder, 'route.spec.mjs'),
    `${ROUTE_CALL}import { expect, test } from 'vitest'\ntest('answers', async () => expect(await statusOfChat()).toBe(200))\n`,
  )
}, 240_000)

afterAll(() => rm(folder, { recursive: true, force: true }))

const bin = (name: string): string => join(folder, 'node_modules', name)

test('loads every late module with require on Node', async () => {
  expect((await run(process.execPath, ['late.cjs'], { cwd: folder })).stdout).toBe('loaded\n')
})

test('loads every late module in Jest 29 with default settings', async () => {
  const { stderr } = await run(process.execPath, [bin('jest/bin/jest.js')], { cwd: folder })

  expect(stderr).toContain('1 passed, 1 total')
}, 60_000)

test('answers a chat on a SQLite store in Vitest', async () => {
  // The repository's own Vitest. Modules of the package are those of the host.
  await symlink(join(root, 'node_modules/vitest'), bin('vitest'))
  const args = [join(root, 'node_modules/vitest/vitest.mjs'), 'run', '--root', '.', 'route.spec.mjs']

  expect((await run(process.execPath, args, { cwd: folder })).stdout).toMatch(/Tests +1 passed/)
}, 120_000)

test('uses a SQLite store in webpack bundles of ES modules and of CommonJS', async () => {
  await run(process.execPath, ['webpack-build.cjs'], { cwd: folder })

  expect((await run(process.execPath, ['packed/modules.cjs'], { cwd: folder })).stdout).toBe('200\n')
  expect((await run(process.execPath, ['packed/commonjs.cjs'], { cwd: folder })).stdout).toBe('loaded\n')
}, 120_000)

test('answers chat, a stream and embeddings in an esbuild bundle', async () => {
  const flags = ['smoke.mjs', '--bundle', '--platform=node', '--format=esm', '--outfile=bundle/smoke.mjs']
  await run(bin('@esbuild/linux-x64/bin/esbuild'), [...flags, '--packages=external'], { cwd: folder })

  expect((await run(process.execPath, ['bundle/smoke.mjs'], { cwd: folder })).stdout).toContain('embeddings answered')
})

test.runIf(process.platform === 'linux' && process.arch === 'x64').each([
  ['Bun', '@oven/bun-linux-x64/bin/bun', ['smoke.mjs']],
  ['Deno', '@deno/linux-x64-glibc/deno', ['run', '--allow-all', '--node-modules-dir=manual', 'smoke.mjs']],
])(
  'answers chat, a stream and embeddings on %s',
  async (_name, program, args) => {
    expect(existsSync(bin(program))).toBe(true)
    const { stdout } = await run(bin(program), args, { cwd: folder })

    expect(stdout.match(/chat, stream, embeddings answered/g)).toHaveLength(2)
  },
  60_000,
)
