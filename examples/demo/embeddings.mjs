// @ts-check
import assert from 'node:assert/strict'
import { embedding } from 'signalbox/builders'
import { needed } from './table.mjs'

const MODEL = 'vy-4'
const DIMENSIONS = 512
const TEXTS = ['a paper boat', 'a blue mug']

/**
 * Vectors as numbers, and the same vectors in a third of the bytes.
 * @param {import('./start-servers.mjs').Demo} demo
 */
export async function showEmbeddings({ client, table, save }) {
  table.section('embeddings: vectors have the requested length, and both encodings contain the same numbers')
  const draft = embedding(MODEL)
    .input(...TEXTS)
    .dimensions(DIMENSIONS)

  const numbers = await table.row('embeddings float', MODEL, async (options) => {
    const answer = await client.embeddings.create(draft.build(), options)
    const vectors = answer.data.map((entry) => entry.embedding)
    checkVectors(vectors)
    const file = await save('vectors.json', JSON.stringify({ model: MODEL, texts: TEXTS, vectors }))
    return { value: vectors, note: `${vectors.length} of ${DIMENSIONS}, ${file}` }
  })

  await table.row('embeddings base64', MODEL, async (options) => {
    const answer = await client.embeddings.create(draft.base64().build(), options)
    const vectors = answer.data.map((entry) => entry.embedding)
    assert.ok(vectors.every((vector) => vector instanceof Float32Array))
    checkVectors(vectors)
    assert.deepEqual(
      vectors.map((vector) => Array.from(vector)),
      needed(numbers, 'embeddings float'),
    )
    const file = await save('vectors.f32', Buffer.concat(vectors.map((vector) => Buffer.from(vector.buffer))))
    return { note: `the same vectors, ${file}` }
  })
}

/** @param {readonly ArrayLike<number>[]} vectors */
function checkVectors(vectors) {
  assert.equal(vectors.length, TEXTS.length)
  for (const vector of vectors) {
    assert.equal(vector.length, DIMENSIONS)
    const length = Math.hypot(...Array.from(vector))
    assert.ok(Math.abs(length - 1) < 0.001, `a vector is ${length} long, not 1`)
  }
}
