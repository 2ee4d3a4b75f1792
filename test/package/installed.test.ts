import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, inject, test } from 'vitest'
import { PACKAGE_ENTRIES } from '../../tsup.config.ts'
import { run } from './run.ts'

const { project } = inject('packed')
const node = (args: readonly string[]) => run(process.execPath, args, { cwd: project })

test.each(PACKAGE_ENTRIES)('import of $specifier gives the names of its source, and no default', async (entry) => {
  const source = (await import(join(import.meta.dirname, '../..', entry.source))) as object
  const code = `const all = await import('${entry.specifier}'); console.log(Object.keys(all).sort().join())`

  const { stdout, stderr } = await node(['--input-type=module', '--eval', code])

  expect(Object.keys(source)).not.toEqual([])
  expect([stdout, stderr]).toEqual([`${Object.keys(source).sort().join()}\n`, ''])
})

test.each(PACKAGE_ENTRIES)('require of $specifier gives the same names as import', async ({ specifier }) => {
  const code = `
    const required = require('${specifier}')
    const names = (all) => Object.keys(all).filter((key) => key !== 'default' && key !== 'module.exports').sort().join()
    import('${specifier}').then((all) => console.log(names(all) === names(required)))`

  const { stdout, stderr } = await node(['--input-type=commonjs', '--eval', code])

  expect([stdout, stderr]).toEqual(['true\n', ''])
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
