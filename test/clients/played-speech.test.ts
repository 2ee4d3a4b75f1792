import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { CHARACTER_MS } from '../../src/testing/sandbox/files/stored-files.ts'
import { startSpeech } from '../gateway/audio/speech-gateway.ts'
import { leftOut } from '../support/real-servers.ts'
import type { StartedGateway } from '../support/start-gateway.ts'

const INPUT = 'The ferry leaves from the second pier at nine.'
const SECONDS = (INPUT.length * CHARACTER_MS) / 1000

const folder = mkdtempSync(join(tmpdir(), 'signalbox-speech-'))
let started: StartedGateway

beforeAll(async () => {
  started = await startSpeech()
})
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true })
  await started.close()
})

/** Undefined when sox is there and reads MP3. */
function missingSox(): string | undefined {
  const formats = execFileSync('sh', ['-c', 'sox --help || true'], { encoding: 'utf8', stdio: 'pipe' })
  return /AUDIO FILE FORMATS:.* mp3 /.test(formats) ? undefined : leftOut('no sox that reads MP3')
}

describe.skipIf(missingSox() !== undefined)('a saved speech', () => {
  test.each(['mp3', 'wav'])('is read by sox as %s of the right length', async (format) => {
    const path = join(folder, `speech.${format}`)
    const body = { model: 'qw3-tts-flash', input: INPUT, voice: 'alloy', response_format: format }
    const answer = await started.post('/v1/audio/speech', body)
    await writeFile(path, new Uint8Array(await answer.arrayBuffer()))

    const read = execFileSync('sh', ['-c', 'sox "$0" -n stat 2>&1', path], { encoding: 'utf8' })

    expect(read).not.toMatch(/WARN|FAIL/)
    expect(Math.abs(Number(/^Length \(seconds\): +([\d.]+)$/m.exec(read)?.[1]) - SECONDS)).toBeLessThan(0.1)
  })
})
