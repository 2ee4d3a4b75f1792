import { Buffer } from 'node:buffer'
import { describe, expect, it } from 'vitest'
import { EventFrames } from '../../../src/vendors/shared/event-frames.ts'

describe('EventFrames', () => {
  for (const lineEnd of ['\n', '\r\n']) {
    const event = `: note${lineEnd}data: ü${lineEnd}${lineEnd}`
    const wire = Buffer.from(event + event + event)
    const eventLength = wire.length / 3

    it(`gives an event as soon as its last byte is there, whatever the cuts (${JSON.stringify(lineEnd)})`, () => {
      for (let first = 1; first < wire.length; first++) {
        for (let second = first; second < wire.length; second++) {
          const frames = new EventFrames()
          let given = 0
          for (const [start, end] of [
            [0, first],
            [first, second],
            [second, wire.length],
          ] as const) {
            given += frames.take(wire.subarray(start, end))?.length ?? 0

            expect(given).toBe(Math.floor(end / eventLength) * eventLength)
            expect(frames.heldBytes).toBe(end - given)
          }
        }
      }
    })
  }

  it('gives the very same bytes when a read ends with an event', () => {
    const bytes = Buffer.from('data: a\n\n')

    expect(new EventFrames().take(bytes)).toBe(bytes)
  })

  it('closes what is left at the end', () => {
    const frames = new EventFrames()
    frames.take(Buffer.from('data: a'))

    expect(frames.rest()?.toString()).toBe('data: a\n\n')
    expect(frames.rest()).toBeUndefined()
  })

  it('keeps no more than the cap', () => {
    const frames = new EventFrames(10)

    frames.take(Buffer.from('data: 1234567'))

    expect(frames.isOversize).toBe(true)
    expect(frames.take(Buffer.from('890'))).toBeUndefined()
    expect(frames.rest()).toBeUndefined()
  })
})
