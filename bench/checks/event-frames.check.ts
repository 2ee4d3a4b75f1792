import { expect, test } from 'vitest'
import { eventOf } from '../../src/testing/sandbox/amazon-bedrock/amazon-bedrock.ts'
import { EventFrameReader } from '../../src/vendors/amazon-bedrock/converse-answer.ts'
import { processorMs } from './processor-ms.ts'

const FRAMES = 50_000
const ROUNDS = 5
const BOUND_MICROSECONDS = 4

/** Frames of a few words each, as models stream them. */
const frame = eventOf('contentBlockDelta', { contentBlockIndex: 0, delta: { text: ' a few words of an answer' } })

/** Returns the best of some rounds, in microseconds of processor time per frame. */
function microsecondsPerFrame(chunks: readonly Uint8Array[], frames: number): number {
  const rounds = Array.from({ length: ROUNDS }, () => {
    let count = 0
    const durationMs = processorMs(() => {
      const reader = new EventFrameReader(() => count++)
      for (const chunk of chunks) reader.push(chunk)
    })
    expect(count).toBe(frames)
    return (durationMs * 1000) / frames
  })
  return Math.min(...rounds)
}

test.each([
  ['one in each read', frame.length],
  ['in reads of a network packet', 1_460],
  ['in reads of 64 KiB', 65_536],
])('a frame of an event stream takes at most 4 µs, %s', (_reads, size) => {
  const bytes = Buffer.concat(Array.from({ length: FRAMES }, () => frame))
  const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, place) =>
    bytes.subarray(place * size, (place + 1) * size),
  )
  const measured = microsecondsPerFrame(chunks, FRAMES)

  expect(measured).toBeLessThanOrEqual(BOUND_MICROSECONDS)
})

test('a frame of 20 MB takes time in proportion to its length, however it is cut', () => {
  const timeOf = (megabytes: number): number => {
    const large = eventOf('chunk', { bytes: 'A'.repeat(megabytes * 1024 * 1024) })
    const chunks = Array.from({ length: Math.ceil(large.length / 16_384) }, (_, place) =>
      large.subarray(place * 16_384, (place + 1) * 16_384),
    )
    return microsecondsPerFrame(chunks, 1) / 1000
  }
  timeOf(5)

  expect(timeOf(20)).toBeLessThan(Math.max(100, timeOf(5) * 12))
})
