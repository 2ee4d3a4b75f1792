// Records the files that only browsers write, in a Chromium: `node test/wire/audio/record-files.mjs`. They contain no length, because
// a recording is sent while it is made. The names contain the length that Chromium itself decodes, in tenths of a second.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { chromium } from 'playwright-core'

const RECORDINGS = [
  ['webm-browser', 'webm', 'audio/webm;codecs=opus', 3700],
  ['mp4-browser', 'mp4', 'audio/mp4', 2600],
]

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--autoplay-policy=no-user-gesture-required'],
})
const page = await browser.newPage()
for (const [name, extension, type, durationMs] of RECORDINGS) {
  const { base64, seconds } = await page.evaluate(record, [type, durationMs])
  const file = `${name}-${Math.round(seconds * 10)}.${extension}`
  writeFileSync(join(import.meta.dirname, 'files', file), Buffer.from(base64, 'base64'))
}
await browser.close()

/** Runs in the browser. */
async function record([mimeType, durationMs]) {
  const context = new AudioContext()
  const tone = new OscillatorNode(context, { frequency: 300 })
  const target = context.createMediaStreamDestination()
  tone.connect(new GainNode(context, { gain: 0.2 })).connect(target)
  tone.start()
  const recorder = new MediaRecorder(target.stream, { mimeType, audioBitsPerSecond: 12_000 })
  const parts = []
  recorder.ondataavailable = ({ data }) => parts.push(data)
  recorder.start(1000)
  await new Promise((resolve) => setTimeout(resolve, durationMs))
  recorder.stop()
  await new Promise((resolve) => {
    recorder.onstop = resolve
  })
  const bytes = await new Blob(parts).arrayBuffer()
  const base64 = btoa(String.fromCharCode(...new Uint8Array(bytes)))
  return { base64, seconds: (await context.decodeAudioData(bytes)).duration }
}
