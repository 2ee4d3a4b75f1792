import { expect, test } from 'vitest'
import {
  PLAIN_ENVELOPE,
  type SpeechDecoder,
  SpeechStream,
  type TakeSamples,
} from '../../src/endpoints/speech/speech-endpoint.ts'
import { drawSound } from '../../src/testing/sandbox/files/stored-files.ts'
import { loadMp3Encoder, mp3Encoder } from '../../src/wire/audio/encoders.ts'
import { processorMs } from './processor-ms.ts'

const RATE = 24_000

/** Longest time that a caller may wait for other work of the process, in milliseconds. */
const MAX_STEP_MS = 20

function median(times: readonly number[]): number {
  return [...times].sort((left, right) => left - right)[times.length >> 1] ?? Number.POSITIVE_INFINITY
}

test('a second of MP3 holds the process up for less than 20 ms', async () => {
  await loadMp3Encoder()
  const encoder = await mp3Encoder(RATE)
  const second = drawSound('One second of speech, or a little more.').subarray(0, RATE * 2)

  expect(median(Array.from({ length: 21 }, () => processorMs(() => encoder.encode(second))))).toBeLessThan(20)
})

test('no step of an MP3 file of 4096 characters takes 20 ms, several texts taking turns', async () => {
  const text = 'The 09:14 from the coast runs twelve minutes late. '.repeat(81).slice(0, 4096)
  const sound = drawSound(text)
  const decoder = (take: TakeSamples): SpeechDecoder => ({
    isComplete: true,
    failure: undefined,
    tokens: undefined,
    push: take,
    end: () => {},
  })
  const mp3Stream = async (): Promise<SpeechStream> => {
    const encoder = await mp3Encoder(RATE)
    return new SpeechStream({ text, parts: [text], decoder, encoder, isCpuBound: true, envelope: PLAIN_ENVELOPE })
  }
  const streams = await Promise.all([mp3Stream(), mp3Stream(), mp3Stream()])
  const work = streams.map(({ encoder }) => encoder!)
  const times: number[] = []
  // A vendor that sends a whole text in one read is the worst case; the others get less text, to save time.
  for (const [index, steps] of work.entries())
    times.push(processorMs(() => steps.take(index === 0 ? sound : sound.subarray(0, 20 * RATE))))
  while (work.some((steps) => steps.hasWork)) for (const steps of work) times.push(processorMs(() => void steps.next()))
  for (const stream of streams) times.push(processorMs(() => void stream.end()))

  expect(sound.length).toBeGreaterThan(200 * RATE)
  expect(times.length).toBeGreaterThan(1_000)
  // Garbage collection or compilation occasionally happens during a step, so a few steps may be longer.
  expect(times.filter((ms) => ms >= MAX_STEP_MS).length).toBeLessThan(times.length / 200)
  expect(median(times)).toBeLessThan(MAX_STEP_MS / 4)
})
