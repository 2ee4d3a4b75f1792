import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')
const FOLDER = 'docs/decisions'
const textOf = (path: string): string => readFileSync(join(ROOT, path), 'utf8')

const records = readdirSync(join(ROOT, FOLDER)).filter((name) => name !== 'README.md')
const rows = [...textOf(`${FOLDER}/README.md`).matchAll(/^\| \[(.+)\]\((.+)\) \| (.+) \|$/gm)].map(
  ([, title = '', name = '', files = '']) => ({
    title,
    name,
    files: [...files.matchAll(/`([^`]+)`/g)].map(([, file = '']) => file),
  }),
)

test('keeps at most 30 records of decisions', () => {
  expect(records.length).toBeGreaterThan(0)
  expect(records.length).toBeLessThanOrEqual(30)
})

test('lists each record in the index under its title', () => {
  const titles = records.sort().map((name) => ({ name, title: textOf(`${FOLDER}/${name}`).split('\n', 1)[0] }))

  expect(rows.map(({ name, title }) => ({ name, title: `# ${title}` }))).toEqual(titles)
})

test('starts each record with its number and its status', () => {
  for (const name of records)
    expect(textOf(`${FOLDER}/${name}`), name).toMatch(
      new RegExp(`^# ${Number.parseInt(name, 10)}\\. .+\n\nStatus: (?:accepted|replaced), \\d{4}-\\d{2}-\\d{2}\\.\n`),
    )
})

test('names each record in the first line of the files that it explains', () => {
  const unnamed = rows.flatMap(({ name, files }) =>
    files
      .filter((file) => !textOf(file).split('\n', 1)[0]?.includes(`${FOLDER}/${name}`))
      .map((file) => `${file} -> ${name}`),
  )

  expect(rows.filter(({ files }) => files.length === 0)).toEqual([])
  expect(unnamed).toEqual([])
})

test('names only files that exist in records', () => {
  const missing = records.flatMap((name) =>
    [...textOf(`${FOLDER}/${name}`).matchAll(/`((?:src|test|bench|docs)\/[\w./-]+)`/g)]
      .map(([, path = '']) => path)
      .filter((path) => !existsSync(join(ROOT, path)))
      .map((path) => `${name}: ${path}`),
  )

  expect(missing).toEqual([])
})

test('names a reason for each package of package.json', () => {
  const manifest = JSON.parse(textOf('package.json')) as Record<string, Readonly<Record<string, string>>>
  const packages = ['dependencies', 'devDependencies', 'peerDependencies'].flatMap((kind) =>
    Object.keys(manifest[kind] ?? {}),
  )
  const named = [...textOf(`${FOLDER}/0001-packages.md`).matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)
  const isNamed = (name: string): boolean => named.includes(name) || named.includes(name.replace(/\/.*/, '/*'))

  expect(packages).toContain('undici')
  expect(packages.filter((name) => !isNamed(name))).toEqual([])
})
