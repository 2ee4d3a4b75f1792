import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import builds, { PACKAGE_ENTRIES } from '../../tsup.config.ts'

const root = join(import.meta.dirname, '../..')
const jsonOf = (file: string): unknown => JSON.parse(readFileSync(join(root, file), 'utf8'))

test('paths of tsconfig.json hold the source of every entry of the package, and no more', () => {
  const { compilerOptions } = jsonOf('tsconfig.json') as { compilerOptions: { paths: Record<string, string[]> } }
  const wanted = Object.fromEntries(PACKAGE_ENTRIES.map(({ specifier, source }) => [specifier, [`./${source}`]]))

  expect(compilerOptions.paths, 'tsconfig.json: paths must have a line for each of exports in package.json').toEqual(
    wanted,
  )
})

test('every build writes the version of the package in place of its name', async () => {
  const { version } = jsonOf('package.json') as { version: string }
  const [module] = await builds({ format: 'esm' })

  expect(module?.define).toMatchObject({ SIGNALBOX_VERSION: JSON.stringify(version) })
})
