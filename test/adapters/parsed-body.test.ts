import { describe, expect, it } from 'vitest'

import { isPlaceholder, parsedBodyBytes } from '../../src/adapters/parsed-body.ts'

const text = (bytes: Uint8Array | undefined): string | undefined =>
  bytes === undefined ? undefined : new TextDecoder().decode(bytes)

describe('parsedBodyBytes', () => {
  it('keeps the bytes of a raw parser as they are', () => {
    const bytes = Buffer.from([0, 255, 10])

    expect(parsedBodyBytes(bytes, 'application/octet-stream')).toBe(bytes)
  })

  it.each([
    ['a text', 'héllo', 'text/plain', 'héllo'],
    ['an object', { a: [1, 'ü'] }, 'application/json; charset=utf-8', '{"a":[1,"ü"]}'],
    ['an object of an unusual type', { a: 1 }, 'application/vnd.example+json', '{"a":1}'],
    ['an array', [1, 2], 'application/json', '[1,2]'],
    ['a null', null, 'application/json', 'null'],
    ['an empty object', {}, 'application/json', '{}'],
    ['a flat form', { a: 'x y', b: ['1', '2'] }, 'application/x-www-form-urlencoded', 'a=x+y&b=1&b=2'],
  ])('writes %s anew', (_what, body, contentType, expected) => {
    expect(text(parsedBodyBytes(body, contentType))).toBe(expected)
  })

  it.each([
    ['nothing was kept', undefined, 'application/json'],
    ['a form was nested', { a: { b: 'c' } }, 'application/x-www-form-urlencoded'],
    ['a form had files', { model: 'gp-image-1' }, 'multipart/form-data; boundary=x'],
    ['the value has no JSON', () => 1, 'application/json'],
  ])('gives nothing when %s', (_what, body, contentType) => {
    expect(parsedBodyBytes(body, contentType)).toBeUndefined()
  })
})

describe('isPlaceholder', () => {
  it('tells the empty object of a parser that did nothing from one that the caller sent', () => {
    expect(isPlaceholder({}, '300')).toBe(true)
    expect(isPlaceholder({}, undefined)).toBe(true)
    expect(isPlaceholder({}, '2')).toBe(false)
    expect([{ a: 1 }, [], null, '', new Uint8Array()].some((body) => isPlaceholder(body, '300'))).toBe(false)
  })
})
