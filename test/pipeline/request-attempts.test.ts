import { expect, test } from 'vitest'
import { chatEndpoint } from '../../src/endpoints/chat/chat-endpoint.ts'
import { CallRecord } from '../../src/pipeline/call-record.ts'

function request(): CallRecord {
  const sink = { closed: false, head() {}, write: () => true, end() {}, destroy() {}, onDrain() {}, onClose() {} }
  const incoming = {
    ...{ method: 'POST', path: '/v1/chat/completions', query: '', header: () => undefined },
    readBody() {},
  }
  const given = { requestId: 'req_1', startedAtMs: 0, called: chatEndpoint }
  return new CallRecord({ ...given, request: incoming, sink, vouchedPrincipal: undefined, routeOverride: undefined })
}

function attempt(number: number, hasFailed: boolean) {
  return {
    hasFailed,
    recordUntil: (nowMs: number) => ({
      ...{ vendor: 'openai', credentialId: 'openai:1', model: 'gp-5.4', reason: undefined, status: undefined },
      ...{ outcome: hasFailed ? ('failed' as const) : ('answered' as const), startMs: number, durationMs: nowMs },
    }),
  }
}

test('a record of usage has no list of attempts for one that did not fail', () => {
  const plain = request()
  expect(plain.attemptsUntil(5)).toBeUndefined()
  plain.tries(attempt(0, false))
  expect(plain.attemptsUntil(5)).toBeUndefined()
})

test('a record of usage has sixteen attempts at most: the first fifteen, and the last', () => {
  const unlucky = request()
  for (let number = 0; number < 40; number++) unlucky.tries(attempt(number, number < 39))
  const attempts = unlucky.attemptsUntil(5)

  expect(attempts?.map(({ startMs }) => startMs)).toEqual([...Array.from({ length: 15 }, (_, index) => index), 39])
  expect(attempts?.at(-1)).toMatchObject({ outcome: 'answered', durationMs: 5 })
})
