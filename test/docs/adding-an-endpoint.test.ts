import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { expect, test, vi } from 'vitest'
import { codeBlocks, firstTable, ROOT, readPage, section } from './support/markdown.ts'

const page = readPage('docs/adding-an-endpoint.md')

test("the page's program is the one that is run here", () => {
  const code = readFileSync(join(import.meta.dirname, 'support/classify-program.ts'), 'utf8')
  const shown = codeBlocks(page).find((block) => block.code.includes('defineEndpoint<'))

  expect(shown?.code).toBe(code.replace('../../../src/index.ts', 'signalbox'))
})

test('the program serves an endpoint that the library does not know, and charges for it', async () => {
  const log = vi.spyOn(console, 'log').mockImplementation(() => undefined)

  await import('./support/classify-program.ts')

  const data = [
    { index: 0, label: 'happy' },
    { index: 1, label: 'angry' },
  ]
  expect(log.mock.calls).toEqual([[200, { object: 'list', model: 'mood', data }, '0.0000006']])
  log.mockRestore()
})

test('the table lists every member of an endpoint', () => {
  const path = join(ROOT, 'src/endpoints/endpoint.ts')
  const source = ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest)
  const members = source.statements
    .filter((node) => ts.isInterfaceDeclaration(node))
    .filter((node) => node.name.text === 'Endpoint')
    .flatMap((node) => node.members.map((member) => (member.name as ts.Identifier).text))

  const [, ...rows] = firstTable(section(page, 'Members of a definition'))

  expect(rows.map((row) => row[0]).sort()).toEqual(members.sort())
})
