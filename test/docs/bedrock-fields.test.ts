import { expect, test } from 'vitest'
import { CONVERSE_FIELDS } from '../../src/vendors/amazon-bedrock/converse-request.ts'
import { verdictOf } from './support/field-table.ts'
import { firstTable, readPage, section } from './support/markdown.ts'

test('the table of Converse is that of the field rules', () => {
  const [head, ...rows] = firstTable(section(readPage('docs/vendors.md'), 'Fields at Bedrock'))
  expect(head).toEqual(['field', 'in Converse'])
  const verdicts = rows.flatMap(([fields = '', cell]) =>
    fields
      .replaceAll('`', '')
      .split(', ')
      .map((field) => [field, verdictOf(cell)] as const),
  )

  expect(Object.fromEntries(verdicts)).toEqual(CONVERSE_FIELDS)
})
