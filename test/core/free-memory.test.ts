import { describe, expect, it } from 'vitest'
import { freeMemory, isFreeable } from '../../src/core/memory-use.ts'

const KILOBYTE = 1024

describe('memory that is freed', () => {
  it('is gone at once, and the bytes are empty', () => {
    const bytes = Array.from({ length: 64 }, () => Buffer.allocUnsafeSlow(1024 * KILOBYTE).fill(1))
    const before = process.memoryUsage().arrayBuffers

    for (const each of bytes) freeMemory(each)

    expect(before - process.memoryUsage().arrayBuffers).toBeGreaterThan(63 * 1024 * KILOBYTE)
    expect(bytes.map(({ length }) => length)).toEqual(bytes.map(() => 0))
  })

  it('can be asked for twice', () => {
    const bytes = Buffer.allocUnsafeSlow(16 * KILOBYTE)
    freeMemory(bytes)

    freeMemory(bytes)

    expect(isFreeable(bytes)).toBe(false)
  })
})

describe('memory that stays', () => {
  it.each<[string, Uint8Array]>([
    ['is shared with other bytes', Buffer.allocUnsafeSlow(32 * KILOBYTE).subarray(0, 16 * KILOBYTE)],
    ['is little', Buffer.allocUnsafeSlow(8 * KILOBYTE)],
    ['may be read by other threads', new Uint8Array(new SharedArrayBuffer(16 * KILOBYTE))],
  ])('%s', (_reason, bytes) => {
    bytes.fill(7)
    const { length } = bytes

    freeMemory(bytes)

    expect(bytes.length).toBe(length)
    expect(bytes[length - 1]).toBe(7)
  })

  it('is that of texts, which are in the heap', () => {
    expect(isFreeable('x'.repeat(16 * KILOBYTE))).toBe(false)
    expect(isFreeable(undefined)).toBe(false)
  })
})
