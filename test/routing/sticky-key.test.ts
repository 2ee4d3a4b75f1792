import { expect, test } from 'vitest'
import { stickyKey } from '../../src/pipeline/estimate.ts'

function keyOf(members: object, headers: Readonly<Record<string, string>> = {}): string | undefined {
  return stickyKey('acct_1', { model: 'm', ...members }, (name) => headers[name])
}

test.each(['x-session-id', 'x-session-affinity', 'session-id', 'session_id'])(
  'keeps a session together by the header %s',
  (header) => {
    expect(keyOf({}, { [header]: 'one' })).toBe('acct_1 one')
  },
)

test('keeps a session together by the member session_id', () => {
  expect(keyOf({ session_id: 'one' })).toBe('acct_1 one')
})

test('prefers the key of the prompt to a session, a session to an end user, and the member to a header', () => {
  const user = { user: 'u', metadata: { user_id: 'm' } }
  const headers = { 'session-id': 'h' }

  expect(keyOf({ prompt_cache_key: 'p', session_id: 's', ...user }, headers)).toBe('acct_1 p')
  expect(keyOf({ session_id: 's', ...user }, headers)).toBe('acct_1 s')
  expect(keyOf(user, headers)).toBe('acct_1 h')
  expect(keyOf(user)).toBe('acct_1 u')
  expect(keyOf({ metadata: user.metadata })).toBe('acct_1 m')
})

test('has no key without any of them, or for values that are not strings', () => {
  expect(keyOf({ session_id: 7, prompt_cache_key: '' })).toBeUndefined()
})

test('scopes keys to their account', () => {
  expect(stickyKey('acct_2', { model: 'm' }, () => 'one')).toBe('acct_2 one')
})
