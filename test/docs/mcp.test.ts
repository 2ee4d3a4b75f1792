import { expect, test } from 'vitest'
import { listResources, resourceTemplates } from '../../src/mcp/resources/resources.ts'
import { TOOLS } from '../../src/mcp/tools/tools.ts'
import { firstTable, readPage, section } from './support/markdown.ts'

const page = readPage('docs/mcp.md')

test('the page shows every tool with its hints', () => {
  const expected = TOOLS.map(({ name, listed: { annotations } }) => [
    name,
    annotations?.readOnlyHint === true ? 'no' : annotations?.destructiveHint === true ? 'yes, permanently' : 'yes',
    annotations?.openWorldHint === true ? 'yes' : 'no',
  ])

  const [, ...rows] = firstTable(section(page, 'Tools'))

  expect(rows.map(([tool, _carriesOut, changes, atVendor]) => [tool, changes, atVendor])).toEqual(expected)
})

test('the page shows every resource', () => {
  const plain = listResources()
    .map(({ uri }) => uri)
    .filter((uri) => !uri.startsWith('gateway://reference/'))
  const named = resourceTemplates().map(({ uriTemplate }) => uriTemplate)

  const [, ...rows] = firstTable(section(page, 'Resources'))

  expect(rows.map(([address]) => address).sort()).toEqual([...plain, ...named].sort())
})
