import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { createGateway } from '../../src/index.ts'
import { codeBlocks, firstTable, ROOT, readPage, section } from './support/markdown.ts'

const page = readPage('docs/caching.md')
const [program, options] = codeBlocks(page).filter(({ language }) => language === 'ts')

/** Runs a program of the page with the built package; what it has printed. */
async function run(code: string): Promise<string> {
  // Below the repository, so that the package finds itself by its name.
  const folder = await mkdtemp(join(ROOT, '.docs-caching-'))
  try {
    await writeFile(join(folder, 'program.mjs'), code)
    const { stdout } = await promisify(execFile)(process.execPath, [join(folder, 'program.mjs')])
    return stdout
  } finally {
    await rm(folder, { recursive: true })
  }
}

describe('the page on the response cache', () => {
  test('has a program that prints what it says', async () => {
    const said = /console\.log\(.*\) \/\/ (.*)/.exec(program?.code ?? '')?.[1]

    expect((await run(program?.code ?? '')).trim()).toBe(said)
  })

  test('has options that a gateway takes', async () => {
    const printed = await run(`${(options?.code ?? '').replace(' as const', '')}
      const { createGateway, voyage } = await import('signalbox')
      createGateway({ vendors: [voyage({ apiKey: 'any' })], billing: 'off', cache })
      console.log('taken')`)

    expect(printed.trim()).toBe('taken')
  })

  test('has the defaults in its table that the options have', () => {
    const [, ...rows] = firstTable(section(page, 'What is cached'))
    const byName = new Map(rows.map((row) => [row[0], row[1]]))
    const make = (ttlMs: number, maxTtlMs: number) =>
      createGateway({ vendors: [], billing: 'off', cache: { ttlMs, maxTtlMs } })
    const number = (name: string): number => Number(byName.get(name)?.replaceAll(',', ''))

    expect(number('ttlMs')).toBe(300_000)
    expect(() => make(number('ttlMs'), number('maxTtlMs'))).not.toThrow()
    expect(() => make(number('ttlMs'), number('maxTtlMs') + 1)).toThrow('cache.maxTtlMs')
  })
})
