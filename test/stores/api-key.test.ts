import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { createApiKey, hashApiKey, isWellFormedApiKey } from '../../src/stores/api-keys.ts'

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
})

describe('isWellFormedApiKey', () => {
  it('accepts what createApiKey makes', () => {
    for (let count = 0; count < 200; count++) expect(isWellFormedApiKey(createApiKey())).toBe(true)
  })

  it('notices any one character that was mistyped', () => {
    const key = createApiKey()
    for (let position = 3; position < key.length; position++) {
      const other = key[position] === 'x' ? 'y' : 'x'
      expect(isWellFormedApiKey(`${key.slice(0, position)}${other}${key.slice(position + 1)}`)).toBe(false)
    }
  })

  it.each(['', 'sk-', 'sk-operator-chose-this', `${'x'.repeat(52)}`])('refuses %j', (text) => {
    expect(isWellFormedApiKey(text)).toBe(false)
  })

  it('refuses a key that was cut or has something after it', () => {
    const key = createApiKey()
    expect(isWellFormedApiKey(key.slice(0, -1))).toBe(false)
    expect(isWellFormedApiKey(`${key}\n`)).toBe(false)
  })
})

describe('hashApiKey', () => {
  it('is the SHA-256 of the UTF-8 text in lower-case hexadecimal', () => {
    for (const text of ['sk-demo', '', 'sk-schlüssel-鍵']) {
      expect(hashApiKey(text)).toBe(createHash('sha256').update(text, 'utf8').digest('hex'))
    }
  })
})
