import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')

/** The package names under which the compilers are installed, and the versions that they are. */
const COMPILERS = [
  ['typescript59', '5.9'],
  ['typescript', '6.0'],
  ['typescript70', '7.0'],
] as const

/** Measured 24,000 to 50,900; a type that multiplies by the models would leave this behind. */
const MAX_INSTANTIATIONS = 53_000

interface Compiled {
  readonly faults: readonly string[]
  readonly instantiations: number
}

function compile(compiler: string): Promise<Compiled> {
  const program = join(ROOT, 'node_modules', compiler, 'bin/tsc')
  const parameters = [program, '-p', 'test/types/tsconfig.json', '--extendedDiagnostics', '--pretty', 'false']
  return new Promise((resolve) => {
    // The exit status contains no more than the faults do.
    execFile(process.execPath, parameters, { cwd: ROOT }, (_error, output) => {
      const count = /^Instantiations:\s+(\d+)/m.exec(output)?.[1]
      resolve({
        faults: output.split('\n').filter((line) => /\berror TS\d+:/.test(line)),
        instantiations: Number(count ?? Number.NaN),
      })
    })
  })
}

describe.each(COMPILERS)('TypeScript from %s', (compiler, version) => {
  test('is the version that it is meant to be', () => {
    const manifest = readFileSync(join(ROOT, 'node_modules', compiler, 'package.json'), 'utf8')

    expect((JSON.parse(manifest) as { version: string }).version.startsWith(`${version}.`)).toBe(true)
  })

  test('accepts what a model takes, and refuses the rest on the line at fault, within its budget', {
    timeout: 120_000,
  }, async () => {
    const { faults, instantiations } = await compile(compiler)

    expect(faults).toEqual([])
    expect(instantiations).toBeLessThan(MAX_INSTANTIATIONS)
  })
})

test('every type test expects refusals, so that accepting everything would fail', () => {
  const files = readdirSync(import.meta.dirname).filter((name) => name.endsWith('.test-d.ts'))
  const counts = files.map(
    (name) => readFileSync(join(import.meta.dirname, name), 'utf8').split('@ts-expect-error').length - 1,
  )

  expect(files.length).toBeGreaterThanOrEqual(5)
  expect(Math.min(...counts)).toBeGreaterThan(2)
})
