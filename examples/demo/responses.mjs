// @ts-check
import assert from 'node:assert/strict'
import { formatDollars } from 'signalbox'
import { FREE, needed } from './table.mjs'

/** The first model is at OpenAI, where bytes pass through; the others are translated. */
const MODELS = ['relay', 'claude-sonnet-5-5', 'gemini-3.8-flash']

/**
 * Responses: an answer, one that continues it by its id, one as a stream, and the count of a prompt.
 * @param {import('./start-servers.mjs').Demo} demo
 */
export async function showResponses({ client, table, chargeOf }) {
  table.section('responses: a conversation continues by its id, whatever vendor answers')
  for (const model of MODELS) {
    const first = await table.row('responses', model, async (options) => {
      const answer = await client.responses.create({ model, input: 'Name three rivers.' }, options)
      assert.equal(answer.status, 'completed')
      assert.match(textOf(answer), /three rivers/)
      return { value: answer, note: `"${textOf(answer)}"` }
    })

    await table.row('responses continued', model, async (options) => {
      const { id } = needed(first, 'the first answer')
      const answer = await client.responses.create({ model, previous_response_id: id, input: 'And a lake.' }, options)
      assert.equal(answer.previous_response_id, id)
      assert.match(textOf(answer), /lake/)
      const read = await client.responses.inputItems(answer, { order: 'asc' })
      const roles = read.data.flatMap((item) => ('role' in item ? [item.role] : []))
      assert.deepEqual(roles, ['user', 'assistant', 'user'])
      return { note: `"${textOf(answer)}"` }
    })

    await table.row('responses stream', model, async (options) => {
      const stream = await client.responses.stream({ model, input: 'Tell me a story.', store: false }, options)
      let text = ''
      let isComplete = false
      for await (const event of stream) {
        if (event.type === 'response.output_text.delta') text += event.delta
        if (event.type === 'response.completed') isComplete = true
      }
      assert.match(text, /story/)
      assert.ok(isComplete, 'it did not come to its end')
      // The dialect has no field for the cost.
      return { cost: formatDollars(await chargeOf(stream.requestId ?? '')), note: `"${text}"` }
    })

    await table.row('responses.countTokens', model, async (options) => {
      const { input_tokens: tokens } = await client.responses.countTokens(
        { model, input: 'Name three rivers.' },
        options,
      )
      assert.ok(Number.isInteger(tokens) && tokens > 0, `it counted ${tokens}`)
      return { cost: FREE, note: `${tokens} tokens` }
    })
  }
}

/** @param {import('signalbox/client').ResponseAnswer} answer */
function textOf({ output }) {
  const parts = output.flatMap((item) => (item.type === 'message' ? item.content : []))
  return parts.map((part) => (part.type === 'output_text' ? part.text : '')).join('')
}
