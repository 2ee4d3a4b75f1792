import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, inject, test } from 'vitest'
import { run } from './run.ts'

const { project } = inject('packed')
const ENTRIES = [
  ['signalbox', 'createGateway'],
  ['signalbox/node', 'nodeHandler'],
  ['signalbox/express', 'expressHandler'],
  ['signalbox/fastify', 'fastifyGateway'],
  ['signalbox/fetch', 'fetchHandler'],
  ['signalbox/client', 'createClient'],
  ['signalbox/builders', 'video'],
  ['signalbox/mcp', 'mcpHandler'],
  ['signalbox/postgres', 'postgresStore'],
  ['signalbox/redis', 'redisLimits'],
  ['signalbox/sqlite', 'sqliteStore'],
  ['signalbox/testing', 'sandboxVendors'],
] as const

const node = (args: readonly string[]) => run(process.execPath, args, { cwd: project })

test.each(ENTRIES)('import of %s gives %s, by name only', async (entry, name) => {
  const code = `const all = await import('${entry}'); console.log(typeof all.${name}, 'default' in all)`

  const { stdout, stderr } = await node(['--input-type=module', '--eval', code])

  expect([stdout, stderr]).toEqual(['function false\n', ''])
})

test.each(ENTRIES)('require of %s gives %s, and the same names as import', async (entry, name) => {
  const code = `
    const required = require('${entry}')
    const names = (all) => Object.keys(all).filter((key) => key !== 'default' && key !== 'module.exports').sort().join()
    import('${entry}').then((all) => console.log(typeof required.${name}, names(all) === names(required)))`

  const { stdout, stderr } = await node(['--input-type=commonjs', '--eval', code])

  expect([stdout, stderr]).toEqual(['function true\n', ''])
})

test('an error of the CommonJS copy is recognised by the ESM copy', async () => {
  const code = `
    const { GatewayError } = require('signalbox')
    const error = new GatewayError('rate_limited')
    import('signalbox').then((esm) => console.log(esm.GatewayError.isInstance(error), String(error)))`

  const { stdout } = await node(['--input-type=commonjs', '--eval', code])

  expect(stdout).toMatch(/^true GatewayError: /)
})

test('the installed command explains itself', async () => {
  const { stdout } = await run(join(project, 'node_modules/.bin/signalbox'), ['--help'], { cwd: project })

  expect(stdout).toContain('signalbox serve')
})

test('the installed package answers chat, a stream and embeddings, by import and by require', async () => {
  await copyFile(join(import.meta.dirname, 'smoke.mjs'), join(project, 'smoke.mjs'))

  const { stdout } = await node(['smoke.mjs'])

  expect(stdout.trim().split('\n')).toEqual([
    `import on Node ${process.versions.node}: chat, stream, embeddings answered`,
    `require on Node ${process.versions.node}: chat, stream, embeddings answered`,
  ])
})
