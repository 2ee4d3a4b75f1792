// @ts-check
import assert from 'node:assert/strict'
import { moderation } from 'signalbox/builders'
import { FREE } from './table.mjs'

const MODEL = 'omni-moderation-latest'

/**
 * Classifies texts and an image, free of charge.
 * @param {import('./start-servers.mjs').Demo} demo
 */
export async function showModerations({ client, table }) {
  table.section('moderations: each text has a result, a text with an image has one, and both are free')
  const draft = moderation(MODEL).text('a paper boat')

  await table.row('moderations texts', MODEL, async (options) => {
    const { results } = await client.moderations.create(draft.text('violence').build(), options)
    assert.deepEqual(
      results.map(({ flagged }) => flagged),
      [false, true],
    )
    return { note: 'the second of two texts is flagged', cost: FREE }
  })

  await table.row('moderations picture', MODEL, async (options) => {
    const body = draft.picture('https://pictures.example/violence.png').build()
    const { results } = await client.moderations.create(body, options)
    assert.equal(results.length, 1)
    assert.equal(results[0]?.categories.violence, true)
    return { note: 'a text and an image have one result', cost: FREE }
  })
}
