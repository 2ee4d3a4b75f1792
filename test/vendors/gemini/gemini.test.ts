import { describe, expect, test } from 'vitest'
import { gemini } from '../../../src/vendors/gemini/gemini.ts'
import { chatCall } from './gemini-call.ts'

describe('gemini()', () => {
  test('without a key is not configured and says what to set', () => {
    const vendor = gemini({ apiKey: ' ' })

    expect(vendor).toMatchObject({
      id: 'gemini',
      origin: 'https://generativelanguage.googleapis.com',
      apiKeys: [],
      configuredBy: 'GEMINI_API_KEY or gemini({ apiKey })',
    })
  })

  test('takes several keys', () => {
    expect(gemini({ apiKey: ['one', 'two'] }).apiKeys).toEqual(['one', 'two'])
  })

  test.each([
    ['http://127.0.0.1:9100', undefined, 'http://127.0.0.1:9100', '/v1beta/models/'],
    ['http://127.0.0.1:9100/v1beta/', undefined, 'http://127.0.0.1:9100', '/v1beta/models/'],
    ['https://proxy.example/google', 'v1', 'https://proxy.example', '/google/v1/models/'],
  ])('baseURL %s with version %s', (baseURL, apiVersion, origin, pathStart) => {
    const vendor = gemini({ apiKey: 'k', baseURL, apiVersion })

    expect(vendor.origin).toBe(origin)
    expect(vendor.chat?.toWire(chatCall()).path).toBe(`${pathStart}gemini-2.5-flash:generateContent`)
  })

  test.each([
    [{ baseURL: 'ftp://files.example' }],
    [{ baseURL: 'https://api.example?key=1' }],
    [{ baseURL: 'not a url' }],
    [{ apiVersion: '../v1' }],
    [{ images: 'imagen' as 'interactions' }],
  ])('refuses options it cannot use: %o', (options) => {
    expect(() => gemini(options)).toThrow(TypeError)
  })
})
