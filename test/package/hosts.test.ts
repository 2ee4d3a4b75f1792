import { existsSync } from 'node:fs'
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { run } from './run.ts'

const { tarball } = inject('packed')
const HOSTS = [
  'jest@29',
  'esbuild@0.25',
  '@photostructure/sqlite@1',
  '@oven/bun-linux-x64@1',
  '@deno/linux-x64-glibc@2',
]
const INSTALL = ['install', '--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error']

let folder = ''

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'signalbox-hosts-'))
  await writeFile(join(folder, 'package.json'), JSON.stringify({ name: 'host', private: true }))
  await run('npm', [...INSTALL, tarball, ...HOSTS], { cwd: folder })
  for (const file of ['smoke.mjs', 'late-loading.cjs'])
    await copyFile(join(import.meta.dirname, file), join(folder, file))
  await writeFile(join(folder, 'late.test.js'), "test('loads', require('./late-loading.cjs'), 30_000)\n")
  await writeFile(join(folder, 'late.cjs'), "require('./late-loading.cjs')().then(() => console.log('loaded'))\n")
}, 120_000)

afterAll(() => rm(folder, { recursive: true, force: true }))

const bin = (name: string): string => join(folder, 'node_modules', name)

test('loads every late module with require on Node', async () => {
  expect((await run(process.execPath, ['late.cjs'], { cwd: folder })).stdout).toBe('loaded\n')
})

test('loads every late module in Jest 29 with default settings', async () => {
  const { stderr } = await run(process.execPath, [bin('jest/bin/jest.js')], { cwd: folder })

  expect(stderr).toContain('1 passed, 1 total')
}, 60_000)

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
