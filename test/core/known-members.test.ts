import { describe, expect, test } from 'vitest'
import { checkMembers, memberNames, nearestName } from '../../src/core/known-members.ts'

interface Limits {
  readonly requestsPerMinute?: number
  readonly tokensPerMinute?: number
  readonly concurrency?: number
}

const LIMITS = memberNames<Limits>()('requestsPerMinute tokensPerMinute', 'concurrency')

test('the names of an options type do not compile if one is missing or unknown', () => {
  // @ts-expect-error
  expect(memberNames<Limits>()('requestsPerMinute concurrency')).toEqual({ requestsPerMinute: true, concurrency: true })
  // @ts-expect-error
  expect(memberNames<Partial<Pick<Limits, 'concurrency'>>>()('concurrency rpm')).toEqual({
    concurrency: true,
    rpm: true,
  })
})

describe('checkMembers', () => {
  test.each<[given: unknown, message: string]>([
    [{ rpm: 5 }, 'createGateway: limits.rpm is unknown; did you mean requestsPerMinute?'],
    [{ rpm: undefined }, 'createGateway: limits.rpm is unknown; did you mean requestsPerMinute?'],
    [{ 'a b': 1 }, 'createGateway: limits["a b"] is unknown; known: requestsPerMinute, tokensPerMinute, concurrency'],
    [['x'], 'createGateway: limits.0 is unknown; known: requestsPerMinute, tokensPerMinute, concurrency'],
    [5, 'createGateway: limits must be an object'],
    ['fast', 'createGateway: limits must be an object'],
    [true, 'createGateway: limits must be an object'],
  ])('refuses %j', (given, message) => {
    expect(() => checkMembers(given, LIMITS, 'createGateway', 'limits')).toThrow(new TypeError(message))
  })

  test('takes what is absent, members that are undefined, objects without a prototype, and what a class inherits', () => {
    class Inherited {
      readonly concurrency = 5
      get source(): string {
        return 'file'
      }
      reload(): void {}
    }
    const bare = Object.assign(Object.create(null) as object, { concurrency: 5 })
    const symbolic = { concurrency: 5, [Symbol('mine')]: 1 }

    for (const given of [undefined, null, {}, { concurrency: undefined }, bare, symbolic, new Inherited()])
      expect(() => checkMembers(given, LIMITS, 'createGateway', 'limits')).not.toThrow()
  })

  test('does not take a member of Object.prototype for a known one', () => {
    expect(() => checkMembers({ toString: 1 }, LIMITS, 'createGateway', 'limits')).toThrow('limits.toString is unknown')
  })
})

describe('nearestName', () => {
  const known = [
    'requestsPerMinute',
    'tokensPerMinute',
    'concurrency',
    'apiKey',
    'baseURL',
    'perEndUser',
    'id',
    'timeouts',
  ]

  test.each([
    ['apikey', 'apiKey'],
    ['api_key', 'apiKey'],
    ['baseUrl', 'baseURL'],
    ['base-url', 'baseURL'],
    ['rpm', 'requestsPerMinute'],
    ['TPM', 'tokensPerMinute'],
    ['concurency', 'concurrency'],
    ['maxConcurrency', 'concurrency'],
    ['timeout', 'timeouts'],
    ['tiemouts', 'timeouts'],
    ['requests', 'requestsPerMinute'],
    ['perUser', 'perEndUser'],
    ['idd', 'id'],
    ['minute', 'tokensPerMinute'],
    ['sPer', undefined],
    ['reem', undefined],
    ['colour', undefined],
    ['', undefined],
    ['_', undefined],
  ])('returns for %j the nearest name %j', (name, nearest) => {
    expect(nearestName(name, known)).toBe(nearest)
  })
})
