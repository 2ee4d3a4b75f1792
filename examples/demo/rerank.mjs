// @ts-check
import assert from 'node:assert/strict'

const MODEL = 'qw3-rerank'
const DOCUMENTS = ['a blue mug', 'a paper boat on a pond', 'a paper hat']

/**
 * Ranks documents by relevance to a query, and returns the best.
 * @param {import('./start-servers.mjs').Demo} demo
 */
export async function showRerank({ client, table }) {
  table.section('rerank: the best documents come first, in the requested number, with their original text')
  await table.row('rerank', MODEL, async (options) => {
    const request = { model: MODEL, query: 'paper boat', documents: DOCUMENTS, top_n: 2, return_documents: true }
    const { results } = await client.rerank(request, options)
    assert.deepEqual(
      results.map(({ index }) => index),
      [1, 2],
    )
    for (const { index, document } of results) assert.deepEqual(document, { text: DOCUMENTS[index] })
    return { note: results.map(({ index, relevance_score }) => `${index}: ${relevance_score}`).join(', ') }
  })
}
