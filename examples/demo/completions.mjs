// @ts-check
import assert from 'node:assert/strict'

const MODEL = 'coder'

/**
 * A text whose gap is filled, whole and in pieces.
 * @param {import('./start-servers.mjs').Demo} demo
 */
export async function showCompletions({ client, table }) {
  table.section('completions: a gap in a text is filled, and a stream brings the same text')
  const request = { model: MODEL, prompt: 'const area = (radius) =>', suffix: ';', max_tokens: 50 }
  const expected = `You said: ${request.prompt}`

  await table.row('completions', MODEL, async (options) => {
    const { choices } = await client.completions.create(request, options)
    assert.equal(choices[0]?.text, expected)
    return { note: expected }
  })

  await table.row('completions stream', MODEL, async (options) => {
    const streamed = { ...request, stream: /** @type {const} */ (true), stream_options: { include_usage: true } }
    let text = ''
    let cost
    for await (const piece of await client.completions.create(streamed, options)) {
      text += piece.choices[0]?.text ?? ''
      cost = piece.usage?.cost ?? cost
    }
    assert.equal(text, expected)
    return { note: 'the same text', cost }
  })
}
