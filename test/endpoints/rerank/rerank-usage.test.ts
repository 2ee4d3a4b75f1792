import { expect, test } from 'vitest'
import { rerankEstimate, searchUnits } from '../../../src/endpoints/rerank/rerank-endpoint.ts'

const LONG = 'x'.repeat(1_600)

test('a list that is split is held for with each part rounded up to whole units', () => {
  const documents = Array.from({ length: 2_001 }, (_, index) => (index === 0 || index === 1_000 ? LONG : 'short'))
  const units = (start: number, end: number): number =>
    searchUnits({ query: 'who', documents: documents.slice(start, end) })
  const charged = units(0, 1_000) + units(1_000, 2_000) + units(2_000, 2_001)

  expect([charged, searchUnits({ query: 'who', documents })]).toEqual([23, 21])
  expect(rerankEstimate({ query: 'who', documents }).searchUnits).toBeGreaterThanOrEqual(charged)
  expect(rerankEstimate({ query: 'who', documents: documents.slice(0, 500) }).searchUnits).toBe(6)
})

test('a caller cannot lower the count by a bound that a vendor never gets', () => {
  const documents = Array.from({ length: 100 }, () => 'x'.repeat(6_000))

  expect(searchUnits({ query: 'who', documents, max_tokens_per_doc: 1 })).toBe(searchUnits({ query: 'who', documents }))
  expect(searchUnits({ query: 'who', documents, max_tokens_per_doc: 8_000 })).toBe(5)
})
