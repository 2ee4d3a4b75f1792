import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { createApiKey, hashApiKey } from '../../src/stores/api-keys.ts'

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

describe('createApiKey', () => {
  it('makes sk-, 43 characters of secret and 6 check characters, all base62', () => {
    expect(createApiKey()).toMatch(/^sk-[0-9A-Za-z]{49}$/)
  })

  it('makes the same key from the same random bytes and another from others', () => {
    const zeros = (length: number) => new Uint8Array(length)
    const ones = (length: number) => new Uint8Array(length).fill(255)

    expect(createApiKey(zeros)).toBe(createApiKey(zeros))
    expect(createApiKey(zeros).slice(0, 46)).toBe(`sk-${'0'.repeat(43)}`)
    expect(createApiKey(ones)).toHaveLength(createApiKey(zeros).length)
    expect(createApiKey(ones)).not.toBe(createApiKey(zeros))
    expect(new Set(Array.from({ length: 1_000 }, () => createApiKey())).size).toBe(1_000)
  })

  it('ends the key with four bytes of the SHA-256 of its secret, as a number in base62', () => {
    for (let count = 0; count < 200; count++) {
      const key = createApiKey()
      const digest = createHash('sha256').update(key.slice(3, 46), 'utf8').digest()
      const read = [...key.slice(46)].reduce((value, digit) => value * 62 + BASE62.indexOf(digit), 0)
      expect(read).toBe(digest.readUInt32BE(0))
    }
  })
})

describe('hashApiKey', () => {
  it('is the SHA-256 of the UTF-8 text in lower-case hexadecimal', () => {
    for (const text of ['sk-demo', '', 'sk-schlüssel-鍵']) {
      expect(hashApiKey(text)).toBe(createHash('sha256').update(text, 'utf8').digest('hex'))
    }
  })
})
