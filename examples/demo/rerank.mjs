// @ts-check
import assert from 'node:assert/strict'

const MODEL = 'qw3-rerank'
const DOCUMENTS = ['a blue mug', 'a paper boat on a pond', 'a paper hat']

/**
 * Documents by relevance to a query, cut to the best.
 * @param {import('./start-servers.mjs').Demo} demo
 */
export async function showRerank({ client, table }) {
  table.section('rerank: the best documents come first, as many as were asked for, as they were written')
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
