import { expect, test } from 'vitest'
import { endOfExample } from './support/run-example.ts'

test.each([
  ['sign-in-session', ['nobody 401', 'session 200', 'over plan 429', 'key 200']],
  [
    'sign-in-jwt',
    [
      'token 200',
      'out of scope 403',
      'expired 401',
      'not yet valid 401',
      'no models 403',
      'other service 401',
      'forged 401',
      'key 200',
    ],
  ],
  ['sign-in-better-auth', ['nobody 401', 'session 200', 'signed out 401', 'key 200', 'end user - ada']],
  ['sign-in-keys', ['no key 401', 'key 200', 'out of scope 403', 'revoked true']],
])('the example %s lets in those whom it knows', async (name, lines) => {
  const { code, output } = await endOfExample(name, {})

  expect(
    output
      .trim()
      .split('\n')
      .map((line) => line.replaceAll(/ +/g, ' ')),
  ).toEqual(lines)
  expect(code).toBe(0)
})
