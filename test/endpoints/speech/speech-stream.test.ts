import { Buffer } from 'node:buffer'
import { describe, expect, test } from 'vitest'
import {
  PLAIN_ENVELOPE,
  type SpeechDecoder,
  SpeechStream,
  type TakeSamples,
} from '../../../src/endpoints/speech/speech-endpoint.ts'
import type { IncrementalEncoder } from '../../../src/endpoints/stream-transform.ts'
import { drawSound } from '../../../src/testing/sandbox/files/stored-files.ts'
import { mp3Encoder, WavEncoder } from '../../../src/wire/audio/encoders.ts'

const RATE = 24_000

/** One network read. */
const READ_BYTES = 65_536

/** Takes every byte as sound. */
class PlainDecoder implements SpeechDecoder {
  isComplete = false
  readonly failure = undefined
  readonly tokens = undefined
  readonly #take: TakeSamples

  constructor(take: TakeSamples) {
    this.#take = take
  }

  push(chunk: Uint8Array): void {
    this.#take(chunk)
  }

  end(): void {
    this.isComplete = true
  }
}

async function mp3Stream(text: string): Promise<SpeechStream> {
  const encoder = await mp3Encoder(RATE)
  const decoder = (take: TakeSamples): SpeechDecoder => new PlainDecoder(take)
  return new SpeechStream({ text, parts: [text], decoder, encoder, isCpuBound: true, envelope: PLAIN_ENVELOPE })
}

function stepsOf({ encoder: steps }: SpeechStream): IncrementalEncoder {
  if (steps === undefined) throw new Error('the stream has no steps')
  return steps
}

function reads(sound: Buffer): Buffer[] {
  return Array.from({ length: Math.ceil(sound.length / READ_BYTES) }, (_, index) =>
    sound.subarray(index * READ_BYTES, (index + 1) * READ_BYTES),
  )
}

/** Bytes of the file that a stream gives. */
class File {
  readonly #bytes: Buffer[] = []

  add(bytes: Uint8Array | string | undefined): void {
    if (bytes !== undefined) this.#bytes.push(Buffer.from(bytes))
  }

  whole(): Buffer {
    return Buffer.concat(this.#bytes)
  }
}

describe('the steps of an MP3 file', () => {
  test('give the same file as the whole work at once', async () => {
    const sound = drawSound('Mind the gap. '.repeat(8))
    const [atOnce, inSteps] = [await mp3Stream('Mind'), await mp3Stream('Mind')]
    const [one, other] = [new File(), new File()]
    const steps = stepsOf(inSteps)
    for (const read of reads(sound)) {
      one.add(atOnce.push(read))
      steps.take(read)
      while (steps.hasWork) other.add(steps.next())
    }
    one.add(atOnce.end())
    other.add(inSteps.end())

    expect(one.whole().equals(other.whole())).toBe(true)
    expect(inSteps.isComplete).toBe(true)
  })

  test('leave nothing out when the end comes before the work is done', async () => {
    const sound = drawSound('Mind the gap.')
    const [atOnce, hurried] = [await mp3Stream('Mind'), await mp3Stream('Mind')]
    const [one, other] = [new File(), new File()]
    one.add(atOnce.push(sound))
    one.add(atOnce.end())
    stepsOf(hurried).take(sound)
    other.add(stepsOf(hurried).next())
    other.add(hurried.end())

    expect(one.whole().equals(other.whole())).toBe(true)
    expect(stepsOf(hurried).hasWork).toBe(false)
  })

  test('are none where the file needs no work', () => {
    const stream = new SpeechStream({
      text: 'Mind',
      parts: ['Mind'],
      decoder: (take) => new PlainDecoder(take),
      encoder: new WavEncoder(RATE),
      isCpuBound: false,
      envelope: PLAIN_ENVELOPE,
    })

    expect(stream.encoder).toBeUndefined()
    expect(Buffer.from(stream.push(Buffer.alloc(10)) ?? '')).toHaveLength(54)
  })
})
