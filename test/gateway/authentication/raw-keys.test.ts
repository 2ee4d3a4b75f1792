import { afterEach, expect, test, vi } from 'vitest'
import { rawPost } from '../../support/raw-caller.ts'
import { chatBody, type StartedGateway, startGateway, TEST_KEY } from '../../support/start-gateway.ts'

let started: StartedGateway
afterEach(() => started.close())

const CHAT = '/v1/chat/completions'

test("never uses a caller's key as a key of a map or member of a set, whether it is known or guessed", async () => {
  started = await startGateway()
  const guess = 'sk-guess-0123456789'
  const mapKeys = vi.spyOn(Map.prototype, 'set')
  const setMembers = vi.spyOn(Set.prototype, 'add')
  for (let count = 0; count < 3; count++) {
    const caller = rawPost(started.url, CHAT, chatBody('chat-relayed', 'hello'))
    expect(await caller.closed).toContain('HTTP/1.1 200')
  }
  const refused = await started.post(CHAT, chatBody('chat-relayed', 'hello'), { authorization: `Bearer ${guess}` })
  const kept = [...mapKeys.mock.calls.map(([key]) => key), ...setMembers.mock.calls.map(([member]) => member)]
  mapKeys.mockRestore()
  setMembers.mockRestore()
  const texts = kept.filter((value): value is string => typeof value === 'string')

  expect(refused.status).toBe(401)
  expect(texts.length).toBeGreaterThan(0)
  expect(texts.filter((text) => text.includes(TEST_KEY) || text.includes(guess))).toEqual([])
})
