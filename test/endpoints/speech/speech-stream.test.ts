import { Buffer } from 'node:buffer'
import { describe, expect, test } from 'vitest'
import type { SpeechDecoder, TakeSamples } from '../../../src/endpoints/speech/speech-decoder.ts'
import { PLAIN_ENVELOPE } from '../../../src/endpoints/speech/speech-envelope.ts'
import { SpeechStream } from '../../../src/endpoints/speech/speech-stream.ts'
import type { StreamSteps } from '../../../src/endpoints/speech/stream-steps.ts'
import { drawSound } from '../../../src/testing/sandbox/files/stored-files.ts'
import { mp3Encoder } from '../../../src/wire/mp3-encoder.ts'
import { WavEncoder } from '../../../src/wire/wav-encoder.ts'

const RATE = 24_000

/** What a caller may wait for the rest of the process, in milliseconds of work. */
const LONGEST_STEP_MS = 20

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
  return new SpeechStream({ text, parts: 1, decoder, encoder, isLaborious: true, envelope: PLAIN_ENVELOPE })
}

function stepsOf({ steps }: SpeechStream): StreamSteps {
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

/** CPU time of this process that some work takes, in milliseconds: what others on the machine take is not in it. */
function workMs(work: () => void): number {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

function median(times: readonly number[]): number {
  return [...times].sort((left, right) => left - right)[times.length >> 1] ?? Number.POSITIVE_INFINITY
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

  test('are so many that none of a text of 4096 characters takes 20 ms, several texts taking turns', async () => {
    const text = 'The 09:14 from the coast runs twelve minutes late. '.repeat(81).slice(0, 4096)
    const sound = drawSound(text)
    const streams = await Promise.all([mp3Stream(text), mp3Stream(text), mp3Stream(text)])
    const work = streams.map(stepsOf)
    const times: number[] = []
    // A vendor that gives a whole text in one read is the worst of all; the others are told less, to save the test's time.
    for (const [index, steps] of work.entries())
      times.push(workMs(() => steps.take(index === 0 ? sound : sound.subarray(0, 20 * RATE))))
    while (work.some((steps) => steps.hasWork)) for (const steps of work) times.push(workMs(() => void steps.next()))
    for (const stream of streams) times.push(workMs(() => void stream.end()))

    expect(sound.length).toBeGreaterThan(200 * RATE)
    expect(times.length).toBeGreaterThan(1_000)
    // Now and then the collection of garbage or a compilation of this process falls into a step; it must be an exception.
    expect(times.filter((ms) => ms >= LONGEST_STEP_MS).length).toBeLessThan(times.length / 200)
    expect(median(times)).toBeLessThan(LONGEST_STEP_MS / 4)
  })

  test('are none where the file needs no work', () => {
    const stream = new SpeechStream({
      text: 'Mind',
      parts: 1,
      decoder: (take) => new PlainDecoder(take),
      encoder: new WavEncoder(RATE),
      isLaborious: false,
      envelope: PLAIN_ENVELOPE,
    })

    expect(stream.steps).toBeUndefined()
    expect(Buffer.from(stream.push(Buffer.alloc(10)) ?? '')).toHaveLength(54)
  })
})
