// @ts-check
/*
 * A recording as text and as subtitles.
 *
 *   npm run build && node examples/transcription.mjs [recording]
 *
 * Without a recording it has one spoken first. Offline stand-ins speak and listen, so it runs without an account. With
 * OPENAI_API_KEY set it calls the vendor.
 */
import { createGateway, openai } from 'signalbox'
import { sandboxVendors } from 'signalbox/testing'

const { OPENAI_API_KEY: vendorKey } = process.env
const [path] = process.argv.slice(2)
const sandbox = vendorKey ? undefined : sandboxVendors()
const gateway = createGateway({
  vendors: [openai({ apiKey: vendorKey ?? 'stand-in' })],
  billing: 'off',
  ...(sandbox ? { transport: sandbox.transport() } : {}),
})
const client = gateway.client({ accountId: 'customer-1', keyId: 'host', tier: 'paid' })

async function spoken() {
  const request = /** @type {const} */ ({ model: 'gpt-4o-mini-tts', voice: 'alloy', response_format: 'wav' })
  const sound = await client.audio.speech.create({ ...request, input: 'Doors close in five minutes.' })
  return await sound.bytes()
}

const file = path === undefined ? await spoken() : { path }
const { text } = await client.audio.transcriptions.create({ model: 'whisper-1', file })
console.log(text)
const subtitles = await client.audio.transcriptions.create({ model: 'whisper-1', file, response_format: 'srt' })
console.log(subtitles.trim())

await gateway.close()
await sandbox?.close()
