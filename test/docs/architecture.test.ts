import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { firstTable, ROOT, readPage, section } from './support/markdown.ts'

const page = readPage('docs/architecture.md')

test('the layers stand on the page in the order that is enforced', () => {
  const rules = readFileSync(join(ROOT, 'test/architecture/import-rules.ts'), 'utf8')
  const list = /LAYERS = \[([\s\S]*?)\]/.exec(rules)?.[1] ?? ''
  const folders = readdirSync(join(ROOT, 'src'), { withFileTypes: true }).filter((entry) => entry.isDirectory())
  const existing = new Set(folders.map((entry) => entry.name))
  const enforced = [...list.matchAll(/'(\w+)'/g)].map(([, name]) => name!).filter((name) => existing.has(name))

  const [, ...rows] = firstTable(section(page, 'Layers'))

  expect(rows.map((row) => row[0])).toEqual(enforced)
})

test('the stages stand on the page in the order in which the pipeline calls them', () => {
  const pipeline = readFileSync(join(ROOT, 'src/gateway/pipeline.ts'), 'utf8')
  const sentence = /The way of a request: ([^.]*)\./.exec(pipeline)?.[1] ?? ''
  const stages = sentence.split(/\s*(?:→|⇄)\s*/).filter((stage) => stage !== 'vendor')

  const [, ...rows] = firstTable(section(page, 'One request'))

  expect(stages.length).toBeGreaterThan(5)
  expect(rows.map((row) => row[0]).filter((step) => stages.includes(step!))).toEqual(stages)
})

test('every file that the flow names exists', () => {
  const names = [...section(page, 'One request').matchAll(/`(src\/[\w./-]+\.ts)`/g)].map(([, path]) => path!)

  expect(names.length).toBeGreaterThan(8)
  for (const name of names) expect(() => readFileSync(join(ROOT, name)), name).not.toThrow()
})
