import { Buffer } from 'node:buffer'
import { afterEach, describe, expect, test } from 'vitest'
import type { SpeechRequest } from '../../../src/endpoints/speech/speech-request.ts'
import { drawSound } from '../../../src/testing/sandbox/files/stored-files.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { mp3Encoder } from '../../../src/wire/audio/encoders.ts'
import { type AnsweringVendor, answeringVendor } from '../../gateway/streams/answering-vendor.ts'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'
import { callFromRequest } from '../shared/vendor-call.ts'

const { speech } = openai({ apiKey: 'k-0123456789' })

function decoded(chunks: readonly Uint8Array[], format: SpeechRequest['response_format'] = 'wav') {
  const samples: Uint8Array[] = []
  const call = callFromRequest<SpeechRequest>({ model: 'tts-1', input: 'Hello.', response_format: format })
  const decoder = speech!.decoder(call, (bytes) => void samples.push(bytes))
  for (const chunk of chunks) decoder.push(chunk)
  decoder.end()
  return { decoder, samples: Buffer.concat(samples) }
}

async function mp3(samples: Uint8Array): Promise<Buffer> {
  const encoder = await mp3Encoder(24_000)
  return Buffer.concat([...encoder.encode(samples), ...encoder.finish()])
}

const SOUND = drawSound('Doors close in five minutes. ')

describe('the samples of a spoken text', () => {
  test.each([1, 7, 2_048, 100_000])('pass as they are, in reads of %d bytes', (size) => {
    for (const sound of [SOUND, SOUND.subarray(0, 100), Buffer.alloc(5_000), Buffer.alloc(5_000, 0xff)]) {
      const reads = Array.from({ length: Math.ceil(sound.length / size) }, (_, index) =>
        sound.subarray(index * size, (index + 1) * size),
      )
      const { decoder, samples } = decoded(reads)

      expect(samples.equals(sound)).toBe(true)
      expect(decoder).toMatchObject({ isComplete: true, failure: undefined })
    }
  })

  test('pass where two of them look like headers of frames that follow one another', () => {
    const sound = Buffer.from(SOUND.subarray(0, 5_000))
    const header = Buffer.from([0xff, 0xf3, 0x84, 0xc4])
    // A frame of 64 kilobits per second at 24 kHz has 192 bytes.
    for (const position of [0, 192]) header.copy(sound, position)
    const { decoder, samples } = decoded([sound])

    expect(samples.equals(sound)).toBe(true)
    expect(decoder.failure).toBeUndefined()
  })

  test.each(['mp3', 'mp3 with tags', 'ogg', 'flac'])('are distinguished from %s', async (format) => {
    const frames = await mp3(SOUND)
    const tag = Buffer.from('ID3\u0004\0\0\0\0\0\0', 'latin1')
    const file = {
      mp3: frames,
      'mp3 with tags': Buffer.concat([tag, frames]),
      ogg: Buffer.concat([Buffer.from('OggS'), SOUND]),
      flac: Buffer.concat([Buffer.from('fLaC'), SOUND]),
    }[format]!
    for (const reads of [[file], [file.subarray(0, 3), file.subarray(3)]]) {
      const { decoder, samples } = decoded(reads)

      expect(samples).toHaveLength(0)
      expect(decoder).toMatchObject({ isComplete: false, failure: { kind: 'invalid_response' } })
    }
  })
})

describe('the file of a spoken text', () => {
  const FILES = {
    opus: Buffer.concat([Buffer.from('OggS'), SOUND.subarray(1)]),
    flac: Buffer.concat([Buffer.from('fLaC'), SOUND.subarray(1)]),
    aac: Buffer.concat([Buffer.from([0xff, 0xf9, 0x50, 0x80]), SOUND.subarray(1)]),
  }
  const FORMATS = ['opus', 'flac', 'aac'] as const

  test.each(FORMATS)('passes as it is in %s, and another format is an invalid answer', async (format) => {
    const passed = decoded([FILES[format].subarray(0, 3), FILES[format].subarray(3)], format)
    expect(passed.samples.equals(FILES[format])).toBe(true)
    expect(passed.decoder).toMatchObject({ isComplete: true, failure: undefined })

    const others = FORMATS.filter((other) => other !== format).map((other) => FILES[other])
    for (const file of [...others, await mp3(SOUND), SOUND]) {
      const { decoder, samples } = decoded([file], format)
      expect(samples).toHaveLength(0)
      expect(decoder).toMatchObject({ isComplete: false, failure: { kind: 'invalid_response' } })
    }
  })
})

describe('a server that sends an MP3 in place of samples', () => {
  let started: StartedGateway
  let vendor: AnsweringVendor

  afterEach(async () => {
    await started.close()
    await vendor.close()
  })

  test('emits no noise: the call fails with 502 and is free, and possible costs are reported', async () => {
    const file = await mp3(SOUND)
    vendor = await answeringVendor((response) => {
      response.writeHead(200, { 'content-type': 'audio/mpeg' })
      response.end(file)
    })
    const price = { model: 'tts-1', meter: 'character', amount: '0.01', per: 1_000 } as const
    started = await startGateway({
      vendors: [openai({ apiKey: 'key', baseURL: vendor.origin })],
      prices: { currency: 'USD', prices: [price] },
    })
    const before = await started.account()
    const answer = await started.post('/v1/audio/speech', { model: 'tts-1', input: 'Hello.' })

    expect(answer.status).toBe(502)
    expect(await started.account()).toEqual(before)
    expect(started.events.filter(({ type }) => type === 'unbilled-usage')).toMatchObject([
      { usage: { characters: 6 }, isEstimated: true },
    ])
  })
})
