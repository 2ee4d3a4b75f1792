// @ts-check
import assert from 'node:assert/strict'
import { formatDollars } from 'signalbox'

/** Transcript of the stand-in, which contains the length of the recording of the speech rows. */
const SAID = 'This recording is 1.7 seconds long.'

/**
 * Transcribes the spoken WAV file: as JSON, as subtitles, and streamed. It costs the same in every format.
 * @param {import('./start-servers.mjs').Demo} demo
 */
export async function showTranscriptions({ client, table, fileOf, chargeOf }) {
  table.section('transcriptions: the text comes back, and a recording costs the same in every format')
  const file = { path: fileOf('speech.wav') }
  /** @type {(string | undefined)[]} */
  const costs = []
  const noting = (/** @type {import('signalbox/client').CallOptions} */ options) => ({
    ...options,
    onResponse: (/** @type {import('signalbox/client').ResponseFacts} */ facts) => {
      costs.push(facts.cost)
      options.onResponse?.(facts)
    },
  })

  await table.row('audio.transcriptions', 'whisper-1', async (options) => {
    const answer = await client.audio.transcriptions.create({ model: 'whisper-1', file }, noting(options))
    assert.equal(answer.text, SAID)
    return { note: answer.text }
  })

  await table.row('audio.transcriptions srt', 'whisper-1', async (options) => {
    const request = /** @type {const} */ ({ model: 'whisper-1', file, response_format: 'srt' })
    const subtitles = await client.audio.transcriptions.create(request, noting(options))
    assert.match(subtitles, /^1\n00:00:00,000 --> 00:00:01,680\n/)
    assert.equal(costs[1], costs[0])
    return { note: `${subtitles.split('\n')[1]}, at the same cost` }
  })

  await table.row('audio.transcriptions stream', 'gpt-transcribe', async (options) => {
    const request = /** @type {const} */ ({ model: 'gpt-transcribe', file, stream: true })
    const stream = await client.audio.transcriptions.create(request, options)
    let text = ''
    let events = 0
    for await (const event of stream) {
      events++
      if (event.type === 'transcript.text.delta') text += event.delta
    }
    assert.equal(text, SAID)
    // A stream is charged when it has ended, so its headers lack the cost.
    const cost = formatDollars(await chargeOf(stream.requestId ?? ''))
    return { cost, note: `${events} events` }
  })
}
