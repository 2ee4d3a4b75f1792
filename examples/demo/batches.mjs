// @ts-check
import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import { FREE } from './table.mjs'

const MODEL = 'relay'
const QUESTIONS = ['Name three rivers.', 'Name three lakes.', 'Name three seas.']
const BODIES = QUESTIONS.map((content) => ({
  model: MODEL,
  max_tokens: 100,
  messages: /** @type {const} */ ([{ role: 'user', content }]),
}))

/**
 * Batches of requests, in a file and inline, and a free estimate of one request.
 * @param {import('./start-servers.mjs').Demo} demo
 */
export async function showBatches({ client, table }) {
  table.section('batches: every request of a batch has its answer, at half the price, and is charged once')
  const { estimate } = client
  const single = await table.row('estimate', MODEL, async (options) => {
    const { held } = await estimate({ endpoint: '/v1/chat/completions', body: BODIES[0] ?? {} }, options)
    assert.ok(held !== null && Number(held) > 0, 'it holds nothing')
    return { cost: FREE, note: `one of the requests would hold ${held} at the price of a call`, value: held }
  })

  await table.row('batches', MODEL, async (options) => {
    const lines = BODIES.map((body, index) =>
      JSON.stringify({ custom_id: `question-${index}`, method: 'POST', url: '/v1/chat/completions', body }),
    )
    const file = await client.files.create({ file: Buffer.from(lines.join('\n')), purpose: 'batch' }, options)
    const request = /** @type {const} */ ({
      input_file_id: file.id,
      endpoint: '/v1/chat/completions',
      completion_window: '24h',
    })
    let batch = await client.batches.create(request, options)
    while (batch.status !== 'completed') {
      await wait(50)
      batch = await client.batches.retrieve(batch)
    }
    const answers = Buffer.from(await (await client.files.content(batch.output_file_id ?? '')).bytes()).toString()
    for (const question of QUESTIONS) assert.ok(answers.includes(question.slice(0, -1)), question)
    assert.ok(Number(batch.cost) < QUESTIONS.length * Number(single), 'it costs as much as single calls')
    return { cost: batch.cost, note: `${batch.request_counts.completed} of ${batch.request_counts.total} answered` }
  })

  await table.row('messages.batches', MODEL, async (options) => {
    const requests = BODIES.map((params, index) => ({ custom_id: `question-${index}`, params }))
    let batch = await client.messages.batches.create({ requests }, options)
    while (batch.processing_status !== 'ended') {
      await wait(50)
      batch = await client.messages.batches.retrieve(batch)
    }
    /** @type {string[]} */
    const ends = []
    for await (const { custom_id, result } of client.messages.batches.results(batch))
      ends.push(`${custom_id} ${result.type}`)
    assert.deepEqual(
      ends,
      QUESTIONS.map((_, index) => `question-${index} succeeded`),
    )
    return { cost: batch.cost, note: ends.join(', ') }
  })
}
