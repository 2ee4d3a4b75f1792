// @ts-check
import assert from 'node:assert/strict'
import { formatDollars } from 'signalbox'
import { FREE } from './table.mjs'

/** @type {import('signalbox/client').MessagePrompt} */
const PROMPT = { messages: [{ role: 'user', content: 'Name three rivers.' }] }

/** The dialect is Anthropic's; any chat model works. */
const MODELS = ['claude-sonnet-5-5', 'gemini-3.8-flash', 'thinker']

/**
 * Messages in Anthropic's dialect: as JSON, as a stream, and token counts only.
 * @param {import('./start-servers.mjs').Demo} demo
 */
export async function showMessages({ client, table, chargeOf }) {
  table.section("messages: the same models answer in Anthropic's dialect, and counting tokens is free")
  for (const model of MODELS) {
    await table.row('messages', model, async (options) => {
      const message = await client.messages.create({ model, max_tokens: 200, ...PROMPT }, options)
      const text = message.content.map((block) => (block.type === 'text' ? block.text : '')).join('')
      assert.equal(message.stop_reason, 'end_turn')
      assert.match(text, /three rivers/)
      return { note: `"${text}"` }
    })

    await table.row('messages stream', model, async (options) => {
      const stream = await client.messages.stream({ model, max_tokens: 200, ...PROMPT }, options)
      let text = ''
      let isStopped = false
      for await (const event of stream) {
        if (event.type === 'content_block_delta' && event.delta.type === 'text_delta') text += event.delta.text
        if (event.type === 'message_stop') isStopped = true
      }
      assert.match(text, /three rivers/)
      assert.ok(isStopped, 'it did not come to its end')
      // The dialect has no field for the cost.
      return { cost: formatDollars(await chargeOf(stream.requestId ?? '')), note: `"${text}"` }
    })

    await table.row('messages.countTokens', model, async (options) => {
      const { input_tokens: tokens } = await client.messages.countTokens({ model, ...PROMPT }, options)
      assert.ok(Number.isInteger(tokens) && tokens > 0, `it counted ${tokens}`)
      return { cost: FREE, note: `${tokens} tokens` }
    })
  }
}
