// @ts-check
import assert from 'node:assert/strict'
import { parseDollars } from 'signalbox'
import { chat } from 'signalbox/builders'
import { FREE } from './table.mjs'

/** @type {import('signalbox/client').ChatMessage[]} */
const MESSAGES = [{ role: 'user', content: 'Name three rivers.' }]

/** One model of each vendor that chats, and one that its vendor offers by Responses only. */
const MODELS = ['relay', 'thinker', 'claude-sonnet-5-5', 'gemini-3.8-flash', 'translator']

/**
 * Chats, as JSON and as a stream.
 * @param {import('./start-servers.mjs').Demo} demo
 */
export async function showChats({ client, table, chargeOf }) {
  table.section(
    "chats: every vendor answers in OpenAI's dialect, whole and streamed, and the host's event contains the cost that the caller gets",
  )
  for (const model of MODELS) {
    await table.row('chat.completions', model, async (options) => {
      const answer = await client.chat.completions.create({ model, messages: MESSAGES }, options)
      const choice = answer.choices[0]
      assert.equal(choice?.finish_reason, 'stop')
      assert.match(choice.message.content ?? '', /three rivers/)
      return { note: `"${choice.message.content}"` }
    })
  }

  for (const model of MODELS) {
    await table.row('chat.completions stream', model, async (options) => {
      const request = chat(model).system('You are brief.').user('Tell me a story.').maxTokens(200).stream().build()
      const stream = await client.chat.completions.create(request, options)
      let text = ''
      let chunks = 0
      /** @type {string | undefined} */
      let cost
      for await (const chunk of stream) {
        chunks += 1
        text += chunk.choices[0]?.delta.content ?? ''
        // The last chunk has the usage and cost of the stream.
        cost = chunk.usage?.cost ?? cost
      }
      assert.match(text, /story/)
      assert.ok(chunks > 2, `it came in ${chunks} chunks`)
      // The host's event reports the same cost once the stream is settled.
      assert.equal(await chargeOf(stream.requestId ?? ''), parseDollars(cost ?? FREE))
      return { cost, note: `"${text}" in ${chunks} chunks` }
    })
  }
}
