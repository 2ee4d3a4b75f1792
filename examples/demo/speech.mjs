// @ts-check
import assert from 'node:assert/strict'
import { formatDollars } from 'signalbox'
import { speech } from 'signalbox/builders'
import { soundFacts } from './sound-facts.mjs'

const TEXT = 'Doors close in five minutes.'

/** The stand-in plays a tone for each character. */
const SECONDS_PER_CHARACTER = 0.06

/**
 * Speech in both formats: one read chunk by chunk, one as a whole.
 * @param {import('./start-servers.mjs').Demo} demo
 */
export async function showSpeech({ client, table, save, chargeOf }) {
  table.section('speech: each file is complete, and as long as its text')
  await table.row('audio.speech mp3', 'qw3-tts-flash', async (options) => {
    const request = speech('qw3-tts-flash').text(TEXT).voice('Ethan').format('mp3').build()
    const answer = await client.audio.speech.create(request, options)
    const chunks = []
    for await (const chunk of answer) chunks.push(chunk)
    const bytes = Buffer.concat(chunks)
    assert.equal(answer.contentType, 'audio/mpeg')
    const seconds = checkSound(bytes, 'mp3')
    const file = await save('speech.mp3', bytes)
    return { cost: await costOf(answer), note: `${seconds} s, read in chunks, ${file}` }
  })

  await table.row('audio.speech wav', 'qw3-tts-instruct-flash', async (options) => {
    const request = speech('qw3-tts-instruct-flash').text(TEXT).instructions('calm and slow').format('wav').build()
    const answer = await client.audio.speech.create(request, options)
    const bytes = Buffer.from(await answer.bytes())
    assert.equal(answer.contentType, 'audio/wav')
    const seconds = checkSound(bytes, 'wav')
    return { cost: await costOf(answer), note: `${seconds} s, ${await save('speech.wav', bytes)}` }
  })

  /**
   * Audio is sent while it is generated, so the response headers lack the cost.
   * @param {import('signalbox/client').BinaryAnswer} answer
   */
  async function costOf({ requestId }) {
    return formatDollars(await chargeOf(requestId ?? ''))
  }
}

/**
 * @param {Buffer} bytes
 * @param {'mp3' | 'wav'} expected
 */
function checkSound(bytes, expected) {
  const { format, seconds } = soundFacts(bytes)
  assert.equal(format, expected)
  const wholeSeconds = TEXT.length * SECONDS_PER_CHARACTER
  // An MP3 begins and ends with a frame or two of silence.
  assert.ok(Math.abs(seconds - wholeSeconds) < 0.1, `it is ${seconds} s long, not ${wholeSeconds}`)
  return seconds.toFixed(2)
}
