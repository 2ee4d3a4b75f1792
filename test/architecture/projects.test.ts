import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { PROJECTS } from '../../vitest.config.ts'
import { readSourceTree } from './source-tree.ts'

const ROOT = join(import.meta.dirname, '../..')
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8')
const { scripts } = JSON.parse(read('package.json')) as { scripts: Readonly<Record<string, string>> }

const testFiles = ['test', 'bench/checks'].flatMap((folder) =>
  [...readSourceTree(join(ROOT, folder)).keys()]
    .map((path) => `${folder}/${path}`)
    .filter((path) => /\.(?:test|check)\.ts$/.test(path)),
)

/** Whether a pattern of the configuration, a path or one with a folder and anything below it, matches this file. */
function names(pattern: string, path: string): boolean {
  const [head = '', tail] = pattern.split('**/*')
  return tail === undefined ? pattern === path : path.startsWith(head) && path.endsWith(tail)
}

function projectsOf(path: string): string[] {
  const holds = (patterns: readonly string[] = []): boolean => patterns.some((pattern) => names(pattern, path))
  return PROJECTS.filter(({ include, exclude }) => holds(include) && !holds(exclude)).map(({ name }) => name)
}

/** The projects that a command names, those of the scripts that it runs included. */
function projectsRunBy(command: string): string[] {
  const own = [...command.matchAll(/--project (\w+)/g)].map(([, name]) => name!)
  const called = [...command.matchAll(/\bnpm (?:run )?([\w:]+)/g)].map(([, name]) => scripts[name!] ?? '')
  return [...own, ...called.flatMap(projectsRunBy)]
}

const EVERY_PROJECT = PROJECTS.map(({ name }) => name).sort()

test('every test file is in exactly one project', () => {
  const misplaced = testFiles.filter((path) => projectsOf(path).length !== 1)

  expect(testFiles.length).toBeGreaterThan(200)
  expect(misplaced.map((path) => `${path}: ${projectsOf(path).join(', ') || 'none'}`)).toEqual([])
})

test('every file that a project names exists', () => {
  const paths = PROJECTS.flatMap(({ include }) => include).filter((pattern) => !pattern.includes('*'))

  expect(paths.filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
})

test('the gate runs every project, and each once', () => {
  const commands = read('.ci/run').replaceAll(/^\s*#.*$/gm, '')

  expect(projectsRunBy(commands).sort()).toEqual(EVERY_PROJECT)
})

test('npm run test:all and npm run bench:checks are all there is', () => {
  const run = [...projectsRunBy(scripts['test:all']!), ...projectsRunBy(scripts['bench:checks']!)]

  expect(run.sort()).toEqual(EVERY_PROJECT)
})

test('there is a script for each project', () => {
  const single = Object.entries(scripts).filter(([name]) => /^(?:test(?!:all)|bench:checks)/.test(name))

  expect(single.flatMap(([, command]) => projectsRunBy(command)).sort()).toEqual(EVERY_PROJECT)
})
